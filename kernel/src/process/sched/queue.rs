//! [`RunQueue`]: the tasks that wait for one CPU.
//!
//! A binary heap by real-time rank, then weighted run time, then arrival: O(log n) for everything. Its
//! capacity is reserved when tasks are made, so that waking never allocates. Lock level `RunQueue`; held
//! with interrupts off, one at a time, never across a switch.

use super::super::Task;
use super::entity::NORMAL_RANK;
use crate::arch::percpu::MAX_CPUS;
use crate::sync::{SpinGuard, SpinLock, level};
use abi::{Errno, Result};
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::cmp::Ordering as Order;
use core::ops::{Deref, DerefMut};
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
    /// What runs now.
    pub(super) running: Running,
}

/// What other CPUs need to know of the running task.
#[derive(Clone, Copy)]
pub(super) struct Running {
    /// The address of the task, only to be compared.
    id: usize,
    rank: u32,
    vruntime: u64,
    has_slice: bool,
    pub(super) is_idle: bool,
}

impl Running {
    #[inline]
    pub(super) fn new(task: &Task, is_idle: bool) -> Self {
        let sched = &task.sched;
        Self {
            id: core::ptr::from_ref(task).addr(),
            rank: sched.rank(),
            // Relaxed: under the queue's lock.
            vruntime: sched.vruntime.load(Ordering::Relaxed),
            has_slice: sched.has_slice(),
            is_idle,
        }
    }

    pub(super) fn is(&self, task: &Task) -> bool {
        self.id == core::ptr::from_ref(task).addr()
    }
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
        let running = Running { id: 0, rank: 0, vruntime: 0, has_slice: true, is_idle: true };
        Self { heap: BinaryHeap::new(), least: 0, arrivals: 0, idle: None, running }
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

    /// A task's rank has changed: it takes the place here that it has now. Whether it waits here.
    pub(super) fn place_again(&mut self, task: &Task) -> bool {
        let mut all = core::mem::take(&mut self.heap).into_vec();
        let found = all.iter().position(|waiting| core::ptr::eq(&*waiting.task, task));
        let moved = found.map(|at| all.swap_remove(at).task);
        self.heap = BinaryHeap::from(all);
        let waits = moved.is_some();
        if let Some(task) = moved {
            self.push(task);
        }
        if self.running.is(task) {
            self.running.rank = task.sched.rank();
            self.running.has_slice = task.sched.has_slice();
        }
        waits
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
    pub(super) fn beats(&self, running: &Running, lead: u64) -> bool {
        let Some(first) = self.heap.peek() else { return false };
        if first.rank != running.rank || running.rank != NORMAL_RANK {
            return first.rank < running.rank
                || (first.rank == running.rank && running.has_slice && lead == 0);
        }
        first.vruntime.saturating_add(lead) < running.vruntime
    }

    /// How far the task's run time is ahead of this queue's least.
    pub(super) fn lead_of(&self, task: &Task) -> u64 {
        // Relaxed: the task is in the caller's hands.
        task.sched.vruntime.load(Ordering::Relaxed).saturating_sub(self.least)
    }

    /// Gives a task from another queue the place here that it had there.
    pub(super) fn adopt(&self, task: &Task, lead: u64) {
        // Relaxed: as in `lead_of`.
        task.sched.vruntime.store(self.least.saturating_add(lead), Ordering::Relaxed);
    }

    /// The CPUs that the task may use that would run next.
    pub(super) fn wanted_by_next(&self) -> u64 {
        self.heap.peek().map_or(0, |first| first.task.sched.affinity())
    }

    /// Takes a waiting task for another CPU: the next one that may run there and has left this CPU's stack.
    pub(super) fn take_for(&mut self, cpu: usize) -> Taken {
        let mut leaving = false;
        let mut fits = |waiting: &Waiting| {
            let allowed = waiting.task.sched.affinity() >> cpu & 1 != 0;
            let still_here = allowed && waiting.task.is_on_cpu();
            leaving |= still_here;
            allowed && !still_here
        };
        if self.heap.peek().is_some_and(&mut fits) {
            return self.pop().map_or(Taken::Nothing, Taken::Task);
        }
        let found = self.heap.iter().take(SEARCHED).position(&mut fits);
        let Some(at) = found else {
            return if leaving { Taken::Soon } else { Taken::Nothing };
        };
        // In the order of the heap's own vector, which keeps its room.
        let mut all = core::mem::take(&mut self.heap).into_vec();
        let task = all.swap_remove(at).task;
        self.heap = BinaryHeap::from(all);
        Taken::Task(task)
    }
}

/// How many waiting tasks are looked at for one that another CPU may run.
const SEARCHED: usize = 64;

/// What [`RunQueue::take_for`] found.
pub(super) enum Taken {
    Task(Arc<Task>),
    /// One that is just being switched away from.
    Soon,
    Nothing,
}

/// A queue in a cache line of its own, with its length to be read without the lock.
#[repr(align(64))]
struct Slot {
    queue: SpinLock<RunQueue, level::RunQueue>,
    len: AtomicUsize,
}

static QUEUES: [Slot; MAX_CPUS] =
    [const { Slot { queue: SpinLock::new(RunQueue::new()), len: AtomicUsize::new(0) } }; MAX_CPUS];

/// A locked queue; unlocking brings its length up to date.
pub(super) struct Locked {
    guard: SpinGuard<'static, RunQueue, level::RunQueue>,
    slot: &'static Slot,
}

impl Deref for Locked {
    type Target = RunQueue;
    #[inline]
    fn deref(&self) -> &RunQueue {
        &self.guard
    }
}

impl DerefMut for Locked {
    #[inline]
    fn deref_mut(&mut self) -> &mut RunQueue {
        &mut self.guard
    }
}

impl Drop for Locked {
    #[inline]
    fn drop(&mut self) {
        // Relaxed: a hint, ordered by the fences in `place`.
        self.slot.len.store(self.guard.heap.len(), Ordering::Relaxed);
    }
}

/// Locks the queue of one CPU.
#[inline]
pub(super) fn lock(cpu: usize) -> Locked {
    let slot = &QUEUES[cpu];
    Locked { guard: slot.queue.lock(), slot }
}

/// Locks the queue of the CPU that the task belongs to: which, and the queue. It stays the task's while locked.
#[inline]
pub(super) fn lock_of(task: &Task) -> (usize, Locked) {
    loop {
        let cpu = task.sched.cpu();
        let queue = lock(cpu);
        if task.sched.cpu() == cpu {
            return (cpu, queue);
        }
    }
}

/// How many tasks waited for a CPU a moment ago.
#[inline]
pub(super) fn len_of(cpu: usize) -> usize {
    // Relaxed: see `Locked`.
    QUEUES[cpu].len.load(Ordering::Relaxed)
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
    for cpu in 0..crate::arch::percpu::cpus_online() {
        reserve_on(cpu, wanted)?;
    }
    // Relaxed: see above.
    RESERVED.fetch_max(wanted, Ordering::Relaxed);
    Ok(())
}

/// Readies the queue of a CPU that is about to start.
pub(super) fn prepare(cpu: usize, idle: Arc<Task>) -> Result<()> {
    // Relaxed: nothing else runs yet.
    reserve_on(cpu, RESERVED.load(Ordering::Relaxed).max(64))?;
    let mut queue = lock(cpu);
    queue.running = Running::new(&idle, true);
    queue.idle = Some(idle);
    Ok(())
}

fn reserve_on(cpu: usize, tasks: usize) -> Result<()> {
    let mut queue = lock(cpu);
    let more = tasks.saturating_sub(queue.heap.len());
    queue.heap.try_reserve(more).map_err(|_| Errno::ENOMEM)
}
