//! [`RunQueue`]: the tasks that wait for one CPU.
//!
//! A binary heap by real-time rank, then weighted run time, then arrival: O(log n) for everything. Its
//! capacity is reserved when tasks are made, so that waking never allocates. Lock level `RunQueue`; held
//! with interrupts off, never across a switch.

use super::super::Task;
use super::entity::NORMAL_RANK;
use crate::arch::percpu::MAX_CPUS;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::cmp::Ordering as Order;
use core::sync::atomic::{AtomicUsize, Ordering};

/// How far behind the others a task that slept may start, in weighted nanoseconds.
const SLEEPER_BONUS: u64 = 2_000_000;

/// The tasks that wait for one CPU.
pub(super) struct RunQueue {
    heap: BinaryHeap<Waiting>,
    /// The least weighted run time of any task here; only grows.
    least: u64,
    arrivals: u64,
    /// What runs when nothing else does.
    pub(super) idle: Option<Arc<Task>>,
}

struct Waiting {
    rank: u32,
    vruntime: u64,
    arrival: u64,
    task: Arc<Task>,
}

impl Waiting {
    fn key(&self) -> (u32, u64, u64) {
        (self.rank, self.vruntime, self.arrival)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    /// Reversed: the heap's greatest is the one that runs next.
    fn cmp(&self, other: &Self) -> Order {
        other.key().cmp(&self.key())
    }
}

impl RunQueue {
    const fn new() -> Self {
        Self { heap: BinaryHeap::new(), least: 0, arrivals: 0, idle: None }
    }

    /// How many tasks wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Adds a task that has just become runnable.
    pub(super) fn push_woken(&mut self, task: Arc<Task>) {
        // Relaxed: under the queue's lock.
        let own = task.sched.vruntime.load(Ordering::Relaxed);
        let vruntime = own.max(self.least.saturating_sub(SLEEPER_BONUS));
        task.sched.vruntime.store(vruntime, Ordering::Relaxed);
        self.push(task);
    }

    /// Adds a task that goes on waiting.
    pub(super) fn push(&mut self, task: Arc<Task>) {
        self.arrivals = self.arrivals.wrapping_add(1);
        let rank = task.sched.rank();
        // Relaxed: under the queue's lock. Real-time tasks go by arrival alone.
        let vruntime =
            if rank == NORMAL_RANK { task.sched.vruntime.load(Ordering::Relaxed) } else { 0 };
        self.heap.push(Waiting { rank, vruntime, arrival: self.arrivals, task });
    }

    /// Takes the task that should run next.
    pub(super) fn pop(&mut self) -> Option<Arc<Task>> {
        let next = self.heap.pop()?;
        if next.rank == NORMAL_RANK {
            self.least = self.least.max(next.vruntime);
        }
        Some(next.task)
    }

    /// Whether a waiting task should run rather than `running`, which would go on otherwise. With `lead`,
    /// only if it is that far behind.
    #[inline]
    pub(super) fn beats(&self, running: &Task, lead: u64) -> bool {
        let Some(first) = self.heap.peek() else { return false };
        let rank = running.sched.rank();
        if first.rank != rank || rank != NORMAL_RANK {
            return first.rank < rank
                || (first.rank == rank && running.sched.has_slice() && lead == 0);
        }
        // Relaxed: under the queue's lock.
        let own = running.sched.vruntime.load(Ordering::Relaxed);
        first.vruntime.saturating_add(lead) < own
    }
}

static QUEUES: [SpinLock<RunQueue, level::RunQueue>; MAX_CPUS] =
    [const { SpinLock::new(RunQueue::new()) }; MAX_CPUS];

/// The queue of one CPU.
#[inline]
pub(super) fn of_cpu(cpu: usize) -> &'static SpinLock<RunQueue, level::RunQueue> {
    &QUEUES[cpu]
}

/// Capacity of every queue of a running CPU.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Makes room for `tasks` tasks on every running CPU's queue; `ENOMEM`.
pub(in crate::process) fn reserve(tasks: usize) -> Result<()> {
    // Relaxed: too small a value only repeats the reservation.
    if tasks <= RESERVED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let wanted = tasks.next_power_of_two().max(64);
    for queue in QUEUES.iter().take(crate::arch::percpu::cpus_online()) {
        let mut queue = queue.lock();
        let more = wanted.saturating_sub(queue.heap.len());
        queue.heap.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
    }
    // Relaxed: see above.
    RESERVED.fetch_max(wanted, Ordering::Relaxed);
    Ok(())
}
