//! Timers: one queue per CPU, fired from the local APIC timer's interrupt.
//!
//! Owns the queues and the decision what the hardware timer is armed for. Lock: each queue is a
//! spinlock of level Timer; it is never held while a target runs or is dropped.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Nanos, clock, monotonic};
use crate::arch::percpu::{MAX_CPUS, cpu_id};
use crate::arch::{apic, cpu, irq, trap};
use crate::sync::{Pace, SpinLock, WaitQueue, level};

/// What a timer does. Called in interrupt context with interrupts off: short, and never blocking.
pub trait TimerTarget: Send + Sync {
    /// The deadline has passed. The timer is gone; arm a new one to go on.
    fn expired(&self, now: Nanos);

    /// True for a target that takes locks which interrupts must not: a thread calls it instead, soon.
    fn needs_thread(&self) -> bool {
        false
    }
}

/// An armed timer, to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    cpu: u32,
    key: Key,
}

/// Deadline, then the order of arming.
type Key = (Nanos, u64);

struct Queue {
    entries: BTreeMap<Key, Arc<dyn TimerTarget>>,
    next_sequence: u64,
    /// When the running task's slice ends, if anyone waits for its CPU.
    slice_end: Option<Nanos>,
    /// When the running task is looked at next; `None` while the CPU idles.
    sample: Option<Nanos>,
    /// What the hardware is armed for.
    armed: Option<Nanos>,
    /// The timer whose target is being called, and referred to, by the interrupt.
    firing: Option<Key>,
}

/// How often a running task is looked at, for its user and system time: Linux's usual tick.
pub const SAMPLE_NS: u64 = 4_000_000;

crate::per_cpu! {
    /// Whether `Queue::sample` is set. Relaxed: this CPU's own.
    static SAMPLING: AtomicBool = AtomicBool::new(false);
}

static QUEUES: [SpinLock<Queue, level::Timer>; MAX_CPUS] = [const {
    SpinLock::new(Queue {
        entries: BTreeMap::new(),
        next_sequence: 0,
        slice_end: None,
        sample: None,
        armed: None,
        firing: None,
    })
}; MAX_CPUS];

/// Interrupts taken by the timers, for /proc.
static FIRED: AtomicU64 = AtomicU64::new(0);

/// Arms a timer on this CPU.
pub fn arm(deadline: Nanos, target: Arc<dyn TimerTarget>) -> TimerId {
    let cpu = cpu_id();
    let mut queue = QUEUES[cpu].lock();
    let key = (deadline, queue.next_sequence);
    queue.next_sequence += 1;
    queue.entries.insert(key, target);
    queue.program();
    TimerId { cpu: cpu as u32, key }
}

/// Disarms a timer: true when it had not fired. A target that is already being called on another
/// CPU is not waited for.
pub fn cancel(id: TimerId) -> bool {
    // The hardware is left as it is: an early interrupt is cheaper than reprogramming each time.
    let target = QUEUES[id.cpu as usize].lock().entries.remove(&id.key);
    target.is_some()
}

/// As [`cancel`], and waits until a target that is being called on another CPU has been let go of: for a target that
/// must not end in an interrupt.
pub fn cancel_and_wait(id: TimerId) {
    if cancel(id) {
        return;
    }
    while QUEUES[id.cpu as usize].lock().firing == Some(id.key) {
        cpu::relax();
    }
}

/// Sets when the running task must give way, for somebody waits.
pub fn set_slice_end(end: Nanos) {
    let cpu = cpu_id();
    let mut queue = QUEUES[cpu].lock();
    queue.slice_end = Some(end);
    // Relaxed: see `slice_runs`.
    SLICE_RUNS[cpu].store(true, Ordering::Relaxed);
    if queue.armed.is_none_or(|armed| end < armed) {
        queue.program();
    }
}

/// Whether a slice is being timed on a CPU: at its end the CPU looks who waits. The end may be an earlier task's, and
/// come too soon for the running one.
#[inline]
pub fn slice_runs(cpu: usize) -> bool {
    // Relaxed: it becomes false before the CPU locks its run queue to look who waits, and the caller has queued
    // somebody there under that lock before it asks.
    SLICE_RUNS[cpu].load(Ordering::Relaxed)
}

/// Whether `Queue::slice_end` is set.
static SLICE_RUNS: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// A task begins to run after none did: from now on the running task is looked at every [`SAMPLE_NS`].
/// Interrupts are off.
#[inline]
pub fn start_samples() {
    if !SAMPLING.with(|sampling| sampling.swap(true, Ordering::Relaxed)) {
        begin_samples();
    }
}

#[cold]
fn begin_samples() {
    let mut queue = QUEUES[cpu_id()].lock();
    queue.sample = Some(Nanos(monotonic().0.saturating_add(SAMPLE_NS)));
    queue.program();
}

/// Targets that have expired and wait for the thread.
static DEFERRED: SpinLock<Vec<Arc<dyn TimerTarget>>, level::Timer> = SpinLock::new(Vec::new());
static FOR_THREAD: WaitQueue = WaitQueue::new();

/// The body of the thread that runs what needs one; boot starts it. It also drops the targets, which
/// may be the last references to whole processes.
pub fn run_deferred() {
    loop {
        let due = FOR_THREAD.wait(|| {
            let mut waiting = DEFERRED.lock();
            (!waiting.is_empty()).then(|| core::mem::take(&mut *waiting))
        });
        let now = monotonic();
        due.iter().paced().for_each(|target| target.expired(now));
    }
}

/// Connects the interrupt.
pub(super) fn init() {
    irq::set_timer(interrupt);
}

impl Queue {
    fn nearest_timer(&self) -> Option<Nanos> {
        self.entries.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Arms the hardware for the nearest deadline, unless it is armed for that or earlier.
    fn program(&mut self) {
        let timer = self.nearest_timer();
        let all = [timer, self.slice_end, self.sample];
        let Some(nearest) = all.into_iter().flatten().min() else { return };
        if self.armed.is_none_or(|armed| nearest < armed) {
            self.armed = Some(nearest);
            apic::timer_arm(clock::to_tsc(nearest));
        }
    }
}

fn interrupt(from_user: bool) {
    // Relaxed: a statistic.
    FIRED.fetch_add(1, Ordering::Relaxed);
    let queue = &QUEUES[cpu_id()];
    let now = monotonic();
    loop {
        let mut held = queue.lock();
        held.firing = None;
        if held.nearest_timer().is_none_or(|deadline| deadline > now) {
            break;
        }
        let due = held.entries.pop_first();
        held.firing = due.as_ref().map(|(key, _)| *key);
        drop(held);
        match due {
            Some((_, target)) if target.needs_thread() => {
                DEFERRED.lock().push(target);
                FOR_THREAD.wake_all();
            }
            Some((_, target)) => target.expired(now),
            None => {}
        }
    }
    let mut held = queue.lock();
    held.armed = None;
    if held.sample.is_some_and(|at| at <= now) {
        let goes_on = trap::sample_hook(from_user);
        held.sample = goes_on.then(|| Nanos(now.0.saturating_add(SAMPLE_NS)));
        SAMPLING.with(|sampling| sampling.store(goes_on, Ordering::Relaxed));
    }
    let slice_over = held.slice_end.is_some_and(|end| end <= now);
    if slice_over {
        held.slice_end = None;
        // Relaxed: see `slice_runs`.
        SLICE_RUNS[cpu_id()].store(false, Ordering::Relaxed);
    }
    held.program();
    drop(held);
    if slice_over {
        trap::timer_hook();
    }
}
