//! What a higher floor leaves to a thread, to be done on its way to user mode.
//!
//! Owns the slot for whoever does it. Never keeps what there is to do: who leaves it knows. Locks: none of its own.

use super::current::Current;
use super::task::Task;
use super::work;
use crate::process::sched;
use crate::sync::Once;

static LATER: Once<fn()> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_later(act: fn()) {
    LATER.call_once(|| act);
}

/// Lets a thread act before it goes on in user mode; with `soon` one that is there leaves it for that. Allocates and drops nothing, so
/// that interrupts may call it.
pub fn leave_to(thread: &Task, soon: bool) {
    thread.set_work(work::LATER);
    if soon {
        sched::kick(thread);
    }
}

/// The running task acts.
#[cold]
pub(in crate::process) fn act(task: Current) {
    task.clear_work(work::LATER);
    if let Some(act) = LATER.get() {
        act();
    }
}
