//! Pipes, eventfd, timerfd and signalfd: making them.

use crate::fs::timerfd::{self, How, Setting, TimerFd};
use crate::fs::{eventfd as events, pipe as pipes};
use crate::mm::fallible::try_arc;
use crate::mm::user::iov::{IoVec, import_iovec};
use crate::mm::user::{UserPtr, UserSlice};
use crate::mm::{Sink, Source};
use crate::process;
use crate::process::signal::fd as signalfds;
use crate::process::signal::fd::SignalFd;
use crate::syscall::caller::{file, or_sigpipe};
use crate::syscall::file::install::{install, reserved_pair};
use crate::time::ClockId;
use crate::vfs::{Capability, OpenFile};
use abi::fs::OpenFlags;
use abi::signal::SigSet;
use abi::time::{Itimerspec, Timespec};
use abi::{Errno, Result};

const CLOEXEC: u32 = OpenFlags::CLOEXEC.bits();
const NONBLOCK: u32 = OpenFlags::NONBLOCK.bits();

pub fn pipe(fds: UserPtr<[i32; 2]>) -> Result<()> {
    pipe2(fds, 0)
}

pub fn pipe2(fds: UserPtr<[i32; 2]>, flags: u32) -> Result<()> {
    /// `O_NOTIFICATION_PIPE`: Linux without watch queues says this too.
    const NOTIFICATION: u32 = OpenFlags::EXCL.bits();
    if flags & !(CLOEXEC | NONBLOCK | OpenFlags::DIRECT.bits() | NOTIFICATION) != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & NOTIFICATION != 0 {
        return Err(Errno::ENOPKG);
    }
    let cred = process::current().cred_arc();
    let flags = OpenFlags::from_bits_retain(flags);
    let (reader, writer) = pipes::new_pair(flags, &cred)?;
    let pair = (try_arc(reader)?, try_arc(writer)?);
    reserved_pair(flags.contains(OpenFlags::CLOEXEC), fds, || Ok(pair))
}

pub fn eventfd(initial: u32) -> Result<i32> {
    eventfd2(initial, 0)
}

pub fn eventfd2(initial: u32, flags: u32) -> Result<i32> {
    const SEMAPHORE: u32 = 1;
    if flags & !(SEMAPHORE | CLOEXEC | NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let file = events::new(initial, flags & SEMAPHORE != 0, flags & NONBLOCK != 0)?;
    Ok(install(file, flags & CLOEXEC != 0)?.0)
}

pub fn timerfd_create(clock: i32, flags: u32) -> Result<i32> {
    const ALARMS: [i32; 2] = [8, 9];
    if flags & !(CLOEXEC | NONBLOCK) != 0 || ![0, 1, 7, 8, 9].contains(&clock) {
        return Err(Errno::EINVAL);
    }
    let cred = process::current().cred_arc();
    if ALARMS.contains(&clock) && !cred.capable(Capability::WAKE_ALARM) {
        return Err(Errno::EPERM);
    }
    let clock = ClockId::from_abi(clock).ok_or(Errno::EINVAL)?;
    let file = timerfd::new(clock, flags & NONBLOCK != 0)?;
    Ok(install(file, flags & CLOEXEC != 0)?.0)
}

pub fn timerfd_settime(
    fd: i32,
    flags: u32,
    new: UserPtr<Itimerspec>,
    old: UserPtr<Itimerspec>,
) -> Result<()> {
    const ABSTIME: u32 = 1;
    const CANCEL_ON_SET: u32 = 2;
    let new = new.read()?;
    if flags & !(ABSTIME | CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL);
    }
    let setting = Setting {
        value: new.value.to_nanos().ok_or(Errno::EINVAL)?,
        interval: new.interval.to_nanos().ok_or(Errno::EINVAL)?,
    };
    let file = file(fd)?;
    let timer = file.downcast::<TimerFd>().ok_or(Errno::EINVAL)?;
    let how = How { absolute: flags & ABSTIME != 0, cancel_on_set: flags & CANCEL_ON_SET != 0 };
    let before = timer.set(setting, how)?;
    match old.non_null() {
        Some(old) => old.write(&to_user(before)),
        None => Ok(()),
    }
}

pub fn timerfd_gettime(fd: i32, out: UserPtr<Itimerspec>) -> Result<()> {
    let file = file(fd)?;
    let timer = file.downcast::<TimerFd>().ok_or(Errno::EINVAL)?;
    out.write(&to_user(timer.get()))
}

fn to_user(setting: Setting) -> Itimerspec {
    Itimerspec {
        interval: Timespec::from_nanos(setting.interval),
        value: Timespec::from_nanos(setting.value),
    }
}

const SPLICE_NONBLOCK: u32 = 2;
const SPLICE_FLAGS: u32 = 15;

pub fn tee(from: i32, to: i32, len: usize, flags: u32) -> Result<usize> {
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let (from, to) = (file(from)?, file(to)?);
    tee_files(&from, &to, len, flags)
}

/// As [`tee`], of files.
pub fn tee_files(from: &OpenFile, to: &OpenFile, len: usize, flags: u32) -> Result<usize> {
    let nonblock = flags & SPLICE_NONBLOCK != 0 || from.nonblock() || to.nonblock();
    or_sigpipe(to, pipes::tee(from, to, len, nonblock))
}

/// The pages are copied, not taken: what a program may rely on is the same. Nor can those of memfd_secret be had so, which is
/// told before what there is to say of the pipe.
pub fn vmsplice(fd: i32, iov: u64, count: usize, flags: u32) -> Result<usize> {
    if flags & !SPLICE_FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    if !pipes::is_pipe(&file) {
        return Err(Errno::EBADF);
    }
    let mut slices = IoVec::new();
    import_iovec(&mut slices, iov, count)?;
    let nonblock = flags & SPLICE_NONBLOCK != 0 || file.nonblock();
    if file.writable() {
        let mm = process::current().mm();
        let is_secret = |slice: &UserSlice| mm.check_shown(slice.addr, slice.len as u64).is_err();
        // As on Linux, what is before it is had.
        match slices.iter().position(is_secret) {
            Some(0) => return Err(Errno::EFAULT),
            Some(first) => slices.truncate(first),
            None => {}
        }
        or_sigpipe(&file, pipes::write_with(&file, nonblock, &mut Source::iovec(&slices)))
    } else {
        pipes::read_with(&file, nonblock, &mut Sink::iovec(&slices))
    }
}

pub fn signalfd(fd: i32, mask: UserPtr<SigSet>, size: usize) -> Result<i32> {
    signalfd4(fd, mask, size, 0)
}

pub fn signalfd4(fd: i32, mask: UserPtr<SigSet>, size: usize, flags: u32) -> Result<i32> {
    if flags & !(CLOEXEC | NONBLOCK) != 0 || size != size_of::<SigSet>() {
        return Err(Errno::EINVAL);
    }
    let set = mask.read()?;
    if fd != -1 {
        let file = file(fd)?;
        file.downcast::<SignalFd>().ok_or(Errno::EINVAL)?.change(set);
        return Ok(fd);
    }
    let file = signalfds::new(set, flags & NONBLOCK != 0)?;
    Ok(install(file, flags & CLOEXEC != 0)?.0)
}
