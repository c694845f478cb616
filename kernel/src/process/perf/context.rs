//! [`Context`]: the events of one task, or of one CPU.
//!
//! Owns the lists and the contexts of the CPUs. A task's is made when the first event is opened on it and goes with the
//! task. Locks: `Perf`, for a list; never held while an event is dropped.

use super::event::Event;
use crate::arch::task::debug::PLACES;
use crate::base::percpu::MAX_CPUS;
use crate::mm::fallible::try_box;
use crate::process::task::task::Task;
use crate::sync::{Once, SpinLock, level};
use crate::vfs::grow;
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The events of one task or CPU.
pub(super) struct Context {
    /// In the order of their numbers.
    events: SpinLock<Vec<Arc<Event>>, level::Perf>,
    /// Where the task ran last, one more than its number; 0 before it did.
    last_cpu: AtomicUsize,
    /// The numbers of the events that were put into the debug registers last; 0 for none.
    pub loaded: [AtomicU64; PLACES],
}

static CPUS: [Context; MAX_CPUS] = [const { Context::new() }; MAX_CPUS];

/// The part of a task: its context, once it has one.
pub(in crate::process) struct Watcher(Once<Box<Context>>);

impl Watcher {
    pub(in crate::process) const fn new() -> Self {
        Self(Once::new())
    }

    /// The context, if there ever was an event.
    #[inline(always)]
    pub(super) fn get(&self) -> Option<&Context> {
        self.0.get().map(|context| &**context)
    }

    /// Whether there ever was an event.
    #[inline(always)]
    pub(in crate::process) fn is_used(&self) -> bool {
        self.0.is_completed()
    }
}

/// The context of a CPU.
pub(super) fn of_cpu(cpu: usize) -> Result<&'static Context> {
    CPUS.get(cpu).ok_or(Errno::EINVAL)
}

/// The context of a task, which is made if it has none.
pub(super) fn of_task(task: &Task) -> Result<&Context> {
    if let Some(context) = task.perf.get() {
        return Ok(context);
    }
    let fresh = try_box(Context::new())?;
    Ok(task.perf.0.call_once(|| fresh))
}

impl Context {
    const fn new() -> Self {
        Self {
            events: SpinLock::new(Vec::new()),
            last_cpu: AtomicUsize::new(0),
            loaded: [const { AtomicU64::new(0) }; PLACES],
        }
    }

    pub(super) fn add(&self, event: &Arc<Event>) -> Result<()> {
        grow::push(&self.events, event.clone())?;
        let mut events = self.events.lock();
        // Nobody else changes the list: who does holds the mutex of all events.
        let at = events.iter().rposition(|other| other.id < event.id).map_or(0, |at| at + 1);
        events[at..].rotate_right(1);
        Ok(())
    }

    /// Takes an event out, if it is there.
    pub(super) fn remove(&self, event: &Event) {
        let mut events = self.events.lock();
        let at = events.iter().position(|other| core::ptr::eq(&**other, event));
        let gone = at.map(|at| events.remove(at));
        drop(events);
        drop(gone);
    }

    /// Takes all out.
    pub(super) fn take(&self) -> Vec<Arc<Event>> {
        core::mem::take(&mut self.events.lock())
    }

    /// The event at a place; `None` after the last. Who goes through all holds the mutex of all events.
    pub(super) fn nth(&self, at: usize) -> Option<Arc<Event>> {
        self.events.lock().get(at).cloned()
    }

    /// Whether any event is about system calls.
    pub(super) fn has_calls(&self) -> bool {
        self.events.lock().iter().any(|event| event.what.is_call())
    }

    /// Looks at each, with interrupts off.
    pub(super) fn for_each(&self, mut look: impl FnMut(&Event)) {
        self.events.lock().iter().for_each(|event| look(event));
    }

    /// What is found first, with interrupts off.
    pub(super) fn find_map<R>(&self, look: impl FnMut(&Event) -> Option<R>) -> Option<R> {
        let mut look = look;
        self.events.lock().iter().find_map(|event| look(event))
    }

    /// The same as `for_each`, with all of them.
    pub(super) fn for_each_of(&self, mut look: impl FnMut(&Event, &[Arc<Event>])) {
        let events = self.events.lock();
        events.iter().for_each(|event| look(event, &events));
    }

    /// Notes that the task runs on `cpu`: whether it ran on another one before.
    pub(super) fn moves_to(&self, cpu: usize) -> bool {
        // Relaxed: only who switches the task touches it.
        let before = self.last_cpu.swap(cpu + 1, Ordering::Relaxed);
        before != 0 && before != cpu + 1
    }
}
