//! Calls about names and directories: `getdents`, `mkdir`, `unlink`, `rename`, `link`, `chdir`, `getcwd`.

use crate::mm::fallible::TryGrow;
use crate::mm::user;
use crate::process;
use crate::syscall::caller::{Pathname, file, file_any, with_ctx, with_path};
use crate::vfs::namei::{self, LookupFlags, perm};
use crate::vfs::notify::event;
use crate::vfs::ops::{self, RenameFlags};
use crate::vfs::{Capability, DevId, DirEntry, Fd, FileType, Path, directory, notify, touch_file};
use abi::fs::{AT_FDCWD, AtFlags, PATH_MAX};
use abi::{Errno, Result};

/// Most that one `getdents` call gives, whatever room the caller has.
const DENTS_LIMIT: usize = 32 * 1024;

/// Entries are collected in pieces of this many bytes: with any name, one fits.
const PIECE: usize = 1024;

pub fn getdents64(fd: i32, buf: u64, count: u32) -> Result<usize> {
    list(fd, buf, count as usize, |entry, out| {
        // The type, the name, NUL.
        let len = (18 + 1 + entry.name.len() + 1).next_multiple_of(8);
        put(entry, out.get_mut(..len)?, u64::from(entry.kind.dirent_type()) << 16, 19);
        Some(len)
    })
}

pub fn getdents(fd: i32, buf: u64, count: u32) -> Result<usize> {
    list(fd, buf, count as usize, |entry, out| {
        // The name, NUL, and as the last byte the type.
        let len = (18 + entry.name.len() + 2).next_multiple_of(8);
        let out = out.get_mut(..len)?;
        put(entry, out, 0, 18);
        out[len - 1] = entry.kind.dirent_type();
        Some(len)
    })
}

/// Writes what both formats have in common: inode, next cursor, length, then the name at `name_at` and padding. `more`
/// stands behind the length.
#[inline]
fn put(entry: &DirEntry<'_>, out: &mut [u8], more: u64, name_at: usize) {
    // At most 19 + 255 + 1 + 7.
    let len = out.len() as u64;
    let (words, _) = out.as_chunks_mut::<8>();
    if let [ino, next, third, ..] = words {
        *ino = entry.ino.to_le_bytes();
        *next = entry.next.to_le_bytes();
        *third = (len | more).to_le_bytes();
    }
    // The padding; the name goes over some of it, and some of it is the third word.
    if let [_, _, _, .., last] = words {
        *last = [0; 8];
    }
    if let Some(place) = out.get_mut(name_at..name_at + entry.name.len()) {
        place.copy_from_slice(entry.name);
    }
}

/// Collects entries in kernel memory, copies them out, then moves the position; `pack` says how long an entry is, or
/// that it does not fit.
fn list(
    fd: i32,
    buf: u64,
    count: usize,
    pack: impl Fn(&DirEntry<'_>, &mut [u8]) -> Option<usize>,
) -> Result<usize> {
    let file = file(fd)?;
    if file.kind() != FileType::Dir {
        return Err(Errno::ENOTDIR);
    }
    let count = count.min(DENTS_LIMIT);
    let mut piece = [0; PIECE];
    let mut done = 0;
    let mut pos = file.pos().lock();
    loop {
        let room = (count - done).min(PIECE);
        let (mut used, mut full) = (0, false);
        let next = directory::iterate(&file, *pos, |entry| {
            let packed = pack(&entry, &mut piece[used..room]);
            used += packed.unwrap_or(0);
            full = packed.is_none();
            !full
        });
        let copied = next.and_then(|next| {
            if full && used == 0 && done == 0 {
                return Err(Errno::EINVAL);
            }
            user::write_bytes(buf.wrapping_add(done as u64), &piece[..used])?;
            Ok(next)
        });
        match copied {
            Ok(next) => *pos = next,
            // What was copied before counts.
            Err(_) if done != 0 => break,
            Err(error) => return Err(error),
        }
        done += used;
        if !full || room < PIECE {
            break;
        }
    }
    touch_file(&file);
    notify::file(&file, event::ACCESS);
    Ok(done)
}

pub fn mkdir(path: u64, mode: u32) -> Result<()> {
    mkdirat(AT_FDCWD, path.into(), mode)
}

pub fn mkdirat(at: i32, path: Pathname<'_>, mode: u32) -> Result<()> {
    with_path(path, |path| with_ctx(|ctx| ops::mkdir(ctx, Fd(at), path, mode)))
}

pub fn mknod(path: u64, mode: u32, dev: u64) -> Result<()> {
    mknodat(AT_FDCWD, path, mode, dev)
}

pub fn mknodat(at: i32, path: u64, mode: u32, dev: u64) -> Result<()> {
    // The call takes 32 bits of device number, and some device node kinds none.
    let dev = DevId(dev & u64::from(u32::MAX));
    let kind = FileType::from_mode(mode & abi::fs::S_IFMT);
    let dev = if kind.is_some_and(FileType::is_device) { dev } else { DevId::NONE };
    with_path(path, |path| with_ctx(|ctx| ops::mknod(ctx, Fd(at), path, mode & 0xffff, dev)))
}

pub fn rmdir(path: u64) -> Result<()> {
    unlinkat(AT_FDCWD, path.into(), AtFlags::REMOVEDIR.bits())
}

pub fn unlink(path: u64) -> Result<()> {
    unlinkat(AT_FDCWD, path.into(), 0)
}

pub fn unlinkat(at: i32, path: Pathname<'_>, flags: u32) -> Result<()> {
    if flags & !AtFlags::REMOVEDIR.bits() != 0 {
        return Err(Errno::EINVAL);
    }
    with_path(path, |path| {
        with_ctx(|ctx| {
            if flags == 0 { ops::unlink(ctx, Fd(at), path) } else { ops::rmdir(ctx, Fd(at), path) }
        })
    })
}

pub fn symlink(target: u64, path: u64) -> Result<()> {
    symlinkat(target.into(), AT_FDCWD, path.into())
}

pub fn symlinkat(target: Pathname<'_>, at: i32, path: Pathname<'_>) -> Result<()> {
    with_path(target, |target| {
        with_path(path, |path| with_ctx(|ctx| ops::symlink(ctx, target, Fd(at), path)))
    })
}

pub fn link(old: u64, new: u64) -> Result<()> {
    linkat(AT_FDCWD, old.into(), AT_FDCWD, new.into(), 0)
}

pub fn linkat(
    old_at: i32,
    old: Pathname<'_>,
    new_at: i32,
    new: Pathname<'_>,
    flags: u32,
) -> Result<()> {
    let allowed = AtFlags::SYMLINK_FOLLOW | AtFlags::EMPTY_PATH;
    let flags = AtFlags::from_bits(flags).filter(|flags| allowed.contains(*flags));
    let flags = flags.ok_or(Errno::EINVAL)?;
    let mut lookup = LookupFlags::empty();
    lookup.set(LookupFlags::FOLLOW, flags.contains(AtFlags::SYMLINK_FOLLOW));
    lookup.set(LookupFlags::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    with_path(old, |old| {
        with_ctx(|ctx| {
            let by_fd = old.is_empty() && flags.contains(AtFlags::EMPTY_PATH);
            if by_fd && !ctx.cred.capable(Capability::DAC_READ_SEARCH) {
                return Err(Errno::ENOENT);
            }
            let old = namei::lookup(ctx, Fd(old_at), old, lookup)?;
            with_path(new, |new| ops::link(ctx, &old, Fd(new_at), new))
        })
    })
}

pub fn rename(old: u64, new: u64) -> Result<()> {
    renameat2(AT_FDCWD, old.into(), AT_FDCWD, new.into(), 0)
}

pub fn renameat(old_at: i32, old: u64, new_at: i32, new: u64) -> Result<()> {
    renameat2(old_at, old.into(), new_at, new.into(), 0)
}

pub fn renameat2(
    old_at: i32,
    old: Pathname<'_>,
    new_at: i32,
    new: Pathname<'_>,
    flags: u32,
) -> Result<()> {
    let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
    with_path(old, |old| {
        with_path(new, |new| {
            with_ctx(|ctx| ops::rename(ctx, (Fd(old_at), old), (Fd(new_at), new), flags))
        })
    })
}

/// A directory that the caller may enter.
fn directory_at(path: u64) -> Result<Path> {
    with_path(path, |path| {
        with_ctx(|ctx| {
            let flags = LookupFlags::FOLLOW | LookupFlags::DIRECTORY;
            let place = namei::lookup(ctx, Fd(AT_FDCWD), path, flags)?;
            perm::check(&**place.inode(), ctx.cred, perm::EXEC)?;
            Ok(place)
        })
    })
}

pub fn chdir(path: u64) -> Result<()> {
    let place = directory_at(path)?;
    process::current().fs().set_cwd(place);
    Ok(())
}

pub fn fchdir(fd: i32) -> Result<()> {
    let file = file_any(fd)?;
    if file.kind() != FileType::Dir {
        return Err(Errno::ENOTDIR);
    }
    perm::check(&**file.inode(), &process::current().cred(), perm::EXEC)?;
    process::current().fs().set_cwd(file.path().clone());
    Ok(())
}

pub fn chroot(path: u64) -> Result<()> {
    let place = directory_at(path)?;
    if !process::current().cred().capable(Capability::SYS_CHROOT) {
        return Err(Errno::EPERM);
    }
    process::current().fs().set_root(place);
    Ok(())
}

pub fn getcwd(buf: u64, size: usize) -> Result<usize> {
    let (root, cwd) = {
        let task = process::current();
        let fs = task.fs();
        (fs.root(), fs.cwd())
    };
    let mut text = cwd.to_cwd(&root)?;
    text.try_push(0)?;
    if text.len() > PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if text.len() > size {
        return Err(Errno::ERANGE);
    }
    user::write_bytes(buf, &text)?;
    Ok(text.len())
}

pub fn umask(mask: u32) -> u32 {
    process::current().fs().set_umask(mask)
}
