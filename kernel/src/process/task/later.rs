//! What a higher floor leaves to a thread, to be done on its way to user mode.
//!
//! Owns the slot for whoever does it. Never keeps what there is to do: who leaves it knows. Locks: none of its own.

use super::current::{Current, current};
use super::task::Task;
use super::work;
use crate::process::sched;
use crate::sync::Once;

static LATER: Once<fn()> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_later(act: fn()) {
    LATER.call_once(|| act);
}

/// Lets a thread act before it goes on in user mode; with `soon` one that is there leaves it for that. One that sleeps where a signal
/// would wake it wakes up, and its call begins anew if it can (`TWA_SIGNAL` in Linux). Allocates and drops nothing, so that interrupts
/// may call it.
pub fn leave_to(thread: &Task, soon: bool) {
    // The flag of signals lets a call that was ended begin anew.
    thread.set_work(work::LATER | work::SIGNAL);
    if !thread.wake_interruptible() && soon {
        sched::kick(thread);
    }
}

/// The running task, whose sleep was ended, acts now if that was why: it holds no lock. Whether it did.
pub fn act_now() -> bool {
    let task = current();
    let has = task.has_work(work::LATER);
    if has {
        act(task);
    }
    has
}

/// The running task acts.
#[cold]
pub(in crate::process) fn act(task: Current) {
    task.clear_work(work::LATER);
    if let Some(act) = LATER.get() {
        act();
    }
}
