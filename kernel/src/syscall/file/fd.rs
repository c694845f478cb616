//! Descriptors: `close`, `dup`, `fcntl`, `flock`, the generic part of `ioctl`.

use super::install::{install, install_shared};
use crate::drivers::tty;
use crate::fs::pipe;
use crate::fs::procfs::ns;
use crate::fs::tmpfs::TmpfsInode;
use crate::mm::user::UserPtr;
use crate::net::{self, device};
use crate::process;
use crate::syscall::caller::{fd_limit, file, file_any, with_files};
use crate::vfs::object::locks::{self, LockKind, RecordLock, WholeLock};
use crate::vfs::object::owner::{PidRef, SignalOwner};
use crate::vfs::object::seals::Seals;
use crate::vfs::{Abilities, Capability, Fd, FileType, Files, OpenFile};
use abi::fs::{Flock, OpenFlags};
use abi::net::siocs;
use abi::tty::{FIONREAD, TIOCGPTPEER};
use abi::{Errno, Result};
use alloc::sync::Arc;

pub fn close(fd: i32) -> Result<()> {
    with_files(|files| files.close(Fd(fd)))
}

pub fn close_range(first: u32, last: u32, flags: u32) -> Result<()> {
    const UNSHARE: u32 = 2;
    const CLOEXEC: u32 = 4;
    if flags & !(UNSHARE | CLOEXEC) != 0 || first > last {
        return Err(Errno::EINVAL);
    }
    // Who has it alone keeps it, and with it the record locks.
    if flags & UNSHARE != 0 && with_files(|files| files.is_shared()) {
        let own = with_files(|files| files.fork())?;
        drop(process::current().set_files(Some(Files::new(own)?)));
    }
    with_files(|files| files.close_range(first, last, flags & CLOEXEC != 0));
    Ok(())
}

pub fn dup(fd: i32) -> Result<i32> {
    let file = file_any(fd)?;
    install_shared(file, false).map(|fd| fd.0)
}

pub fn dup2(old: i32, new: i32) -> Result<i32> {
    if old == new {
        return file_any(old).map(|_| new);
    }
    duplicate(old, new, false)
}

pub fn dup3(old: i32, new: i32, flags: u32) -> Result<i32> {
    let cloexec = OpenFlags::CLOEXEC.bits();
    if flags & !cloexec != 0 || old == new {
        return Err(Errno::EINVAL);
    }
    duplicate(old, new, flags & cloexec != 0)
}

fn duplicate(old: i32, new: i32, cloexec: bool) -> Result<i32> {
    let limit = fd_limit();
    if usize::try_from(new).map_or(true, |new| new >= limit) {
        return Err(Errno::EBADF);
    }
    let file = file_any(old)?;
    with_files(|files| files.install_at(Fd(new), file, cloexec, limit))?;
    Ok(new)
}

mod cmd {
    pub const DUPFD: u32 = 0;
    pub const GETFD: u32 = 1;
    pub const SETFD: u32 = 2;
    pub const GETFL: u32 = 3;
    pub const SETFL: u32 = 4;
    pub const GETLK: u32 = 5;
    pub const SETLK: u32 = 6;
    pub const SETLKW: u32 = 7;
    pub const SETOWN: u32 = 8;
    pub const GETOWN: u32 = 9;
    pub const SETSIG: u32 = 10;
    pub const GETSIG: u32 = 11;
    pub const SETOWN_EX: u32 = 15;
    pub const GETOWN_EX: u32 = 16;
    pub const OFD_GETLK: u32 = 36;
    pub const OFD_SETLK: u32 = 37;
    pub const OFD_SETLKW: u32 = 38;
    pub const SETLEASE: u32 = 1024;
    pub const GETLEASE: u32 = 1025;
    pub const NOTIFY: u32 = 1026;
    pub const DUPFD_QUERY: u32 = 1027;
    pub const DUPFD_CLOEXEC: u32 = 1030;
    pub const SETPIPE_SZ: u32 = 1031;
    pub const GETPIPE_SZ: u32 = 1032;
    pub const ADD_SEALS: u32 = 1033;
    pub const GET_SEALS: u32 = 1034;
}

const FD_CLOEXEC: u64 = 1;
const F_UNLCK: i64 = 2;

pub fn fcntl(fd: i32, command: u32, arg: u64) -> Result<i64> {
    let file = file_any(fd)?;
    match command {
        cmd::DUPFD => return dup_from(file, arg, false),
        cmd::DUPFD_CLOEXEC => return dup_from(file, arg, true),
        cmd::DUPFD_QUERY => {
            // The argument is a descriptor: its low 32 bits.
            let other = file_any(arg as i32)?;
            return Ok(i64::from(Arc::ptr_eq(&file, &other)));
        }
        cmd::GETFD => return with_files(|files| files.cloexec(Fd(fd))).map(i64::from),
        cmd::SETFD => {
            with_files(|files| files.set_cloexec(Fd(fd), arg & FD_CLOEXEC != 0))?;
            return Ok(0);
        }
        cmd::GETFL => return Ok(i64::from(file.flags().bits())),
        _ if file.is_path() => return Err(Errno::EBADF),
        _ => {}
    }
    match command {
        cmd::SETFL => set_flags(&file, fd, OpenFlags::from_bits_truncate(arg as u32)).map(|()| 0),
        cmd::GETLK | cmd::OFD_GETLK => get_lock(&file, command, arg),
        cmd::SETLK | cmd::SETLKW | cmd::OFD_SETLK | cmd::OFD_SETLKW => {
            set_lock(fd, &file, command, arg)
        }
        cmd::SETOWN..=cmd::GETSIG | cmd::SETOWN_EX | cmd::GETOWN_EX => owner(&file, command, arg),
        cmd::GETLEASE => Ok(F_UNLCK),
        cmd::SETLEASE if file.kind() == FileType::Regular && arg as i64 == F_UNLCK => {
            Err(Errno::EAGAIN)
        }
        // The argument is an int.
        cmd::NOTIFY => {
            with_files(|files| process::signal::notify(&file, files, fd, arg as u32)).map(|()| 0)
        }
        cmd::SETPIPE_SZ => {
            let bytes = u32::try_from(arg).map_err(|_| Errno::EINVAL)?;
            Ok(pipe::set_size(&file, bytes, &process::current().cred())? as i64)
        }
        cmd::GETPIPE_SZ => Ok(pipe::size(&file)? as i64),
        cmd::ADD_SEALS => {
            if !file.writable() {
                return Err(Errno::EPERM);
            }
            // The argument is an unsigned int: its low 32 bits.
            let seals = Seals::from_raw(arg as u32)?;
            sealable(&file)?.add_seals(seals).map(|()| 0)
        }
        cmd::GET_SEALS => sealable(&file).map(|_| i64::from(file.inode().seals().raw())),
        _ => Err(Errno::EINVAL),
    }
}

/// The inode that keeps the file's seals: only regular files of tmpfs have some.
fn sealable(file: &OpenFile) -> Result<&TmpfsInode> {
    let inode = file.inode().downcast::<TmpfsInode>();
    inode.filter(|_| file.kind() == FileType::Regular).ok_or(Errno::EINVAL)
}

fn dup_from(file: Arc<OpenFile>, from: u64, cloexec: bool) -> Result<i64> {
    let limit = fd_limit();
    let from = usize::try_from(from).ok().filter(|&from| from < limit).ok_or(Errno::EINVAL)?;
    with_files(|files| files.add(from, file, cloexec, limit)).map(|fd| i64::from(fd.0))
}

fn set_flags(file: &OpenFile, fd: i32, flags: OpenFlags) -> Result<()> {
    let changeable =
        OpenFlags::APPEND | OpenFlags::NONBLOCK | OpenFlags::DIRECT | OpenFlags::NOATIME;
    let turns_on_noatime =
        flags.contains(OpenFlags::NOATIME) && !file.flags().contains(OpenFlags::NOATIME);
    if turns_on_noatime
        && !crate::vfs::namei::perm::owns(file.inode().attr(), &process::current().cred())
    {
        return Err(Errno::EPERM);
    }
    let can_be_direct =
        file.kind() == FileType::Fifo || file.ops().abilities().contains(Abilities::DIRECT);
    if flags.contains(OpenFlags::DIRECT) && !can_be_direct {
        return Err(Errno::EINVAL);
    }
    file.ops().set_flags(file, flags)?;
    set_async(file, fd, flags.contains(OpenFlags::ASYNC))?;
    file.set_flags(changeable, flags);
    Ok(())
}

/// O_ASYNC, by this descriptor: whether the file knows such a thing, or had nothing to change.
fn set_async(file: &OpenFile, fd: i32, on: bool) -> Result<bool> {
    if file.flags().contains(OpenFlags::ASYNC) == on {
        return Ok(true);
    }
    if !file.ops().abilities().contains(Abilities::TELLS) {
        return Ok(false);
    }
    if on {
        file.change_signal_owner(|owner| owner.fd = fd)?;
    }
    file.set_flags(OpenFlags::ASYNC, if on { OpenFlags::ASYNC } else { OpenFlags::empty() });
    file.ops().signals_changed(file, Some(fd)).inspect_err(|_| {
        file.set_flags(OpenFlags::ASYNC, OpenFlags::empty());
    })?;
    Ok(true)
}

fn owner(file: &OpenFile, command: u32, arg: u64) -> Result<i64> {
    let mut owner = file.signal_owner();
    let asks = matches!(command, cmd::GETOWN | cmd::GETOWN_EX);
    if asks && !is_there(owner.kind, owner.id) {
        owner.id = PidRef::default();
    }
    match command {
        cmd::GETOWN => {
            let id = i64::from(owner.id.number);
            return Ok(if owner.kind == SignalOwner::GROUP { -id } else { id });
        }
        cmd::GETSIG => return Ok(i64::from(owner.signal)),
        cmd::GETOWN_EX => {
            UserPtr::<[i32; 2]>::new(arg).write(&[owner.kind, owner.id.number])?;
            return Ok(0);
        }
        cmd::SETOWN_EX => {
            let [kind, id] = UserPtr::<[i32; 2]>::new(arg).read()?;
            if !(0..=2).contains(&kind) {
                return Err(Errno::EINVAL);
            }
            name_owner(file, kind, reference(id)?)?;
        }
        cmd::SETSIG => {
            let signal = i32::try_from(arg).ok().filter(|s| (0..=64).contains(s));
            let signal = signal.ok_or(Errno::EINVAL)?;
            file.change_signal_owner(|owner| owner.signal = signal)?;
        }
        _ => {
            // A negative id names a group; the low 32 bits are the argument.
            let id = arg as i32;
            let kind = if id < 0 { SignalOwner::GROUP } else { SignalOwner::PROCESS };
            name_owner(file, kind, reference(id.checked_abs().ok_or(Errno::EINVAL)?)?)?;
        }
    }
    file.ops().signals_changed(file, None)?;
    Ok(0)
}

/// The caller names the owner of a file's signals.
fn name_owner(file: &OpenFile, kind: i32, id: PidRef) -> Result<()> {
    let uids = process::current().cred().uids();
    file.change_signal_owner(|owner| owner.name(kind, id, uids))
}

/// Names whoever has a number, of whichever kind: a process that leads no group may lead one later. Nobody for 0.
fn reference(number: i32) -> Result<PidRef> {
    match number {
        0 => Ok(PidRef::default()),
        _ => process::reference(number).ok_or(Errno::ESRCH),
    }
}

/// Whether there is a process, a group or a thread that a file's signals may go to.
fn is_there(kind: i32, id: PidRef) -> bool {
    match kind {
        SignalOwner::PROCESS => process::lookup(id).is_some(),
        SignalOwner::GROUP => process::lookup_group(id).is_some(),
        _ => process::lookup_task(id).is_some(),
    }
}

/// Decodes `struct flock` into a byte range.
fn record_lock(file: &OpenFile, command: u32, raw: &Flock) -> Result<RecordLock> {
    let base = match raw.whence {
        0 => 0,
        1 => i64::try_from(*file.pos().lock()).map_err(|_| Errno::EOVERFLOW)?,
        2 => i64::try_from(file.inode().size()).map_err(|_| Errno::EOVERFLOW)?,
        _ => return Err(Errno::EINVAL),
    };
    let kind = match raw.kind {
        0 => LockKind::Read,
        1 | 2 => LockKind::Write,
        _ => return Err(Errno::EINVAL),
    };
    let ofd = matches!(command, cmd::OFD_GETLK | cmd::OFD_SETLK | cmd::OFD_SETLKW);
    if ofd && raw.pid != 0 {
        return Err(Errno::EINVAL);
    }
    let start = base.checked_add(raw.start).ok_or(Errno::EOVERFLOW)?;
    let range = locks::range(start, raw.len)?;
    let owner = if ofd {
        core::ptr::from_ref(file) as usize
    } else {
        with_files(|files| files.lock_owner())
    };
    let pid = if ofd { -1 } else { process::current().process().pid() };
    Ok(RecordLock { kind, range, owner, pid })
}

fn get_lock(file: &OpenFile, command: u32, arg: u64) -> Result<i64> {
    let ptr = UserPtr::<Flock>::new(arg);
    let mut raw = ptr.read()?;
    let asks_for_own = raw.kind == 2;
    if asks_for_own && command != cmd::OFD_GETLK {
        return Err(Errno::EINVAL);
    }
    let wanted = record_lock(file, command, &raw)?;
    let locks = file.inode().attr().locks();
    let found = locks
        .and_then(|locks| if asks_for_own { locks.own(&wanted) } else { locks.conflict(&wanted) });
    match found {
        None => raw.kind = 2,
        Some(held) => {
            raw.kind = if held.kind == LockKind::Write { 1 } else { 0 };
            raw.whence = 0;
            raw.start = held.range.start.cast_signed();
            raw.len = if held.range.end > i64::MAX as u64 {
                0
            } else {
                (held.range.end - held.range.start).cast_signed()
            };
            raw.pid = held.pid;
        }
    }
    ptr.write(&raw)?;
    Ok(0)
}

fn set_lock(fd: i32, file: &Arc<OpenFile>, command: u32, arg: u64) -> Result<i64> {
    let raw = UserPtr::<Flock>::new(arg).read()?;
    let lock = record_lock(file, command, &raw)?;
    match raw.kind {
        0 if !file.readable() => return Err(Errno::EBADF),
        1 if !file.writable() => return Err(Errno::EBADF),
        _ => {}
    }
    let attr = file.inode().attr();
    if raw.kind == 2 {
        attr.locks().map_or(Ok(()), |locks| locks.unlock(&lock))?;
        return Ok(0);
    }
    let locks = attr.make_locks()?;
    let waits = matches!(command, cmd::SETLKW | cmd::OFD_SETLKW);
    locks.lock(&lock, waits)?;
    // Another thread may have closed the descriptor meanwhile, after which nobody would release the lock.
    // (That of an open file goes with the file.)
    let still_open = with_files(|files| files.get_any(Fd(fd)));
    if lock.pid != -1 && !still_open.is_ok_and(|open| Arc::ptr_eq(&open, file)) {
        locks.release(lock.owner);
        return Err(Errno::EBADF);
    }
    Ok(0)
}

pub fn flock(fd: i32, operation: u32) -> Result<()> {
    const NONBLOCK: u32 = 4;
    const MANDATORY: u32 = 32;
    if operation & MANDATORY != 0 {
        // Never worked; Linux ignores it with success.
        return Ok(());
    }
    let kind = match operation & !NONBLOCK {
        1 => Some(LockKind::Read),
        2 => Some(LockKind::Write),
        8 => None,
        _ => return Err(Errno::EINVAL),
    };
    let file = file(fd)?;
    if kind.is_some() && !file.readable() && !file.writable() {
        return Err(Errno::EBADF);
    }
    let attr = file.inode().attr();
    let owner = Arc::as_ptr(&file) as usize;
    match kind {
        Some(kind) => {
            let pid = process::current().process().pid();
            let lock = WholeLock { kind, owner, pid };
            attr.make_locks()?.flock(&lock, operation & NONBLOCK == 0)
        }
        None => {
            if let Some(locks) = attr.locks() {
                locks.unflock(owner);
            }
            Ok(())
        }
    }
}

const FIONBIO: u32 = 0x5421;
const FIONCLEX: u32 = 0x5450;
const FIOCLEX: u32 = 0x5451;
const FIOASYNC: u32 = 0x5452;
const FIOQSIZE: u32 = 0x5460;
/// Who gets a socket's signals; each request has two names.
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
const FIOGETOWN: u32 = 0x8903;
const SIOCGPGRP: u32 = 0x8904;

pub fn ioctl(fd: i32, command: u32, arg: u64) -> Result<i64> {
    let file = file(fd)?;
    match command {
        FIOCLEX | FIONCLEX => {
            with_files(|files| files.set_cloexec(Fd(fd), command == FIOCLEX))?;
            Ok(0)
        }
        FIONBIO => {
            let on = UserPtr::<i32>::new(arg).read()? != 0;
            let flag = OpenFlags::NONBLOCK;
            file.set_flags(flag, if on { flag } else { OpenFlags::empty() });
            Ok(0)
        }
        FIOASYNC => {
            let on = UserPtr::<i32>::new(arg).read()? != 0;
            if set_async(&file, fd, on)? { Ok(0) } else { Err(Errno::ENOTTY) }
        }
        FIONREAD if file.kind() == FileType::Regular => {
            let left = file.inode().size().saturating_sub(*file.pos().lock());
            UserPtr::<i32>::new(arg).write(&i32::try_from(left).unwrap_or(i32::MAX))?;
            Ok(0)
        }
        FIOQSIZE if matches!(file.kind(), FileType::Regular | FileType::Dir) => {
            UserPtr::<u64>::new(arg).write(&file.inode().size())?;
            Ok(0)
        }
        TIOCGPTPEER => {
            // The argument is the new file's flags: a file needs a descriptor, which drivers cannot give.
            let flags = arg as u32;
            let peer = tty::open_peer(&file, flags)?;
            let cloexec = flags & OpenFlags::CLOEXEC.bits() != 0;
            Ok(i64::from(install(peer, cloexec)?.0))
        }
        ns::GET_USERNS => {
            // A file too, always closed by exec.
            let owner = ns::owner(&file)?;
            Ok(i64::from(install(owner, true)?.0))
        }
        FIOSETOWN | SIOCSPGRP if file.kind() == FileType::Socket => {
            let id = UserPtr::<i32>::new(arg).read()?;
            owner(&file, cmd::SETOWN, id as u64)
        }
        FIOGETOWN | SIOCGPGRP if file.kind() == FileType::Socket => {
            let id = owner(&file, cmd::GETOWN, 0)? as i32;
            UserPtr::new(arg).write(&id)?;
            Ok(0)
        }
        siocs::ADDRT..=siocs::LAST if file.kind() == FileType::Socket => {
            let domain = net::of_file(&file).ok().map(|socket| socket.domain());
            let admin = process::current().cred().capable(Capability::NET_ADMIN);
            device::ioctl(command, arg, admin, domain)
        }
        _ => file.ops().ioctl(&file, command, arg),
    }
}
