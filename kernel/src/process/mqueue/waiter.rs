//! [`Waiters`]: the threads that wait for a message, or for room for theirs.
//!
//! Owns what each waits for. Never wakes one that has been taken off the list. Locks: the queue's guards a list; a `Leaf` for
//! what goes from hand to hand.

use super::message::Message;
use crate::mm::fallible::{TryMap, try_arc};
use crate::process::{Task, current};
use crate::sync::wait::{Base, Moment, WaitError};
use crate::sync::{SpinLock, WaitQueue, level};
use crate::time::Nanos;
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// A thread that waits.
pub struct Waiter {
    /// What it sends; what it receives, once it is done.
    message: SpinLock<Option<Message>, level::Leaf>,
    done: AtomicBool,
    queue: WaitQueue,
}

/// Where a waiter stands: by its priority, then by its turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(i32, u64);

/// Those who wait for the same, the first to go on first.
#[derive(Default)]
pub struct Waiters {
    all: BTreeMap<Place, Arc<Waiter>>,
    next: u64,
}

/// Linux's inner measure, by which a lower number goes first.
fn priority(task: &Task) -> i32 {
    match task.sched.policy().priority {
        0 => 120 + task.sched.nice(),
        priority => 99 - priority as i32,
    }
}

impl Waiters {
    /// Lists the running thread, with the message that it sends.
    pub fn enter(&mut self, message: Option<Message>) -> Result<(Place, Arc<Waiter>)> {
        let waiter = try_arc(Waiter {
            message: SpinLock::new(message),
            done: AtomicBool::new(false),
            queue: WaitQueue::new(),
        })?;
        let place = Place(priority(&current()), self.next);
        self.all.try_put(place, waiter.clone())?;
        self.next += 1;
        Ok((place, waiter))
    }

    /// Takes the first off the list.
    pub fn pop(&mut self) -> Option<Arc<Waiter>> {
        self.all.pop_first().map(|(_, waiter)| waiter)
    }

    /// Takes one off the list, if it is there.
    pub fn leave(&mut self, place: Place) -> Option<Arc<Waiter>> {
        self.all.remove(&place)
    }
}

impl Waiter {
    /// What it sends, or was given.
    pub fn take(&self) -> Option<Message> {
        self.message.lock().take()
    }

    /// It has received this.
    pub fn give(&self, message: Message) {
        *self.message.lock() = Some(message);
        self.finish();
    }

    /// It may go on.
    pub fn finish(&self) {
        // Release: pairs with the Acquire of who waits, who then looks at what it was given.
        self.done.store(true, Ordering::Release);
        self.queue.wake_all();
    }

    /// Waits until it may go on, or the wall clock shows `until`.
    pub fn wait(&self, until: Option<Nanos>) -> Result<(), WaitError> {
        let done = || self.done.load(Ordering::Acquire).then_some(());
        let until = until.map(|at| Moment { base: Base::Wall, at: at.0 });
        self.queue.wait_until(until, done)
    }
}
