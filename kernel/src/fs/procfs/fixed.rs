//! The fixed part of the tree: directories and files that are registered by path. sysfs and tracefs are made of the same.
//!
//! Owns the one instance of proc. Never removes an entry but to replace it. Locks: none of its own, only those of the
//! dentries that make up the tree.
#![forbid(unsafe_code)]

use super::file::ProcFile;
use super::node::Node;
use super::text::{TextBuf, TextOps, TextSource};
use crate::mm::fallible::{TryVec, try_arc, try_copy};
use crate::sync::Once;
use crate::try_format;
use crate::vfs::object::filesystem::anonymous_dev;
use crate::vfs::object::inode::LinkText;
use crate::vfs::{
    Capability, Cred, Dentry, DevId, FileOps, FileSystem, Inode, InodeAttr, Metadata, Owner,
    SetAttr, Super, Timestamp,
};
use abi::fs::{OpenFlags, S_IFDIR, S_IFLNK, S_IFREG, Statfs};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

const PROC_MAGIC: i64 = 0x9fa0;

static PROC: Once<Arc<Super>> = Once::new();

/// Linux numbers its registered entries from here. Relaxed: only uniqueness matters.
static NEXT_INO: AtomicU64 = AtomicU64::new(0xf000_0000);

pub(in crate::fs) fn next_ino() -> u64 {
    NEXT_INO.fetch_add(1, Ordering::Relaxed)
}

/// A file system whose tree the kernel itself makes.
pub(in crate::fs) struct KernelFs {
    pub name: &'static str,
    pub magic: i64,
}

impl FileSystem for KernelFs {
    fn name(&self) -> &'static str {
        self.name
    }
    fn statfs(&self) -> Statfs {
        Statfs { kind: self.magic, bsize: 4096, frsize: 4096, namelen: 255, ..Statfs::default() }
    }
}

/// The one instance of proc.
pub fn super_block() -> Result<Arc<Super>> {
    if let Some(sb) = PROC.get() {
        return Ok(sb.clone());
    }
    let number = anonymous_dev()?;
    let dev = number.id();
    let root = Dentry::new_root(try_arc(Node::root(dev))?, b"/")?;
    let sb =
        Super::new(try_arc(KernelFs { name: "proc", magic: PROC_MAGIC })?, root, number, true)?;
    Ok(PROC.call_once(|| sb).clone())
}

/// Adds a file below /proc; `path` like `driver/rtc`, directories are made as needed.
pub fn register_file(path: &str, mode: u32, file: Arc<dyn ProcFile>) -> Result<()> {
    assert!(!path.starts_with("sys/"), "{path} is either numbers or a line");
    add_body(&super_block()?, path, mode, Body::File(file))
}

/// Adds a file of numbers (`vm/max_map_count`) below /proc/sys: they are read and written at the beginning only.
pub fn register_numbers(path: &str, mode: u32, file: Arc<dyn ProcFile>) -> Result<()> {
    add_body(&super_block()?, &try_format!("sys/{path}")?, mode, Body::Numbers(file))
}

/// Adds a file of one line of text (`kernel/hostname`) below /proc/sys: it is read on, and written on, from any place in it.
pub fn register_line(path: &str, mode: u32, file: Arc<dyn ProcFile>) -> Result<()> {
    add_body(&super_block()?, &try_format!("sys/{path}")?, mode, Body::Line(file))
}

/// Adds a file below /proc that is no text: `open` opens it, for callers with the capability, if one is given.
pub fn register_stream(
    path: &str,
    mode: u32,
    capability: Option<Capability>,
    open: fn() -> Result<Arc<dyn FileOps>>,
) -> Result<()> {
    add_body(&super_block()?, path, mode, Body::Stream(capability, open))
}

/// The directory `name` below /proc; ENOENT if there is none.
pub(super) fn directory_of(name: &str) -> Result<Arc<Dentry>> {
    find(super_block()?.root(), name).ok_or(Errno::ENOENT)
}

/// Adds an empty directory below /proc, if it is not there.
pub fn add_directory(path: &str) -> Result<()> {
    directory(&super_block()?, path).map(drop)
}

/// Adds a file to sysfs or tracefs, in place of one that had the name before.
pub(in crate::fs) fn add_file(
    sb: &Arc<Super>,
    path: &str,
    mode: u32,
    file: Arc<dyn ProcFile>,
) -> Result<()> {
    add_body(sb, path, mode, Body::Attribute(file))
}

fn add_body(sb: &Arc<Super>, path: &str, mode: u32, body: Body) -> Result<()> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let dir = directory(sb, dir)?;
    enter(&dir, name, FixedInode::new(sb, S_IFREG | mode, body)?)
}

/// Adds a symbolic link to one of these trees.
pub(in crate::fs) fn add_link(sb: &Arc<Super>, path: &str, target: &str) -> Result<()> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let dir = directory(sb, dir)?;
    let target = try_arc(try_copy(target.as_bytes())?)?;
    enter(&dir, name, FixedInode::new(sb, S_IFLNK | 0o777, Body::Link(target))?)
}

/// The directory at `path`; it and those above it are made if they are not there.
pub(in crate::fs) fn directory(sb: &Arc<Super>, path: &str) -> Result<Arc<Dentry>> {
    let mut at = sb.root().clone();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = match find(&at, name) {
            Some(child) => child,
            None => {
                let mode = if sb.fs().name() == "proc" { 0o555 } else { 0o755 };
                let inode = FixedInode::new(sb, S_IFDIR | mode, Body::Dir);
                enter(&at, name, inode?)?;
                at.inode().attr().add_nlink(1);
                find(&at, name).ok_or(Errno::ENOENT)?
            }
        };
    }
    Ok(at)
}

/// A registered entry; never one that a dynamic directory makes at lookup.
fn find(dir: &Arc<Dentry>, name: &str) -> Option<Arc<Dentry>> {
    dir.lookup_fixed(name.as_bytes())
}

fn enter(dir: &Arc<Dentry>, name: &str, inode: Arc<FixedInode>) -> Result<()> {
    let _changes = dir.lock_changes()?;
    if let Some(old) = find(dir, name) {
        dir.remove(&old);
    }
    dir.insert(&Dentry::new_below(dir, name.as_bytes(), inode)?)
}

enum Body {
    Dir,
    File(Arc<dyn ProcFile>),
    /// In sysfs or tracefs, where even root cannot open for writing a file that nobody may write.
    Attribute(Arc<dyn ProcFile>),
    /// Numbers below /proc/sys, where no capability overrides the mode.
    Numbers(Arc<dyn ProcFile>),
    /// A line of text there.
    Line(Arc<dyn ProcFile>),
    /// A file that is no text, for callers with this capability; the function opens it.
    Stream(Option<Capability>, fn() -> Result<Arc<dyn FileOps>>),
    Link(LinkText),
}

/// A registered file, directory or link.
struct FixedInode {
    attr: InodeAttr,
    body: Body,
    in_sysfs: bool,
}

impl FixedInode {
    fn new(sb: &Super, mode: u32, body: Body) -> Result<Arc<Self>> {
        let (dev, owner) = (sb.dev(), Owner::default());
        let attr = InodeAttr::new(dev, next_ino(), mode, owner, DevId::NONE, Timestamp::now());
        try_arc(Self { attr, body, in_sysfs: sb.fs().name() != "proc" })
    }

    /// What it says, if it is a text.
    fn file(&self) -> Result<&dyn ProcFile> {
        match &self.body {
            Body::File(file) | Body::Attribute(file) | Body::Numbers(file) | Body::Line(file) => {
                Ok(&**file)
            }
            _ => Err(Errno::EINVAL),
        }
    }
}

impl Inode for FixedInode {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }
    fn meta(&self) -> Metadata {
        let mut meta = self.attr.metadata();
        if let Body::Link(target) = &self.body {
            meta.size = target.len() as u64;
        }
        meta.blksize = if self.in_sysfs { 4096 } else { 1024 };
        if let Body::Attribute(_) = self.body {
            meta.size = 4096;
        }
        meta
    }
    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        // `O_TRUNC` of a file that has no length of its own changes nothing.
        let change = SetAttr { size: None, ..*change };
        Ok(self.attr.apply(&change))
    }
    fn refuses_names(&self) -> Option<[Errno; 2]> {
        // In proc, creating a name fails as if its directory did not exist.
        Some(if self.in_sysfs { [Errno::EACCES, Errno::EPERM] } else { [Errno::ENOENT; 2] })
    }
    fn readlink(&self) -> Result<LinkText> {
        match &self.body {
            Body::Link(target) => Ok(target.clone()),
            _ => Err(Errno::EINVAL),
        }
    }
    fn open(self: Arc<Self>, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        match &self.body {
            Body::Attribute(_) if flags.writable() && self.attr.mode() & 0o222 == 0 => {
                Err(Errno::EACCES)
            }
            Body::File(_) | Body::Attribute(_) | Body::Numbers(_) | Body::Line(_) => {
                Ok(TextOps::new(self)?)
            }
            Body::Stream(_, open) => open(),
            _ => Err(Errno::ENXIO),
        }
    }
    fn permission(&self, cred: &Cred, want: u32) -> Result<()> {
        match &self.body {
            Body::Stream(Some(capability), _) if !cred.capable(*capability) => {
                return Err(Errno::EPERM);
            }
            Body::Numbers(file) | Body::Line(file) if !file.is_open_to(cred) => {}
            _ => return Ok(()),
        }
        let mode = self.attr.mode();
        let digit = if cred.euid == 0 {
            mode >> 6
        } else if cred.in_egroup(0) {
            mode >> 3
        } else {
            mode
        };
        if digit & want == want { Ok(()) } else { Err(Errno::EACCES) }
    }
}

impl TextSource for FixedInode {
    fn text(&self) -> Result<Vec<u8>> {
        self.file()?.read()
    }
    fn piece(&self, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
        self.file()?.piece(from, text)
    }
    fn is_watchable(&self) -> bool {
        true
    }
    fn is_sysctl(&self) -> bool {
        matches!(self.body, Body::Numbers(_) | Body::Line(_))
    }
    fn is_read_at_once(&self) -> bool {
        matches!(self.body, Body::Numbers(_))
    }
    /// As on Linux (`kernel.sysctl_writes_strict`), numbers are passed over but at the beginning; a line goes on from there.
    fn take_at(&self, data: &[u8], pos: u64) -> Result<usize> {
        match &self.body {
            Body::Numbers(_) if pos != 0 => Ok(data.len()),
            Body::Line(file) if pos != 0 => {
                let mut line = file.read()?;
                let len = line.len().saturating_sub(1);
                let from = usize::try_from(pos).unwrap_or(usize::MAX);
                if from <= len && !data.is_empty() {
                    line.truncate(from);
                    line.try_extend_from_slice(data)?;
                    file.write(&line)?;
                }
                Ok(data.len())
            }
            _ => self.take(data),
        }
    }
    fn take(&self, data: &[u8]) -> Result<usize> {
        self.file()?.write(data)
    }
}
