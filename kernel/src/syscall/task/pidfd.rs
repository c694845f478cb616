//! Calls on pidfds: `pidfd_open`, `pidfd_send_signal`, `pidfd_getfd`.

use crate::mm::user::UserPtr;
use crate::process;
use crate::process::tree::pidfd::{self, Target};
use crate::syscall::caller::{file, with_files};
use crate::syscall::file::install::install;
use crate::syscall::signal::{check_and_send, parse, read_queued, sent_here};
use crate::vfs::Fd;
use abi::fs::OpenFlags;
use abi::signal::{SigInfo, code};
use abi::{Errno, Result};
use alloc::sync::Arc;

const NONBLOCK: u32 = OpenFlags::NONBLOCK.bits();
/// `PIDFD_THREAD`.
const OF_THREAD: u32 = OpenFlags::EXCL.bits();

pub fn pidfd_open(pid: i32, flags: u32) -> Result<i32> {
    if flags & !(NONBLOCK | OF_THREAD) != 0 || pid <= 0 {
        return Err(Errno::EINVAL);
    }
    if flags & OF_THREAD != 0 {
        let thread = process::lookup_task(pid).filter(|task| !task.is_kernel_thread());
        // A process that has ended, and still has its number, has no thread any more.
        let missing = if process::lookup(pid).is_some() { Errno::EINVAL } else { Errno::ESRCH };
        let file = pidfd::new_of_thread(&thread.ok_or(missing)?, flags & NONBLOCK != 0)?;
        return Ok(install(file, true)?.0);
    }
    let Some(target) = process::lookup(pid) else {
        // A thread that leads no process is found, but without PIDFD_THREAD there is no descriptor for it.
        let thread = process::lookup_task(pid);
        return Err(if thread.is_some() { Errno::EINVAL } else { Errno::ESRCH });
    };
    let file = pidfd::new(&target, flags & NONBLOCK != 0)?;
    Ok(install(file, true)?.0)
}

pub fn pidfd_send_signal(fd: i32, number: i32, info: UserPtr<SigInfo>, flags: u32) -> Result<()> {
    const THREAD: u32 = 1;
    const THREAD_GROUP: u32 = 2;
    const PROCESS_GROUP: u32 = 4;
    if flags & !(THREAD | THREAD_GROUP | PROCESS_GROUP) != 0 || flags.count_ones() > 1 {
        return Err(Errno::EINVAL);
    }
    let (target, thread) = match pidfd::to_signal(&*file(fd)?)? {
        Target::Process(process) => (process, None),
        Target::Thread(process, thread) => (process, Some(thread)),
    };
    // Without a flag, the descriptor says who is meant.
    let flags = if flags == 0 && thread.is_some() { THREAD } else { flags };
    if matches!(thread, Some(None)) {
        return Err(Errno::ESRCH);
    }
    let signal = parse(number)?;
    let claimed = if flags == THREAD { code::SI_TKILL } else { code::SI_USER };
    let info = match info.non_null() {
        Some(info) => {
            let to_self =
                Arc::ptr_eq(&target, process::current().process()) && flags != PROCESS_GROUP;
            if info.read()?.signo != number {
                return Err(Errno::EINVAL);
            }
            read_queued(info, number, to_self)?
        }
        None => sent_here(number, claimed),
    };
    if target.is_reaped() {
        return Err(Errno::ESRCH);
    }
    match flags {
        THREAD => {
            let one = match thread {
                Some(thread) => thread,
                None => process::lookup_task(target.pid()),
            };
            check_and_send(&target, Some(&one.ok_or(Errno::ESRCH)?), signal, info)
        }
        PROCESS_GROUP => crate::syscall::signal::kill_group(target.pid(), signal, info),
        _ => check_and_send(&target, None, signal, info),
    }
}

pub fn pidfd_getfd(pidfd: i32, fd: i32, flags: u32) -> Result<i32> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let thread = match pidfd::target_of(&*file(pidfd)?)? {
        Target::Process(target) => process::lookup_task(target.pid())
            .filter(|leader| Arc::ptr_eq(leader.process(), &target)),
        Target::Thread(_, thread) => thread,
    };
    // A leader that has ended has no files, whatever its process still has.
    let thread = thread.filter(|thread| thread.files_arc().is_some()).ok_or(Errno::ESRCH)?;
    let steady = process::may_attach(&thread).ok_or(Errno::EPERM)?;
    let files = thread.files_arc().ok_or(Errno::ESRCH)?;
    let theirs = files.get_any(Fd(fd))?;
    drop(steady);
    let limit = process::current().process().nofile_limit();
    Ok(with_files(|files| files.add(0, theirs, true, limit))?.0)
}
