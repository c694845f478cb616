//! System-call user dispatch: calls from outside a range of addresses become a signal, while a byte of the task's says so.
//!
//! PR_SET_SYSCALL_USER_DISPATCH and a tracer set it; emulators of other systems do. Owns each task's terms. Never inherited, by
//! no child and no thread, and gone after an exec. A task that has it is watched, so nobody else pays for it. Locks: `Leaf`, for the terms.

use super::switch::{Reason, Reasons, watch_task};
use crate::arch::entry::frame::TrapFrame;
use crate::mm::user::{self, UserPtr};
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use crate::process::tree::exit;
use crate::process::{coredump, signal};
use crate::sync::{SpinLock, level};
use abi::ptrace::DispatchConfig;
use abi::seccomp::ARCH_X86_64;
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};

/// SYS_USER_DISPATCH.
const CODE: i32 = 2;

/// What the byte says.
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// Where calls are let pass, and the address of the byte; 0 for none.
#[derive(Clone, Copy)]
struct Terms {
    offset: u64,
    len: u64,
    selector: u64,
}

/// A task's own part.
pub(in crate::process) struct Dispatch(SpinLock<Terms, level::Leaf>);

impl Dispatch {
    pub(in crate::process) const fn new() -> Self {
        Self(SpinLock::new(Terms { offset: 0, len: 0, selector: 0 }))
    }
}

/// Turns it on or off for a task: the running one, or one that stands for its tracer.
///
/// # Errors
/// `EINVAL` for an unknown mode, a range that wraps around, or one that is to be off; `EFAULT` for a byte that is not user memory.
pub fn set(task: &Task, config: &DispatchConfig) -> Result<()> {
    let DispatchConfig { mode, selector, offset, len } = *config;
    match mode {
        DispatchConfig::OFF if offset != 0 || len != 0 || selector != 0 => {
            return Err(Errno::EINVAL);
        }
        DispatchConfig::OFF => {}
        DispatchConfig::ON => {
            if offset != 0 && offset.wrapping_add(len) <= offset {
                return Err(Errno::EINVAL);
            }
            if selector != 0 && !user::in_range(selector, 1) {
                return Err(Errno::EFAULT);
            }
        }
        _ => return Err(Errno::EINVAL),
    }
    *task.dispatch.0.lock() = Terms { offset, len, selector };
    watch_task(task, Reason::Dispatch, mode == DispatchConfig::ON);
    Ok(())
}

/// What a tracer is told.
pub(in crate::process) fn config(task: &Task) -> DispatchConfig {
    let Terms { offset, len, selector } = *task.dispatch.0.lock();
    let mode = match Reasons::of(task).is_own(Reason::Dispatch) {
        true => DispatchConfig::ON,
        false => DispatchConfig::OFF,
    };
    DispatchConfig { mode, selector, offset, len }
}

/// The running task runs another program. As on Linux, a tracer may go on reading what the terms were.
#[inline]
pub(in crate::process) fn forget(task: Current) {
    if Reasons::of(&task).is_own(Reason::Dispatch) {
        watch_task(&task, Reason::Dispatch, false);
    }
}

/// Whether the call that the registers ask for becomes a signal; the registers are then as they were before it.
#[cold]
pub(super) fn diverts(task: Current, frame: &mut TrapFrame) -> bool {
    let Terms { offset, len, selector } = *task.dispatch.0.lock();
    if frame.rip.wrapping_sub(offset) < len {
        return false;
    }
    // A handler sees the registers as they were.
    frame.set_return(frame.orig_rax as i64);
    if selector != 0 {
        match UserPtr::<u8>::new(selector).read() {
            Ok(ALLOW) => return false,
            Ok(BLOCK) => {}
            Ok(_) => end(task, Signal::SIGSYS),
            Err(_) => end(task, Signal::SIGSEGV),
        }
    }
    let mut info = SigInfo::fault(Signal::SIGSYS, CODE, frame.rip);
    info.fields[1] = u64::from(frame.orig_rax as u32) | u64::from(ARCH_X86_64) << 32;
    signal::force(&task, Signal::SIGSYS, info);
    true
}

/// Ends the process, whatever it does about the signal.
fn end(task: Current, signal: Signal) -> ! {
    coredump::dump(task, signal, &SigInfo::new(signal, code::SI_KERNEL));
    exit::do_group_exit(exit::Status::signalled(signal))
}
