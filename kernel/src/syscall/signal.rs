//! Signal calls: actions, masks, sending, waiting, alternate stacks.

use super::time::read_timeout;
use crate::arch::entry::frame::TrapFrame;
use crate::mm::user::UserPtr;
use crate::process::signal::{self, wait};
use crate::process::{self, Process, Task};
use abi::signal::{
    MINSIGSTKSZ, SS_AUTODISARM, SS_DISABLE, SS_ONSTACK, SigAction, SigInfo, SigSet, SigStack,
    Signal, code,
};
use abi::time::Timespec;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::convert::Infallible;

/// `sigsetsize` must be that of the kernel's set.
fn check_size(size: usize) -> Result<()> {
    if size == size_of::<SigSet>() { Ok(()) } else { Err(Errno::EINVAL) }
}

pub fn rt_sigaction(
    number: i32,
    new: UserPtr<SigAction>,
    old: UserPtr<SigAction>,
    size: usize,
) -> Result<()> {
    check_size(size)?;
    let new = new.non_null().map(UserPtr::read).transpose()?;
    let signal = Signal::new(number).ok_or(Errno::EINVAL)?;
    if new.is_some() && SigSet::UNBLOCKABLE.contains(signal) {
        return Err(Errno::EINVAL);
    }
    let task = process::current();
    let previous = match new {
        Some(new) => signal::set_action(&task, signal, new)?,
        None => task.process().signals.actions().get(signal),
    };
    if let Some(old) = old.non_null() {
        old.write(&previous)?;
    }
    Ok(())
}

const SIG_BLOCK: i32 = 0;
const SIG_UNBLOCK: i32 = 1;
const SIG_SETMASK: i32 = 2;

pub fn rt_sigprocmask(
    how: i32,
    set: UserPtr<SigSet>,
    old: UserPtr<SigSet>,
    size: usize,
) -> Result<()> {
    check_size(size)?;
    let task = process::current();
    let before = task.signals.blocked();
    if let Some(set) = set.non_null() {
        let set = set.read()?;
        let mask = match how {
            SIG_BLOCK => before.union(set),
            SIG_UNBLOCK => before.minus(set),
            SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        signal::set_blocked(&task, mask);
    }
    if let Some(old) = old.non_null() {
        old.write(&before)?;
    }
    Ok(())
}

pub fn rt_sigpending(set: UserPtr<SigSet>, size: usize) -> Result<()> {
    if size > size_of::<SigSet>() {
        return Err(Errno::EINVAL);
    }
    let task = process::current();
    let pending = task.signals.pending().union(task.process().signals.pending());
    let shown = SigSet(pending.0 & task.signals.blocked().0);
    crate::mm::user::write_bytes(set.addr(), &shown.0.to_le_bytes()[..size])
}

pub fn rt_sigsuspend(set: UserPtr<SigSet>, size: usize) -> Result<Infallible> {
    check_size(size)?;
    signal::sigsuspend(set.read()?)
}

pub fn pause() -> Result<Infallible> {
    signal::sigsuspend(process::current().signals.blocked())
}

pub fn rt_sigtimedwait(
    set: UserPtr<SigSet>,
    info: UserPtr<SigInfo>,
    timeout: UserPtr<Timespec>,
    size: usize,
) -> Result<i32> {
    check_size(size)?;
    let set = set.read()?;
    let deadline = read_timeout(timeout)?;
    let taken = wait::take(set, deadline)?;
    if let Some(info) = info.non_null() {
        info.write(&taken)?;
    }
    Ok(taken.signo)
}

pub fn rt_sigreturn(frame: &mut TrapFrame) -> i64 {
    signal::sigreturn(frame)
}

pub fn sigaltstack(
    frame: &mut TrapFrame,
    new: UserPtr<SigStack>,
    old: UserPtr<SigStack>,
) -> Result<()> {
    let new = new.non_null().map(UserPtr::read).transpose()?;
    let signals = &process::current().signals;
    let before = signals.altstack(frame.rsp);
    if let Some(new) = new {
        if signals.on_altstack(frame.rsp) {
            return Err(Errno::EPERM);
        }
        signal::set_altstack(signals, check_stack(new)?);
    }
    if let Some(old) = old.non_null() {
        old.write(&before)?;
    }
    Ok(())
}

fn check_stack(stack: SigStack) -> Result<SigStack> {
    match stack.flags & !SS_AUTODISARM {
        SS_DISABLE => Ok(SigStack { sp: 0, size: 0, ..stack }),
        0 | SS_ONSTACK if stack.size < MINSIGSTKSZ => Err(Errno::ENOMEM),
        0 | SS_ONSTACK => Ok(SigStack { flags: stack.flags & SS_AUTODISARM, ..stack }),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether the running task may send `signal` to `target`: same user, CAP_KILL, or SIGCONT within the
/// session.
fn may_send(target: &Process, signal: Option<Signal>) -> bool {
    let sender = process::current();
    if core::ptr::eq(&**sender.process(), target) {
        return true;
    }
    let cred = sender.cred();
    let other = target.cred();
    let same_user = cred.euid == other.suid
        || cred.euid == other.uid
        || cred.uid == other.suid
        || cred.uid == other.uid;
    same_user
        || cred.capable(crate::vfs::Capability::KILL)
        || (signal == Some(Signal::SIGCONT) && sender.process().session() == target.session())
}

pub(super) fn check_and_send(
    target: &Arc<Process>,
    thread: Option<&Arc<Task>>,
    signal: Option<Signal>,
    info: SigInfo,
) -> Result<()> {
    if !may_send(target, signal) {
        return Err(Errno::EPERM);
    }
    match (signal, thread) {
        (None, _) => Ok(()),
        (Some(signal), Some(thread)) => signal::send_to_task(thread, signal, info),
        (Some(signal), None) => signal::send_to_process(target, signal, info),
    }
}

/// Signal 0 only checks; others must exist.
pub(super) fn parse(number: i32) -> Result<Option<Signal>> {
    match number {
        0 => Ok(None),
        _ => Signal::new(number).map(Some).ok_or(Errno::EINVAL),
    }
}

pub(super) fn sent_here(number: i32, code: i32) -> SigInfo {
    let task = process::current();
    let mut info = SigInfo::sent_by(Signal::SIGHUP, code, task.process().pid(), task.cred().uid);
    info.signo = number;
    info
}

pub fn kill(pid: i32, number: i32) -> Result<()> {
    let signal = parse(number);
    let info = sent_here(number, code::SI_USER);
    match pid {
        1.. => {
            let target = process::lookup(pid).ok_or(Errno::ESRCH)?;
            check_and_send(&target, None, signal?, info)
        }
        i32::MIN => Err(Errno::ESRCH),
        -1 => {
            let this = process::current().process().pid();
            kill_each(signal?, info, &mut |visit| {
                process::for_each_process(&mut |target| {
                    if target.pid() > 1 && target.pid() != this {
                        visit(target);
                    }
                });
            })
        }
        _ => {
            let group = if pid == 0 { process::current().process().pgid() } else { -pid };
            kill_group(group, signal?, info)
        }
    }
}

/// Sends to every process of a group.
pub(super) fn kill_group(group: i32, signal: Option<Signal>, info: SigInfo) -> Result<()> {
    kill_each(signal, info, &mut |visit| process::for_each_in_group(group, visit))
}

type Visit<'a> = &'a mut dyn FnMut(&Arc<Process>);

/// Sends to many: success if one got it, else the last error, else `ESRCH`.
fn kill_each(signal: Option<Signal>, info: SigInfo, each: &mut dyn FnMut(Visit<'_>)) -> Result<()> {
    let mut result = Err(Errno::ESRCH);
    each(&mut |target| {
        let sent = check_and_send(target, None, signal, info);
        if result.is_err() {
            result = sent;
        }
    });
    result
}

pub fn tkill(tid: i32, number: i32) -> Result<()> {
    if tid <= 0 {
        return Err(Errno::EINVAL);
    }
    send_to_thread(None, tid, number, sent_here(number, code::SI_TKILL))
}

pub fn tgkill(tgid: i32, tid: i32, number: i32) -> Result<()> {
    if tgid <= 0 || tid <= 0 {
        return Err(Errno::EINVAL);
    }
    send_to_thread(Some(tgid), tid, number, sent_here(number, code::SI_TKILL))
}

fn send_to_thread(tgid: Option<i32>, tid: i32, number: i32, info: SigInfo) -> Result<()> {
    let thread = process::lookup_task(tid).ok_or(Errno::ESRCH)?;
    if tgid.is_some_and(|tgid| thread.process().pid() != tgid) {
        return Err(Errno::ESRCH);
    }
    check_and_send(thread.process(), Some(&thread), parse(number)?, info)
}

/// What a program may claim about a signal that it queues: not that the kernel or `kill` sent it.
pub(super) fn read_queued(info: UserPtr<SigInfo>, number: i32, to_self: bool) -> Result<SigInfo> {
    let mut info = info.read()?;
    if (info.code >= 0 || info.code == code::SI_TKILL) && !to_self {
        return Err(Errno::EPERM);
    }
    info.signo = number;
    Ok(info)
}

pub fn rt_sigqueueinfo(pid: i32, number: i32, info: UserPtr<SigInfo>) -> Result<()> {
    let to_self = pid == process::current().process().pid();
    let info = read_queued(info, number, to_self)?;
    let target = process::lookup(pid).ok_or(Errno::ESRCH)?;
    check_and_send(&target, None, parse(number)?, info)
}

pub fn rt_tgsigqueueinfo(tgid: i32, tid: i32, number: i32, info: UserPtr<SigInfo>) -> Result<()> {
    if tgid <= 0 || tid <= 0 {
        return Err(Errno::EINVAL);
    }
    let to_self = tgid == process::current().process().pid();
    let info = read_queued(info, number, to_self)?;
    send_to_thread(Some(tgid), tid, number, info)
}

/// Goes on with the call that a signal interrupted.
pub fn restart_syscall() -> Result<i64> {
    match process::current().signals.take_restart() {
        Some(restart) => restart(),
        None => Err(Errno::EINTR),
    }
}
