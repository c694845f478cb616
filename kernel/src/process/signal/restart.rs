//! Calls that wait under another signal mask.

use super::change::set_blocked;
use super::pending;
use crate::process;
use crate::process::task::work;
use abi::signal::SigSet;
use abi::{Errno, Result};

/// Runs `wait` under `mask` (`ppoll`, `pselect6`, `epoll_pwait`). If a signal ends it, the old mask goes
/// back only after the handler has run; otherwise at once.
pub fn with_mask<R>(mask: Option<SigSet>, wait: impl FnOnce() -> Result<R>) -> Result<R> {
    let Some(mask) = mask else { return wait() };
    let task = process::current();
    let old = set_blocked(&task, mask);
    let result = wait();
    if matches!(&result, Err(e) if *e == Errno::EINTR || e.is_restart()) {
        task.signals.save_mask(old);
        task.set_work(work::SIGNAL);
    } else {
        set_blocked(&task, old);
    }
    result
}

/// Sleeps under `mask` until a signal has been handled; always an error.
pub fn sigsuspend(mask: SigSet) -> Result<core::convert::Infallible> {
    let task = process::current();
    let old = set_blocked(&task, mask);
    task.signals.save_mask(old);
    let Err(_) = task.process().signals.arrived.wait_interruptible(|| None::<()>) else {
        unreachable!("the condition never gives a value")
    };
    // The mask goes back after the handler, or now if no handler runs.
    pending::recheck(&task);
    task.set_work(work::SIGNAL);
    Err(Errno::ERESTARTNOHAND)
}
