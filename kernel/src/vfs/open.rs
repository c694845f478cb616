//! `open`, `openat2` and their flags: from a name to an open file.
#![forbid(unsafe_code)]

use super::namei::{self, Last, LookupCtx, LookupFlags, Walker, perm, protect};
use crate::mm::fallible::{Room, try_arc};
use crate::try_format;
use crate::vfs::admission::{Admission, admit};
use crate::vfs::context::fdtable::Fd;
use crate::vfs::cred::Cred;
use crate::vfs::notify::event;
use crate::vfs::object::abilities::Abilities;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::file::{FileOps, OpenFile};
use crate::vfs::object::inode;
use crate::vfs::object::mount::MountFlags;
use crate::vfs::object::path::Path;
use crate::vfs::object::types::{DevId, FileType};
use crate::vfs::{chardev, directory, notify, ops};
use abi::fs::{OpenFlags, S_IFREG};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// A checked request to open.
#[derive(Clone, Copy, Debug)]
pub struct OpenHow {
    flags: OpenFlags,
    /// Permission bits of a new file.
    mode: u32,
    lookup: LookupFlags,
    /// The permissions that are needed on an existing file.
    want: u32,
}

/// `RESOLVE_*` of openat2, in bit order.
const RESOLVE: [LookupFlags; 5] = [
    LookupFlags::NO_XDEV,
    LookupFlags::NO_MAGICLINKS,
    LookupFlags::NO_SYMLINKS,
    LookupFlags::BENEATH,
    LookupFlags::IN_ROOT,
];
const RESOLVE_CACHED: u64 = 0x20;

impl OpenHow {
    /// From `open`'s arguments: unknown flags are ignored, and so is a mode where no file is created.
    pub fn classic(flags: u32, mode: u32) -> Result<Self> {
        let mut flags = OpenFlags::from_bits_truncate(flags) | OpenFlags::LARGEFILE;
        if flags.contains(OpenFlags::PATH) {
            flags &=
                OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW | OpenFlags::PATH | OpenFlags::CLOEXEC;
        }
        let creates = flags.intersects(OpenFlags::CREAT | OpenFlags::TMPFILE_BIT);
        Self::build(flags, if creates { mode & 0o7777 } else { 0 }, LookupFlags::empty())
    }

    /// From `openat2`'s structure: unknown flags, and a mode where no file is created, are EINVAL.
    pub fn strict(how: &abi::fs::OpenHow) -> Result<Self> {
        let flags = u32::try_from(how.flags).ok().and_then(OpenFlags::from_bits);
        let flags = flags.ok_or(Errno::EINVAL)?;
        let mut lookup = LookupFlags::empty();
        if how.resolve & !0x3f != 0 {
            return Err(Errno::EINVAL);
        }
        for (bit, flag) in RESOLVE.into_iter().enumerate() {
            if how.resolve & (1 << bit) != 0 {
                lookup |= flag;
            }
        }
        if lookup.contains(LookupFlags::BENEATH | LookupFlags::IN_ROOT) {
            return Err(Errno::EINVAL);
        }
        let creates = flags.intersects(OpenFlags::CREAT | OpenFlags::TMPFILE_BIT);
        if how.mode & !0o7777 != 0 || (!creates && how.mode != 0) {
            return Err(Errno::EINVAL);
        }
        let for_path = OpenFlags::DIRECTORY
            .union(OpenFlags::NOFOLLOW)
            .union(OpenFlags::PATH)
            .union(OpenFlags::CLOEXEC);
        if flags.contains(OpenFlags::PATH) && !for_path.contains(flags) {
            return Err(Errno::EINVAL);
        }
        if how.resolve & RESOLVE_CACHED != 0
            && flags.intersects(OpenFlags::TRUNC | OpenFlags::CREAT | OpenFlags::TMPFILE_BIT)
        {
            return Err(Errno::EAGAIN);
        }
        // At most 0o7777 by the check above.
        Self::build(flags, how.mode as u32, lookup)
    }

    fn build(mut flags: OpenFlags, mode: u32, mut lookup: LookupFlags) -> Result<Self> {
        if flags.contains(OpenFlags::TMPFILE_BIT) {
            let complete = flags.contains(OpenFlags::TMPFILE) && !flags.contains(OpenFlags::CREAT);
            if !complete || !flags.writable() {
                return Err(Errno::EINVAL);
            }
        } else if flags.contains(OpenFlags::CREAT | OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        if flags.contains(OpenFlags::SYNC_BIT) {
            flags |= OpenFlags::DSYNC;
        }
        let mut want = match flags.bits() & 3 {
            0 => perm::READ,
            1 => perm::WRITE,
            _ => perm::READ | perm::WRITE,
        };
        if flags.contains(OpenFlags::TRUNC) {
            want |= perm::WRITE;
        }
        if flags.contains(OpenFlags::PATH) {
            want = 0;
        }
        if flags.contains(OpenFlags::DIRECTORY) {
            lookup |= LookupFlags::DIRECTORY;
        }
        let exclusive = flags.contains(OpenFlags::CREAT | OpenFlags::EXCL);
        if !flags.contains(OpenFlags::NOFOLLOW) && !exclusive {
            lookup |= LookupFlags::FOLLOW;
        }
        Ok(Self { flags, mode, lookup, want })
    }

    /// A request of the kernel's own, to execute a file.
    pub fn exec(lookup: LookupFlags) -> Self {
        Self { flags: OpenFlags::LARGEFILE, mode: 0, lookup, want: perm::EXEC }
    }

    /// The same without waiting, as for the other end of a fifo.
    pub fn at_once(self) -> Self {
        Self { flags: self.flags | OpenFlags::NONBLOCK, ..self }
    }

    /// The flags.
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }
}

/// Opens `path`.
pub fn open(ctx: &LookupCtx<'_>, at: Fd, path: &[u8], how: &OpenHow) -> Result<Arc<OpenFile>> {
    let mut admission = admit()?;
    if how.flags.contains(OpenFlags::TMPFILE) {
        return open_tmpfile(admission, ctx, at, path, how);
    }
    if !how.flags.contains(OpenFlags::CREAT) {
        let place = namei::lookup(ctx, at, path, how.lookup)?;
        if how.flags.contains(OpenFlags::PATH) {
            return open_path(admission, place, how);
        }
        return open_existing(admission, ctx, place, how);
    }
    let mut walker = Walker::new(ctx, at, path, how.lookup)?;
    loop {
        let mut dir = None;
        let place = match walker.walk_to_last()? {
            Last::Name => {
                if walker.trailing_slash() {
                    return Err(Errno::EISDIR);
                }
                let child = match find_or_create(admission, ctx, &walker, how)? {
                    Found::New(file) => return Ok(file),
                    Found::Old(child, unused) => {
                        admission = unused;
                        child
                    }
                };
                let above = walker.dir().inode().clone();
                if walker.step_into(child)? {
                    continue;
                }
                dir = Some(above);
                walker.dir().clone()
            }
            Last::DotDot => {
                walker.up()?;
                walker.dir().clone()
            }
            Last::Dot | Last::Nothing => walker.dir().clone(),
        };
        if how.flags.contains(OpenFlags::EXCL) {
            return Err(Errno::EEXIST);
        }
        if place.dentry.is_dir() {
            return Err(Errno::EISDIR);
        }
        if let Some(dir) = dir {
            protect::check_create(dir.attr(), place.inode().attr(), ctx.cred)?;
        }
        return open_existing(admission, ctx, place, how);
    }
}

enum Found {
    New(Arc<OpenFile>),
    Old(Arc<Dentry>, Admission),
}

/// The last component of an open that may create: the entry that is there, or a new file already open.
fn find_or_create(
    admission: Admission,
    ctx: &LookupCtx<'_>,
    walker: &Walker<'_>,
    how: &OpenHow,
) -> Result<Found> {
    let dir = walker.dir();
    match dir.dentry.lookup(walker.name()) {
        Ok(child) => return Ok(Found::Old(child, admission)),
        Err(Errno::ENOENT) => {
            if let Some([errno, _]) = dir.inode().refuses_names() {
                return Err(errno);
            }
        }
        Err(errno) => return Err(errno),
    }
    let changes = dir.dentry.lock_changes()?;
    if let Ok(child) = dir.dentry.lookup(walker.name()) {
        return Ok(Found::Old(child, admission));
    }
    dir.mount.check_writable()?;
    let mode = S_IFREG | (how.mode & !ctx.fs.umask());
    // Without memory for the open file none is made.
    let room = Room::new()?;
    let child = ops::create_locked(dir, walker.name(), mode, DevId::NONE, ctx.cred)?;
    drop(changes);
    let place = Path { mount: dir.mount.clone(), dentry: child };
    // A new file may be opened whatever its mode says, and has nothing to truncate.
    let file = open_in(admission, room, place, how.flags.difference(OpenFlags::TRUNC), ctx.cred)?;
    notify::file(&file, event::OPEN);
    Ok(Found::New(file))
}

/// Opens a file that exists: checks permissions first, then truncates.
fn open_existing(
    admission: Admission,
    ctx: &LookupCtx<'_>,
    place: Path,
    how: &OpenHow,
) -> Result<Arc<OpenFile>> {
    let truncates =
        how.flags.contains(OpenFlags::TRUNC) && place.dentry.kind() == FileType::Regular;
    if truncates {
        place.mount.check_writable()?;
    }
    check_open(ctx, &place, how)?;
    let file = open_and_notify(admission, place, how.flags, ctx.cred)?;
    if truncates {
        ops::truncate_opened(&file)?;
    }
    Ok(file)
}

/// Checks that this kind of file may be opened as `how` asks, and that the caller has permission.
fn check_open(ctx: &LookupCtx<'_>, place: &Path, how: &OpenHow) -> Result<()> {
    let executes = how.want & perm::EXEC != 0;
    let kind = place.dentry.kind();
    let flags = place.mount.flags();
    match kind {
        FileType::Symlink => return Err(Errno::ELOOP),
        FileType::Dir if how.want & perm::WRITE != 0 => return Err(Errno::EISDIR),
        _ if kind.is_device() && flags.contains(MountFlags::NODEV) => return Err(Errno::EACCES),
        // Only regular files are executed, and not where the mount forbids it.
        _ if executes && (kind != FileType::Regular || flags.contains(MountFlags::NOEXEC)) => {
            return Err(Errno::EACCES);
        }
        _ => {}
    }
    perm::check(&**place.inode(), ctx.cred, how.want)?;
    let attr = place.inode().attr();
    if how.flags.contains(OpenFlags::NOATIME) && !perm::owns(attr, ctx.cred) {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// As [`open_place`], and notifies watchers.
fn open_and_notify(
    admission: Admission,
    place: Path,
    flags: OpenFlags,
    cred: &Cred,
) -> Result<Arc<OpenFile>> {
    let file = open_place(admission, place, flags, cred)?;
    notify::file(&file, event::OPEN);
    Ok(file)
}

/// Makes the open file; permissions have been checked.
pub fn open_place(
    admission: Admission,
    place: Path,
    flags: OpenFlags,
    cred: &Cred,
) -> Result<Arc<OpenFile>> {
    // Allocated first, so that the file is written in place.
    open_in(admission, Room::new()?, place, flags, cred)
}

/// As [`open_place`], of a place that was made for it when there was room for the file already.
pub fn open_made(
    admission: Admission,
    room: Room<OpenFile>,
    place: Path,
    flags: OpenFlags,
    cred: &Cred,
) -> Result<Arc<OpenFile>> {
    open_in(admission, room, place, flags, cred)
}

/// Always inlined: the file is written where it stays.
#[inline(always)]
fn open_in(
    admission: Admission,
    room: Room<OpenFile>,
    place: Path,
    flags: OpenFlags,
    cred: &Cred,
) -> Result<Arc<OpenFile>> {
    let inode = place.inode();
    let direct = flags.contains(OpenFlags::DIRECT);
    let ops: Arc<dyn FileOps> = match place.dentry.kind() {
        FileType::Regular | FileType::Anon => {
            let ops = inode.clone().open(flags)?;
            if direct && !ops.abilities().contains(Abilities::DIRECT) {
                return Err(Errno::EINVAL);
            }
            ops
        }
        // A fifo can get it later, and then has packets.
        FileType::Dir | FileType::Fifo | FileType::Char if direct => return Err(Errno::EINVAL),
        FileType::Dir => directory::ops()?,
        FileType::Symlink => return Err(Errno::ELOOP),
        FileType::Fifo => inode::open_fifo(inode, flags, cred)?,
        FileType::Char => chardev::open_char(inode.attr().rdev(), flags)?,
        FileType::Block | FileType::Socket => return Err(Errno::ENXIO),
    };
    if flags.writable() && place.dentry.kind() == FileType::Regular {
        if let Some(usage) = place.inode().usage() {
            place.mount.check_writable()?;
            usage.get_writer()?;
            return Ok(room.arc(OpenFile::new_writer(admission, ops, place, flags)));
        }
        place.mount.check_writable()?;
    }
    Ok(room.arc(OpenFile::new(admission, ops, place, flags)))
}

/// Opens a new memfd for writing without counting a writer, so that it can be executed while its creator has it open,
/// as on Linux.
pub fn open_memfd(place: Path) -> Result<Arc<OpenFile>> {
    let admission = admit()?;
    let room = Room::new()?;
    let flags = OpenFlags::RDWR | OpenFlags::LARGEFILE;
    if let Some(usage) = place.inode().usage() {
        usage.allow_uncounted_writer();
    }
    let ops = place.inode().clone().open(flags)?;
    Ok(room.arc(OpenFile::new(admission, ops, place, flags)))
}

fn open_path(admission: Admission, place: Path, how: &OpenHow) -> Result<Arc<OpenFile>> {
    try_arc(OpenFile::new(admission, directory::path_ops()?, place, how.flags))
}

fn open_tmpfile(
    admission: Admission,
    ctx: &LookupCtx<'_>,
    at: Fd,
    path: &[u8],
    how: &OpenHow,
) -> Result<Arc<OpenFile>> {
    let dir = namei::lookup(ctx, at, path, how.lookup | LookupFlags::DIRECTORY)?;
    dir.mount.check_writable()?;
    perm::check(&**dir.inode(), ctx.cred, perm::WRITE | perm::EXEC)?;
    let mode = S_IFREG | (how.mode & !ctx.fs.umask());
    let (owner, mode) = perm::new_owner(&**dir.inode(), ctx.cred, mode);
    let linkable = !how.flags.contains(OpenFlags::EXCL);
    let inode = dir.inode().create_tmpfile(mode, owner, linkable)?;
    let name = try_format!("#{}", inode.attr().ino())?;
    let dentry = Dentry::new_unlinked(Some(dir.dentry), name.as_bytes(), inode)?;
    let place = Path { mount: dir.mount, dentry };
    open_and_notify(admission, place, how.flags.difference(OpenFlags::TMPFILE), ctx.cred)
}

/// Opens a file to execute it. Hold a [`DenyWrite`](crate::vfs::object::file::DenyWrite) while it runs.
pub fn open_exec(
    ctx: &LookupCtx<'_>,
    at: Fd,
    path: &[u8],
    lookup: LookupFlags,
) -> Result<Arc<OpenFile>> {
    let admission = admit()?;
    let how = OpenHow::exec(lookup);
    let place = namei::lookup(ctx, at, path, how.lookup)?;
    if place.dentry.kind() == FileType::Symlink {
        return Err(Errno::ELOOP);
    }
    if place.dentry.kind() != FileType::Regular {
        return Err(Errno::EACCES);
    }
    check_open(ctx, &place, &how)?;
    let file = open_place(admission, place, how.flags, ctx.cred)?;
    notify::file(&file, event::OPEN | event::OPEN_EXEC);
    Ok(file)
}
