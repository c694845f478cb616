//! devpts: the file system that shows the terminal sides of pseudo-terminals as /dev/pts/N.
//!
//! Owns the table of pseudo-terminals; there is one for the whole machine. A name appears when its master is
//! opened and goes when it is closed. Never drops a
//! terminal under the table's lock. Locks: `Leaf`, one for the table and one for the options.

use super::job;
use super::tty::Tty;
use crate::mm::fallible::{TryMap, try_arc};
use crate::sync::{Once, SpinLock, level};
use crate::vfs::object::filesystem::anonymous_dev;
use crate::vfs::object::inode::DYNAMIC_CURSOR;
use crate::vfs::{
    Dentry, DevId, DirEntry, FileSystem, FileType, Inode, InodeAttr, Mount, MountFlags, Owner,
    Path, SetAttr, Super, Timestamp,
};
use crate::{try_format, try_write};
use abi::fs::{S_IFCHR, S_IFDIR, Statfs};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

const MAGIC: i64 = 0x1cd1;
/// As many pseudo-terminals as Linux allows by default.
const MAX: u32 = 4096;
const ROOT_INO: u64 = 1;
const PTMX_INO: u64 = 2;
const FIRST_INO: u64 = 3;

type Table = BTreeMap<u32, (Arc<Tty>, Arc<PtsInode>)>;
static TABLE: SpinLock<Table, level::Leaf> = SpinLock::new(BTreeMap::new());
/// The kernel's own mount of the one instance, made at boot.
static MOUNT: Once<Arc<Mount>> = Once::new();

/// The device node of one pseudo-terminal.
pub struct PtsInode {
    attr: InodeAttr,
    index: u32,
}

impl PtsInode {
    /// The N of /dev/pts/N.
    pub(super) fn index(&self) -> u32 {
        self.index
    }
}

impl Inode for PtsInode {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }
}

/// The directory.
struct Root {
    attr: InodeAttr,
    ptmx: Arc<PtsInode>,
}

impl Inode for Root {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }

    fn is_dynamic(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8]) -> Result<Arc<dyn Inode>> {
        if name == b"ptmx" {
            return Ok(self.ptmx.clone());
        }
        let index = parse(name).ok_or(Errno::ENOENT)?;
        let table = TABLE.lock();
        let (_, inode) = table.get(&index).ok_or(Errno::ENOENT)?;
        Ok(inode.clone())
    }

    fn readdir(&self, pos: u64, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        let kind = FileType::Char;
        let at = pos.saturating_sub(DYNAMIC_CURSOR);
        if at == 0 {
            let next = DYNAMIC_CURSOR + 1;
            if !emit(DirEntry { name: b"ptmx", ino: PTMX_INO, kind, next }) {
                return Ok(());
            }
        }
        let mut from = u32::try_from(at.max(1) - 1).unwrap_or(u32::MAX);
        loop {
            let found = TABLE.lock().range(from..).next().map(|(&index, _)| index);
            let Some(index) = found else { return Ok(()) };
            let name = try_format!("{index}")?;
            let ino = FIRST_INO + u64::from(index);
            let next = DYNAMIC_CURSOR + u64::from(index) + 2;
            if !emit(DirEntry { name: name.as_bytes(), ino, kind, next }) {
                return Ok(());
            }
            from = index + 1;
        }
    }
}

/// A number as devpts writes it: no sign, no leading zero.
fn parse(name: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(name).ok()?;
    let canonical = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if canonical && digits { text.parse().ok() } else { None }
}

struct DevPts;

impl FileSystem for DevPts {
    fn name(&self) -> &'static str {
        "devpts"
    }
    fn statfs(&self) -> Statfs {
        Statfs { kind: MAGIC, bsize: 4096, frsize: 4096, namelen: 255, ..Statfs::default() }
    }
    fn options(&self) -> Result<String> {
        let options = *OPTIONS.lock();
        let owner = [("uid", options.uid), ("gid", options.gid)];
        let mut text = String::new();
        for (name, id) in owner {
            if let Some(id) = id {
                try_write!(text, ",{name}={id}")?;
            }
        }
        try_write!(text, ",mode={:03o},ptmxmode={:03o}", options.mode, options.ptmx_mode)?;
        Ok(text)
    }
    fn remount(&self, options: &[u8]) -> Result<()> {
        Options::apply(options)
    }
}

/// Mount options: who owns new terminals and who may use them.
#[derive(Clone, Copy)]
struct Options {
    uid: Option<u32>,
    gid: Option<u32>,
    mode: u32,
    ptmx_mode: u32,
}

static OPTIONS: SpinLock<Options, level::Leaf> =
    SpinLock::new(Options { uid: None, gid: None, mode: 0o600, ptmx_mode: 0 });

impl Options {
    /// Takes options over: EINVAL for one that devpts does not have.
    fn apply(text: &[u8]) -> Result<()> {
        let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
        let mut new = *OPTIONS.lock();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let decimal = || value.parse().map_err(|_| Errno::EINVAL);
            let octal = || u32::from_str_radix(value, 8).map_err(|_| Errno::EINVAL);
            match name {
                "uid" => new.uid = Some(decimal()?),
                "gid" => new.gid = Some(decimal()?),
                "mode" => new.mode = octal()? & 0o7777,
                "ptmxmode" => new.ptmx_mode = octal()? & 0o7777,
                "newinstance" | "max" => {} // the instance is shared, its size bounded by MAX
                _ => return Err(Errno::EINVAL),
            }
        }
        *OPTIONS.lock() = new;
        let mode =
            SetAttr { mode: Some(new.ptmx_mode), now: Timestamp::now(), ..SetAttr::default() };
        if let Ok(ptmx) = own_mount()?.super_block().root().inode().lookup(b"ptmx") {
            ptmx.set_attr(&mode)?;
        }
        Ok(())
    }
}

fn node(dev: DevId, ino: u64, mode: u32, owner: Owner, rdev: DevId) -> InodeAttr {
    InodeAttr::new(dev, ino, mode, owner, rdev, Timestamp::now())
}

/// The file system, for mounting: every mount shows the same terminals.
pub fn mount(options: &[u8]) -> Result<Arc<Super>> {
    Options::apply(options)?;
    Ok(own_mount()?.super_block().clone())
}

fn own_mount() -> Result<&'static Arc<Mount>> {
    MOUNT.get().ok_or(Errno::ENODEV)
}

/// Makes the file system and the kernel's own mount of it: at boot, after the root.
pub fn init() -> Result<()> {
    let number = anonymous_dev()?;
    let dev = number.id();
    let nobody = Owner::default();
    let ptmx = try_arc(PtsInode {
        attr: node(dev, PTMX_INO, S_IFCHR, nobody, DevId::new(5, 2)),
        index: u32::MAX,
    })?;
    let attr = node(dev, ROOT_INO, S_IFDIR | 0o755, nobody, DevId::NONE);
    let root = Dentry::new_root(try_arc(Root { attr, ptmx })?, b"/")?;
    let sb = Super::new(try_arc(DevPts)?, root.clone(), number, true)?;
    let mount = Mount::new(sb, root, b"devpts", MountFlags::empty())?;
    MOUNT.call_once(|| mount);
    Ok(())
}

/// Makes a pseudo-terminal with the lowest free number.
pub(super) fn create(make: impl Fn(u32) -> Result<Arc<Tty>>) -> Result<(Arc<Tty>, Arc<PtsInode>)> {
    let dev = own_mount()?.super_block().dev();
    let caller = job::owner_of_caller();
    let options = *OPTIONS.lock();
    let owner =
        Owner { uid: options.uid.unwrap_or(caller.uid), gid: options.gid.unwrap_or(caller.gid) };
    loop {
        let index = lowest_free().ok_or(Errno::ENOSPC)?;
        let tty = make(index)?;
        let rdev = DevId::new(PTS_MAJOR, index);
        let attr = node(dev, FIRST_INO + u64::from(index), S_IFCHR | options.mode, owner, rdev);
        let inode = try_arc(PtsInode { attr, index })?;
        let mut table = TABLE.lock();
        if !table.contains_key(&index) {
            let entered = table.try_put(index, (tty.clone(), inode.clone()));
            drop(table);
            return entered.map(|_| (tty, inode));
        }
    }
}

fn lowest_free() -> Option<u32> {
    let table = TABLE.lock();
    (0..MAX)
        .zip(table.keys().map(Some).chain(core::iter::repeat(None)))
        .find_map(|(index, used)| (used != Some(&index)).then_some(index))
}

/// The terminal with this number.
pub(super) fn find(index: u32) -> Option<Arc<Tty>> {
    TABLE.lock().get(&index).map(|(tty, _)| tty.clone())
}

/// The master was closed.
pub(super) fn remove(index: u32) {
    let gone = TABLE.lock().remove(&index);
    drop(gone);
}

/// A place for an open file on the terminal side, for TIOCGPTPEER.
pub(super) fn path_of(inode: &Arc<PtsInode>) -> Result<Path> {
    let mount = own_mount()?.clone();
    let name = try_format!("/dev/pts/{}", inode.index())?;
    Ok(Path { mount, dentry: Dentry::new_root(inode.clone(), name.as_bytes())? })
}

pub(super) const PTS_MAJOR: u32 = 136;
