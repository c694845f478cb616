//! Timers: one queue per CPU, fired from the local APIC timer's interrupt.
//!
//! Owns the queues and the decision what the hardware timer is armed for. Lock: each queue is a
//! spinlock of level Timer; it is never held while a target runs or is dropped.

use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::cmp::{Ordering, Reverse};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Nanos, clock, monotonic};
use crate::arch::percpu::{MAX_CPUS, cpu_id};
use crate::arch::{apic, irq, trap};
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};

/// What a timer does. Called in interrupt context with interrupts off: short, and never blocking.
pub trait TimerTarget: Send + Sync {
    /// The deadline has passed. The timer is gone; arm a new one to go on.
    fn expired(&self, now: Nanos);
}

/// An armed timer, to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    cpu: u32,
    sequence: u64,
}

struct Entry {
    deadline: Nanos,
    sequence: u64,
    target: Arc<dyn TimerTarget>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.deadline, self.sequence).cmp(&(other.deadline, other.sequence))
    }
}

struct Queue {
    entries: BinaryHeap<Reverse<Entry>>,
    next_sequence: u64,
    /// When the running task's slice ends, if anyone waits for its CPU.
    slice_end: Option<Nanos>,
    /// What the hardware is armed for.
    armed: Option<Nanos>,
}

static QUEUES: [SpinLock<Queue, level::Timer>; MAX_CPUS] = [const {
    SpinLock::new(Queue {
        entries: BinaryHeap::new(),
        next_sequence: 0,
        slice_end: None,
        armed: None,
    })
}; MAX_CPUS];

/// Interrupts taken by the timers, for /proc.
static FIRED: AtomicU64 = AtomicU64::new(0);

/// Arms a timer on this CPU. `ENOMEM` when the queue cannot grow.
pub fn arm(deadline: Nanos, target: Arc<dyn TimerTarget>) -> Result<TimerId> {
    let cpu = cpu_id();
    let mut queue = QUEUES[cpu].lock();
    queue.entries.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
    let sequence = queue.next_sequence;
    queue.next_sequence += 1;
    queue.entries.push(Reverse(Entry { deadline, sequence, target }));
    queue.program();
    Ok(TimerId { cpu: cpu as u32, sequence })
}

/// Disarms a timer: true when it had not fired. A target that is already being called on another
/// CPU is not waited for.
pub fn cancel(id: TimerId) -> bool {
    let mut found = None;
    let mut queue = QUEUES[id.cpu as usize].lock();
    queue.remove(id.sequence, &mut found);
    // The hardware is left as it is: an early interrupt is cheaper than reprogramming each time.
    drop(queue);
    found.is_some()
}

/// Sets when the running task must give way, or that it need not (nobody else waits).
pub fn set_slice_end(end: Option<Nanos>) {
    let mut queue = QUEUES[cpu_id()].lock();
    queue.slice_end = end;
    if end.is_some() {
        queue.program();
    }
}

/// When this CPU's next timer is due.
pub fn next_deadline() -> Option<Nanos> {
    QUEUES[cpu_id()].lock().entries.peek().map(|entry| entry.0.deadline)
}

/// Connects the interrupt.
pub(super) fn init() {
    irq::set_timer(interrupt);
}

impl Queue {
    fn remove(&mut self, sequence: u64, found: &mut Option<Entry>) {
        if !self.entries.iter().any(|entry| entry.0.sequence == sequence) {
            return;
        }
        let mut entries = core::mem::take(&mut self.entries).into_vec();
        if let Some(at) = entries.iter().position(|entry| entry.0.sequence == sequence) {
            *found = Some(entries.swap_remove(at).0);
        }
        self.entries = entries.into();
    }

    /// Arms the hardware for the nearest deadline, unless it is armed for that or earlier.
    fn program(&mut self) {
        let timer = self.entries.peek().map(|entry| entry.0.deadline);
        let nearest = match (timer, self.slice_end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let Some(nearest) = nearest else { return };
        if self.armed.is_none_or(|armed| nearest < armed) {
            self.armed = Some(nearest);
            apic::timer_arm(clock::to_tsc(nearest));
        }
    }
}

fn interrupt() {
    // Relaxed: a statistic.
    FIRED.fetch_add(1, Relaxed);
    let queue = &QUEUES[cpu_id()];
    let now = monotonic();
    loop {
        let mut held = queue.lock();
        if held.entries.peek().is_none_or(|entry| entry.0.deadline > now) {
            break;
        }
        let due = held.entries.pop();
        drop(held);
        if let Some(Reverse(entry)) = due {
            entry.target.expired(now);
        }
    }
    let mut held = queue.lock();
    held.armed = None;
    let slice_over = held.slice_end.is_some_and(|end| end <= now);
    if slice_over {
        held.slice_end = None;
    }
    held.program();
    drop(held);
    if slice_over {
        trap::timer_hook();
    }
}
