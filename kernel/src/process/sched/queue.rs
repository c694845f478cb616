//! The run queue of each CPU: [`alea_runq`]'s, under its lock.
//!
//! Owns the queues, and what other CPUs need to know of the task that runs. Who runs next is decided in that crate.
//! Room is reserved when tasks are made, so that waking never allocates. Locks: `RunQueue`, held with interrupts off,
//! one at a time, never across a switch.

use crate::base::PAGE_SIZE;
use crate::base::percpu::MAX_CPUS;
use crate::mm::heap::pages_of_room;
use crate::process::task::task::Task;
use crate::sync::{SpinGuard, SpinLock, level};
use abi::{Errno, Result};
use alea_runq::{Length, NORMAL_RANK, Place, Preempts, Standing};
use alloc::sync::Arc;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The tasks that wait for one CPU, and the one that runs.
pub(super) struct RunQueue {
    waiting: alea_runq::RunQueue<Arc<Task>>,
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
    standing: Standing,
    pub(super) is_idle: bool,
    /// When it got the CPU, in nanoseconds since boot.
    pub(super) since: u64,
}

impl Running {
    #[inline]
    pub(super) fn new(task: &Task, is_idle: bool, since: u64) -> Self {
        let id = core::ptr::from_ref(task).addr();
        Self { id, standing: task.sched.standing(), is_idle, since }
    }

    /// Whether it is a real-time task.
    pub(super) fn is_urgent(&self) -> bool {
        self.standing.rank < NORMAL_RANK
    }

    pub(super) fn is(&self, task: &Task) -> bool {
        self.id == core::ptr::from_ref(task).addr()
    }
}

impl RunQueue {
    const fn new() -> Self {
        let standing = Standing { rank: 0, vruntime: 0 };
        let running = Running { id: 0, standing, is_idle: true, since: 0 };
        Self { waiting: alea_runq::RunQueue::new(), idle: None, running }
    }

    /// How many tasks wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a task that has just become runnable.
    pub(super) fn push_woken(&mut self, task: Arc<Task>) {
        // Relaxed: under the queue's lock.
        let own = task.sched.vruntime.load(Ordering::Relaxed);
        task.sched.vruntime.store(self.waiting.after_sleep(own), Ordering::Relaxed);
        self.push(task, Place::Tail);
    }

    /// The running task runs on; so far it has that standing.
    pub(super) fn runs_on(&mut self, task: &Task, standing: Standing) {
        debug_assert!(self.running.is(task), "another task than the running one runs on");
        self.running.standing = standing;
        self.waiting.runs_on(standing);
    }

    /// Adds a task that goes on waiting.
    pub(super) fn push(&mut self, task: Arc<Task>, place: Place) {
        let standing = task.sched.standing();
        self.push_as(task, standing, place);
    }

    /// The same with a standing that the caller has just asked for.
    #[inline]
    pub(super) fn push_as(&mut self, task: Arc<Task>, standing: Standing, place: Place) {
        self.waiting.push(task, standing, place);
    }

    /// A task's rank has changed: it takes the place here that it has now.
    pub(super) fn place_again(&mut self, task: &Task, place: Place) {
        if let Some(task) = self.waiting.remove(|one| core::ptr::eq(&**one, task)) {
            self.push(task, place);
        }
        if self.running.is(task) {
            self.running.standing.rank = task.sched.rank();
        }
    }

    /// Takes the task that should run next.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<Arc<Task>> {
        self.waiting.pop(now)
    }

    /// Whether a task that was just queued should run rather than the one that runs, and when.
    #[inline]
    pub(super) fn preempts(&self, now: impl FnOnce() -> u64) -> Preempts {
        self.waiting.preempts(self.running.standing, self.running.since, now)
    }

    /// A task, which may be the idle one, has run for `ran` nanoseconds until now; it is in no queue.
    #[inline]
    pub(super) fn has_run(&mut self, task: &Task, is_idle: bool, ran: u64, now: u64) {
        self.waiting.has_run(|| (!is_idle).then(|| task.sched.rank()), ran, now);
    }

    /// Whether a task that could go on makes way; one that rotates does so for its equals too.
    #[inline]
    pub(super) fn displaces(&self, standing: Standing, rotates: bool, now: u64) -> bool {
        self.waiting.displaces(standing, rotates, now)
    }

    /// When to look here again, with `task`, which is the running one, on the CPU.
    #[inline]
    pub(super) fn next_look(&mut self, task: &Task, now: u64) -> Option<u64> {
        if self.waiting.is_empty() {
            return None;
        }
        debug_assert!(self.running.is(task), "another task than the running one has the slice");
        let Running { standing, since, .. } = self.running;
        self.waiting.next_look(standing, since, task.sched.slice_left(), now)
    }

    /// How far the task's run time is ahead of this queue's least.
    pub(super) fn lead_of(&self, task: &Task) -> u64 {
        // Relaxed: the task is in the caller's hands.
        self.waiting.lead_of(task.sched.vruntime.load(Ordering::Relaxed))
    }

    /// Gives a task from another queue the place here that it had there.
    pub(super) fn adopt(&self, task: &Task, lead: u64) {
        // Relaxed: as in `lead_of`.
        task.sched.vruntime.store(self.waiting.with_lead(lead), Ordering::Relaxed);
    }

    /// The CPUs that the task may use that would run next.
    pub(super) fn wanted_by_next(&self) -> u64 {
        self.waiting.peek().map_or(0, |first| first.sched.affinity())
    }

    /// Takes a waiting task for another CPU: the next one that may run there and has left this CPU's stack.
    pub(super) fn take_for(&mut self, cpu: usize) -> Taken {
        let mut leaving = false;
        let taken = self.waiting.take(SEARCHED, |task| {
            let allowed = task.sched.affinity() >> cpu & 1 != 0;
            let still_here = allowed && task.is_on_cpu();
            leaving |= still_here;
            allowed && !still_here
        });
        match taken {
            Some(task) => Taken::Task(task),
            None if leaving => Taken::Soon,
            None => Taken::Nothing,
        }
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
    len: Length,
}

static QUEUES: [Slot; MAX_CPUS] =
    [const { Slot { queue: SpinLock::new(RunQueue::new()), len: Length::new() } }; MAX_CPUS];

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
        self.slot.len.publish(self.guard.len());
    }
}

/// Locks the queue of one CPU.
#[inline]
pub(super) fn lock(cpu: usize) -> Locked {
    let slot = &QUEUES[cpu];
    Locked { guard: slot.queue.lock(), slot }
}

/// As [`lock`], where interrupts are off and stay so.
#[inline]
pub(super) fn lock_irqs_off(cpu: usize) -> Locked {
    let slot = &QUEUES[cpu];
    Locked { guard: slot.queue.lock_irqs_off(), slot }
}

/// Locks the queue of the CPU that the task belongs to: which, and the queue. It stays the task's while locked.
/// Interrupts are off.
#[inline]
pub(super) fn lock_of(task: &Task) -> (usize, Locked) {
    loop {
        let cpu = task.sched.cpu();
        let queue = lock_irqs_off(cpu);
        if task.sched.cpu() == cpu {
            return (cpu, queue);
        }
    }
}

/// How many tasks waited for a CPU a moment ago.
#[inline]
pub(super) fn len_of(cpu: usize) -> usize {
    QUEUES[cpu].len.get()
}

/// Room comes in pieces of a page: up to 21,000 tasks a fork needs no two frames that lie side by side for it.
const PIECE_BYTES: usize = alea_runq::RunQueue::<Arc<Task>>::PIECE_BYTES;
const _: () = assert!(PIECE_BYTES <= PAGE_SIZE);

/// Capacity of every queue of a running CPU.
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Makes room for `tasks` tasks on every running CPU's queue; `ENOMEM`.
pub(in crate::process) fn reserve(tasks: usize) -> Result<()> {
    // Relaxed: too small a value only repeats the reservation.
    if tasks <= RESERVED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let wanted = tasks.next_multiple_of(alea_runq::PIECE);
    for cpu in 0..crate::base::percpu::cpus_online() {
        reserve_on(cpu, wanted)?;
    }
    // Relaxed: see above.
    RESERVED.fetch_max(wanted, Ordering::Relaxed);
    Ok(())
}

/// Pages of the room that all queues have, which never gets less.
pub(in crate::process) fn kept_pages() -> u64 {
    let pieces = |slot: &Slot| slot.queue.lock().waiting.pieces() as u64;
    QUEUES.iter().map(pieces).sum::<u64>() * pages_of_room::<u8>(PIECE_BYTES)
}

/// Readies the queue of a CPU that is about to start.
pub(super) fn prepare(cpu: usize, idle: Arc<Task>) -> Result<()> {
    // Relaxed: nothing else runs yet.
    reserve_on(cpu, RESERVED.load(Ordering::Relaxed).max(alea_runq::PIECE))?;
    let mut queue = lock(cpu);
    queue.running = Running::new(&idle, true, 0);
    queue.idle = Some(idle);
    Ok(())
}

fn reserve_on(cpu: usize, tasks: usize) -> Result<()> {
    lock(cpu).waiting.reserve(tasks).map_err(|_| Errno::ENOMEM)
}
