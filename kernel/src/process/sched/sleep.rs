//! Sleeping: what the process floor provides to `sync::wait`.

use super::entity::State;
use super::schedule::schedule;
use crate::process::signal;
use crate::process::task::current::TASKS;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::sync::Wake;
use crate::sync::pace::Pacer;
use crate::sync::wait::{Base, Moment, Scheduler, Sleep};
use crate::time;
use alloc::sync::Arc;

/// The slot's content.
pub struct Sleeper;

/// Runs `act`, in which the task sleeps for nothing that a signal could end: such a sleep is interrupted before it begins.
#[inline(always)]
pub fn without_waiting<R>(act: impl FnOnce() -> R) -> R {
    let task = TASKS.current();
    task.set_work(work::NO_WAIT);
    let result = act();
    task.clear_work(work::NO_WAIT);
    result
}

/// Sleeps until somebody wakes the running task, or a time. Not inlined, like the next: what a sleep without an end has no use for.
#[inline(never)]
fn sleep_until(deadline: Moment) {
    let task = TASKS.current_arc();
    let timer = time::arm_on(&TASKS.current().sleep_room, deadline, task);
    schedule();
    // The interrupt's reference to this task must not become the last one.
    time::cancel_and_wait(timer);
}

#[inline(never)]
fn is_interrupted(task: &Task) -> bool {
    task.has_work(work::NO_WAIT) || signal::pending(task)
}

impl Scheduler for Sleeper {
    fn current_waker(&self) -> Arc<dyn Wake> {
        TASKS.current_arc()
    }

    fn prepare_to_sleep(&self, how: Sleep) {
        let state = match how {
            Sleep::Interruptible => State::Interruptible,
            Sleep::Killable => State::Killable,
            Sleep::Uninterruptible => State::Uninterruptible,
        };
        TASKS.current().sched.set_state(state);
    }

    fn cancel_sleep(&self) {
        TASKS.current().sched.set_state(State::Runnable);
    }

    fn sleep(&self, deadline: Option<Moment>) {
        match deadline {
            None => schedule(),
            Some(deadline) => sleep_until(deadline),
        }
    }

    fn signal_pending(&self, how: Sleep) -> bool {
        let task = TASKS.current();
        match how {
            Sleep::Interruptible if !task.has_work(work::SIGNAL | work::NO_WAIT) => false,
            Sleep::Interruptible => is_interrupted(&task),
            Sleep::Killable => signal::killed(&task),
            Sleep::Uninterruptible => false,
        }
    }

    fn now(&self, base: Base) -> u64 {
        time::now_on(base).0
    }
}

impl Pacer for Sleeper {
    fn reschedule(&self) {
        let runs = TASKS.current().sched.state() == State::Runnable;
        debug_assert!(runs, "the CPU is given away on the way to sleep");
        // Who is about to sleep must look at its condition first: a switch would be the sleep itself.
        if runs {
            schedule();
        }
    }

    fn fatal_signal_pending(&self) -> bool {
        signal::dies(&TASKS.current())
    }

    fn signal_pending(&self) -> bool {
        signal::pending(&TASKS.current())
    }
}
