//! Calls that name one object: `open`, `stat`, `access`, `chmod`, `chown`, `utimensat`, `readlink`.

use super::install::reserved;
use crate::mm::fallible::try_arc;
use crate::mm::user::{self, UserPtr};
use crate::syscall::caller::{Pathname, file, file_any, with_ctx, with_path};
use crate::vfs::namei::{self, LookupFlags, perm};
use crate::vfs::open::{self as opening, OpenHow};
use crate::vfs::ops::{self, Change};
use crate::vfs::{CapSet, Fd, FileType, Metadata, MountFlags, OpenFile, Path, Super, Timestamp};
use abi::fs::{AT_FDCWD, AtFlags, OpenFlags, Stat, Statfs, Statx, StatxTimestamp};
use abi::time::{Timespec, Timeval};
use abi::{Errno, Result};
use alloc::sync::Arc;

pub fn open(path: u64, flags: u32, mode: u32) -> Result<i32> {
    openat(AT_FDCWD, path, flags, mode)
}

pub fn creat(path: u64, mode: u32) -> Result<i32> {
    let flags = OpenFlags::CREAT | OpenFlags::WRONLY | OpenFlags::TRUNC;
    openat(AT_FDCWD, path, flags.bits(), mode)
}

pub fn openat(at: i32, path: u64, flags: u32, mode: u32) -> Result<i32> {
    open_how(at, path.into(), &OpenHow::classic(flags, mode)?)
}

/// Size of `struct open_how` as it is now; larger ones must be zero beyond.
const HOW_SIZE: usize = size_of::<abi::fs::OpenHow>();

pub fn openat2(at: i32, path: u64, how: UserPtr<abi::fs::OpenHow>, size: usize) -> Result<i32> {
    open_how(at, path.into(), &read_how(how, size)?)
}

/// What `openat2` is told in user memory.
pub fn read_how(how: UserPtr<abi::fs::OpenHow>, size: usize) -> Result<OpenHow> {
    if size < HOW_SIZE {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    let raw: abi::fs::OpenHow = user::read_extensible(how.addr(), size)?;
    OpenHow::strict(&raw)
}

/// Opens a file: its descriptor.
pub fn open_how(at: i32, path: Pathname<'_>, how: &OpenHow) -> Result<i32> {
    let cloexec = how.flags().contains(OpenFlags::CLOEXEC);
    with_path(path, |path| {
        // No name at all is ENOENT in any case.
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        // Without a descriptor nothing is made, emptied or waited for.
        let open = |_| with_ctx(|ctx| opening::open(ctx, Fd(at), path, how));
        reserved(cloexec, open).map(|fd| fd.0)
    })
}

/// Opens a file without a descriptor.
#[inline]
pub fn open_file(at: i32, path: Pathname<'_>, how: &OpenHow) -> Result<Arc<OpenFile>> {
    with_path(path, |path| with_ctx(|ctx| opening::open(ctx, Fd(at), path, how)))
}

fn to_stat(meta: &Metadata) -> Stat {
    let times = &meta.times;
    Stat {
        dev: meta.dev.0,
        ino: meta.ino,
        nlink: u64::from(meta.nlink),
        mode: meta.mode,
        uid: meta.uid,
        gid: meta.gid,
        rdev: meta.rdev.0,
        size: meta.size.cast_signed(),
        blksize: i64::from(meta.blksize),
        blocks: meta.blocks.cast_signed(),
        atime: times.atime.secs,
        atime_nsec: u64::from(times.atime.nanos),
        mtime: times.mtime.secs,
        mtime_nsec: u64::from(times.mtime.nanos),
        ctime: times.ctime.secs,
        ctime_nsec: u64::from(times.ctime.nanos),
        ..Stat::default()
    }
}

pub fn stat(path: u64, out: UserPtr<Stat>) -> Result<()> {
    stat_path(AT_FDCWD, path, LookupFlags::FOLLOW, out)
}

pub fn lstat(path: u64, out: UserPtr<Stat>) -> Result<()> {
    stat_path(AT_FDCWD, path, LookupFlags::empty(), out)
}

pub fn fstat(fd: i32, out: UserPtr<Stat>) -> Result<()> {
    let file = file_any(fd)?;
    out.write(&to_stat(&file.inode().meta()))
}

pub fn newfstatat(at: i32, path: u64, out: UserPtr<Stat>, flags: u32) -> Result<()> {
    let allowed = AtFlags::SYMLINK_NOFOLLOW
        | AtFlags::NO_AUTOMOUNT
        | AtFlags::EMPTY_PATH
        | AtFlags::STATX_FORCE_SYNC
        | AtFlags::STATX_DONT_SYNC;
    let flags = at_flags(flags, allowed)?;
    if flags.contains(AtFlags::EMPTY_PATH) && at >= 0 && is_empty(path)? {
        return fstat(at, out);
    }
    stat_path(at, path, lookup_flags(flags), out)
}

fn stat_path(at: i32, path: u64, lookup: LookupFlags, out: UserPtr<Stat>) -> Result<()> {
    let meta = with_path(path, |path| {
        with_ctx(|ctx| Ok(namei::lookup(ctx, Fd(at), path, lookup)?.inode().meta()))
    })?;
    out.write(&to_stat(&meta))
}

/// Whether the path is empty; NULL counts as empty with `AT_EMPTY_PATH`.
fn is_empty<'a>(path: impl Into<Pathname<'a>>) -> Result<bool> {
    let path = match path.into() {
        Pathname::At(0) => return Ok(true),
        Pathname::At(addr) => addr,
        Pathname::Read(path) => return Ok(path.is_empty()),
    };
    let mut first = [0u8];
    user::read_bytes(path, &mut first)?;
    Ok(first[0] == 0)
}

fn at_flags(raw: u32, allowed: AtFlags) -> Result<AtFlags> {
    AtFlags::from_bits(raw).filter(|flags| allowed.contains(*flags)).ok_or(Errno::EINVAL)
}

/// For the calls that follow links unless told otherwise.
fn lookup_flags(flags: AtFlags) -> LookupFlags {
    let mut lookup = LookupFlags::FOLLOW;
    lookup.set(LookupFlags::FOLLOW, !flags.contains(AtFlags::SYMLINK_NOFOLLOW));
    lookup.set(LookupFlags::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    lookup
}

/// Resolves a path argument.
pub(super) fn find<'a>(
    at: i32,
    path: impl Into<Pathname<'a>>,
    lookup: LookupFlags,
) -> Result<Path> {
    with_path(path, |path| with_ctx(|ctx| namei::lookup(ctx, Fd(at), path, lookup)))
}

pub fn statx(
    at: i32,
    path: Pathname<'_>,
    flags: u32,
    mask: u32,
    out: UserPtr<Statx>,
) -> Result<()> {
    const RESERVED: u32 = 1 << 31;
    let allowed = AtFlags::SYMLINK_NOFOLLOW
        | AtFlags::NO_AUTOMOUNT
        | AtFlags::EMPTY_PATH
        | AtFlags::STATX_FORCE_SYNC
        | AtFlags::STATX_DONT_SYNC;
    let both = AtFlags::STATX_FORCE_SYNC | AtFlags::STATX_DONT_SYNC;
    let flags = at_flags(flags, allowed).and_then(|flags| {
        if mask & RESERVED != 0 || flags.contains(both) { Err(Errno::EINVAL) } else { Ok(flags) }
    })?;
    let place = if flags.contains(AtFlags::EMPTY_PATH) && at >= 0 && is_empty(path)? {
        file_any(at)?.path().clone()
    } else {
        find(at, path, lookup_flags(flags))?
    };
    out.write(&to_statx(&place))
}

fn to_statx(place: &Path) -> Statx {
    const BASIC: u32 = 0x7ff;
    const BTIME: u32 = 0x800;
    const MNT_ID: u32 = 0x1000;
    const ATTR_MOUNT_ROOT: u64 = 0x2000;
    const ATTRS_KNOWN: u64 = 0x20_3070;
    let meta = place.inode().meta();
    let time =
        |t: Timestamp| StatxTimestamp { sec: t.secs, nsec: t.nanos, ..StatxTimestamp::default() };
    let is_mount_root = Arc::ptr_eq(&place.dentry, place.mount.root());
    Statx {
        mask: BASIC | BTIME | MNT_ID,
        blksize: meta.blksize,
        attributes: if is_mount_root { ATTR_MOUNT_ROOT } else { 0 },
        nlink: meta.nlink,
        uid: meta.uid,
        gid: meta.gid,
        // Type and permissions fit 16 bits.
        mode: meta.mode as u16,
        ino: meta.ino,
        size: meta.size,
        blocks: meta.blocks,
        attributes_mask: ATTRS_KNOWN,
        atime: time(meta.times.atime),
        btime: time(meta.times.btime),
        ctime: time(meta.times.ctime),
        mtime: time(meta.times.mtime),
        rdev_major: meta.rdev.major(),
        rdev_minor: meta.rdev.minor(),
        dev_major: meta.dev.major(),
        dev_minor: meta.dev.minor(),
        mnt_id: u64::from(place.mount.id()),
        ..Statx::default()
    }
}

pub fn access(path: u64, mode: u32) -> Result<()> {
    faccessat2(AT_FDCWD, path, mode, 0)
}

pub fn faccessat(at: i32, path: u64, mode: u32) -> Result<()> {
    faccessat2(at, path, mode, 0)
}

pub fn faccessat2(at: i32, path: u64, mode: u32, flags: u32) -> Result<()> {
    if mode & !7 != 0 {
        return Err(Errno::EINVAL);
    }
    let allowed = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let flags = at_flags(flags, allowed)?;
    with_path(path, |path| {
        with_ctx(|ctx| {
            let mut ctx = *ctx;
            let real;
            if !flags.contains(AtFlags::EACCESS) {
                real = try_arc(as_real_user(ctx.cred))?;
                ctx.cred = &real;
            }
            let place = namei::lookup(&ctx, Fd(at), path, lookup_flags(flags))?;
            let no_exec = place.mount.flags().contains(MountFlags::NOEXEC);
            if mode & perm::EXEC != 0 && place.dentry.kind() == FileType::Regular && no_exec {
                return Err(Errno::EACCES);
            }
            perm::check(&**place.inode(), ctx.cred, mode)?;
            perm::check_read_only(&place, mode)
        })
    })
}

/// The identity that `access` asks about: the real ids, with the capabilities they would have.
fn as_real_user(cred: &crate::vfs::Cred) -> crate::vfs::Cred {
    let mut real = cred.clone();
    real.fsuid = cred.uid;
    real.fsgid = cred.gid;
    real.effective = if cred.uid == 0 { cred.permitted } else { CapSet::EMPTY };
    real
}

pub fn chmod(path: u64, mode: u32) -> Result<()> {
    fchmodat2(AT_FDCWD, path, mode, 0)
}

pub fn fchmodat(at: i32, path: u64, mode: u32) -> Result<()> {
    fchmodat2(at, path, mode, 0)
}

pub fn fchmodat2(at: i32, path: u64, mode: u32, flags: u32) -> Result<()> {
    let flags = at_flags(flags, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH)?;
    let place = find(at, path, lookup_flags(flags))?;
    with_ctx(|ctx| ops::chmod(&place, mode, ctx.cred))
}

pub fn fchmod(fd: i32, mode: u32) -> Result<()> {
    let file = file(fd)?;
    with_ctx(|ctx| ops::chmod(file.path(), mode, ctx.cred))
}

pub fn chown(path: u64, uid: u32, gid: u32) -> Result<()> {
    fchownat(AT_FDCWD, path, uid, gid, 0)
}

pub fn lchown(path: u64, uid: u32, gid: u32) -> Result<()> {
    fchownat(AT_FDCWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW.bits())
}

pub fn fchownat(at: i32, path: u64, uid: u32, gid: u32, flags: u32) -> Result<()> {
    let flags = at_flags(flags, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH)?;
    let place = find(at, path, lookup_flags(flags))?;
    chown_path(&place, uid, gid)
}

pub fn fchown(fd: i32, uid: u32, gid: u32) -> Result<()> {
    let file = file(fd)?;
    chown_path(file.path(), uid, gid)
}

/// An id of -1 stays as it is.
fn chown_path(place: &Path, uid: u32, gid: u32) -> Result<()> {
    let given = |id| (id != u32::MAX).then_some(id);
    with_ctx(|ctx| ops::chown(place, given(uid), given(gid), ctx.cred))
}

const UTIME_NOW: i64 = 0x3fff_ffff;
const UTIME_OMIT: i64 = 0x3fff_fffe;

fn change(time: Timespec) -> Result<Change> {
    match time.nsec {
        UTIME_NOW => Ok(Change::Now),
        UTIME_OMIT => Ok(Change::Omit),
        // Checked: below a second.
        nanos @ 0..=999_999_999 => {
            Ok(Change::To(Timestamp { secs: time.sec, nanos: nanos as u32 }))
        }
        _ => Err(Errno::EINVAL),
    }
}

pub fn utimensat(at: i32, path: u64, times: UserPtr<[Timespec; 2]>, flags: u32) -> Result<()> {
    let (atime, mtime) = match times.non_null() {
        Some(times) => {
            let [atime, mtime] = times.read()?;
            (change(atime)?, change(mtime)?)
        }
        None => (Change::Now, Change::Now),
    };
    if (atime, mtime) == (Change::Omit, Change::Omit) {
        return Ok(());
    }
    if path == 0 && at != AT_FDCWD {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let file = file(at)?;
        return with_ctx(|ctx| ops::set_times(file.path(), atime, mtime, ctx.cred));
    }
    let flags = at_flags(flags, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH)?;
    let place = find(at, path, lookup_flags(flags))?;
    with_ctx(|ctx| ops::set_times(&place, atime, mtime, ctx.cred))
}

pub fn futimesat(at: i32, path: u64, times: UserPtr<[Timeval; 2]>) -> Result<()> {
    let change = |time: Timeval| match time.usec {
        usec @ 0..=999_999 => {
            Ok(Change::To(Timestamp { secs: time.sec, nanos: usec as u32 * 1000 }))
        }
        _ => Err(Errno::EINVAL),
    };
    let (atime, mtime) = match times.non_null() {
        Some(times) => {
            let [atime, mtime] = times.read()?;
            (change(atime)?, change(mtime)?)
        }
        None => (Change::Now, Change::Now),
    };
    set_times(at, path, atime, mtime)
}

pub fn utimes(path: u64, times: UserPtr<[Timeval; 2]>) -> Result<()> {
    futimesat(AT_FDCWD, path, times)
}

pub fn utime(path: u64, times: UserPtr<[i64; 2]>) -> Result<()> {
    let to = |secs| Change::To(Timestamp { secs, nanos: 0 });
    let (atime, mtime) = match times.non_null() {
        Some(times) => {
            let [atime, mtime] = times.read()?;
            (to(atime), to(mtime))
        }
        None => (Change::Now, Change::Now),
    };
    set_times(AT_FDCWD, path, atime, mtime)
}

fn set_times(at: i32, path: u64, atime: Change, mtime: Change) -> Result<()> {
    let place = if path == 0 && at != AT_FDCWD {
        file(at)?.path().clone()
    } else {
        find(at, path, LookupFlags::FOLLOW)?
    };
    with_ctx(|ctx| ops::set_times(&place, atime, mtime, ctx.cred))
}

pub fn readlink(path: u64, buf: u64, size: i32) -> Result<usize> {
    readlinkat(AT_FDCWD, path, buf, size)
}

pub fn readlinkat(at: i32, path: u64, buf: u64, size: i32) -> Result<usize> {
    let size = usize::try_from(size).ok().filter(|&size| size > 0).ok_or(Errno::EINVAL)?;
    let was_empty = is_empty(path)?;
    let place = find(at, path, LookupFlags::EMPTY)?;
    if place.dentry.kind() != FileType::Symlink {
        return Err(if was_empty { Errno::ENOENT } else { Errno::EINVAL });
    }
    if was_empty && at == AT_FDCWD {
        return Err(Errno::ENOENT);
    }
    crate::vfs::touch_atime(&place.mount, &**place.inode());
    let text = place.inode().readlink()?;
    let text = &text[..text.len().min(size)];
    user::write_bytes(buf, text)?;
    Ok(text.len())
}

/// `statfs` of the instance that `sb` is, seen through a mount with `flags`.
fn to_statfs(sb: &Super, flags: MountFlags) -> Statfs {
    const ST_VALID: i64 = 0x20;
    const ST_RDONLY: i64 = 1;
    const ST_NOSUID: i64 = 2;
    const ST_NODEV: i64 = 4;
    const ST_NOEXEC: i64 = 8;
    const ST_NOATIME: i64 = 0x400;
    const ST_NODIRATIME: i64 = 0x800;
    const ST_RELATIME: i64 = 0x1000;
    const ST_NOSYMFOLLOW: i64 = 0x2000;
    let mut out = sb.fs().statfs();
    out.flags = ST_VALID;
    for (flag, bit) in [
        (MountFlags::RDONLY, ST_RDONLY),
        (MountFlags::NOSUID, ST_NOSUID),
        (MountFlags::NODEV, ST_NODEV),
        (MountFlags::NOEXEC, ST_NOEXEC),
        (MountFlags::NOATIME, ST_NOATIME),
        (MountFlags::NODIRATIME, ST_NODIRATIME),
        (MountFlags::RELATIME, ST_RELATIME),
        (MountFlags::NOSYMFOLLOW, ST_NOSYMFOLLOW),
    ] {
        if flags.contains(flag) {
            out.flags |= bit;
        }
    }
    if sb.read_only() {
        out.flags |= ST_RDONLY;
    }
    out
}

pub fn statfs(path: u64, out: UserPtr<Statfs>) -> Result<()> {
    let place = find(AT_FDCWD, path, LookupFlags::FOLLOW)?;
    out.write(&to_statfs(place.mount.super_block(), place.mount.flags()))
}

pub fn fstatfs(fd: i32, out: UserPtr<Statfs>) -> Result<()> {
    let file = file_any(fd)?;
    let mount = &file.path().mount;
    out.write(&to_statfs(mount.super_block(), mount.flags()))
}
