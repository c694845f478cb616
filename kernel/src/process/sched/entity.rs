//! [`Entity`]: what the scheduler keeps in each task.
//!
//! `state` is set to a sleeping value by the task itself and back to running under the run queue lock of
//! its CPU; `vruntime` and `cpu` change under that lock (`cpu` under that of the CPU that it leaves).
//!
//! Owns the state of a task, its weight and where it belongs. Never moves a task: `schedule` and `place` do. Locks: the
//! run queue's; `parked` is an atomic slot.

use super::settings::rr_slice_ns;
use crate::base::percpu::MAX_CPUS;
use crate::process::task::task::Task;
use crate::sync::ArcSlot;
use alea_runq::{NORMAL_RANK, Place, Standing};
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Whether a task runs or why it does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Running, or waiting for a CPU.
    Runnable = 0,
    /// Asleep until woken or signalled.
    Interruptible = 1,
    /// Asleep until woken.
    Uninterruptible = 2,
    /// Asleep until woken or killed.
    Killable = 3,
    /// Ended: never runs again.
    Dead = 4,
}

impl State {
    fn from_raw(raw: u8) -> Self {
        match raw {
            0 => Self::Runnable,
            1 => Self::Interruptible,
            2 => Self::Uninterruptible,
            3 => Self::Killable,
            _ => Self::Dead,
        }
    }
}

/// Linux's scheduling policies.
pub mod policy {
    pub const NORMAL: u32 = 0;
    pub const FIFO: u32 = 1;
    pub const RR: u32 = 2;
    pub const BATCH: u32 = 3;
    pub const IDLE: u32 = 5;
    pub const DEADLINE: u32 = 6;
}

/// A task's policy and priority, set as one.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Policy {
    pub policy: u32,
    /// 1..=99 for FIFO and RR, else 0.
    pub priority: u32,
    /// New threads and children go back to NORMAL.
    pub reset_on_fork: bool,
}

impl Policy {
    /// Whether it goes before all normal tasks.
    pub fn is_realtime(self) -> bool {
        matches!(self.policy, policy::FIFO | policy::RR)
    }
}

/// The scheduler's part of a task.
pub struct Entity {
    state: AtomicU8,
    cpu: AtomicU32,
    pub(super) vruntime: AtomicU64,
    /// The task's own reference while it sleeps: whoever wakes it takes it to the run queue.
    pub(super) parked: ArcSlot<Task>,
    nice: AtomicI32,
    io_priority: AtomicU32,
    policy: AtomicU32,
    priority: AtomicU32,
    reset_on_fork: AtomicU8,
    /// How much of its slice a SCHED_RR task has used.
    used: AtomicU64,
    /// How long a normal task runs while others wait.
    slice: AtomicU64,
    /// The rank of the most urgent one that waits for a lock of this task; [`NOT_LENT`] if nobody does.
    lent: AtomicU32,
    affinity: AtomicU64,
    /// Runnable and in no queue: whoever ends the switch away from it finds it a CPU. Only the CPU that
    /// switches touches it.
    homeless: AtomicU8,
}

// Everything below is Relaxed unless said otherwise: single numbers, or values ordered by the run queue
// lock.
impl Entity {
    /// A runnable entity with the default policy.
    pub fn new(cpu: usize) -> Self {
        Self {
            state: AtomicU8::new(State::Runnable as u8),
            cpu: AtomicU32::new(cpu as u32),
            vruntime: AtomicU64::new(0),
            parked: ArcSlot::new(),
            nice: AtomicI32::new(0),
            io_priority: AtomicU32::new(0),
            policy: AtomicU32::new(policy::NORMAL),
            priority: AtomicU32::new(0),
            reset_on_fork: AtomicU8::new(0),
            used: AtomicU64::new(0),
            slice: AtomicU64::new(SLICE_NS),
            lent: AtomicU32::new(NOT_LENT),
            affinity: AtomicU64::new(u64::MAX),
            homeless: AtomicU8::new(0),
        }
    }

    /// The entity of a child.
    pub fn fork(&self, cpu: usize) -> Self {
        let child = Self::new(cpu);
        let order = Ordering::Relaxed;
        child.vruntime.store(self.vruntime.load(order), order);
        child.affinity.store(self.affinity.load(order), order);
        child.io_priority.store(self.io_priority(), order);
        let own = self.policy();
        let is_realtime = own.is_realtime();
        let (nice, policy) = match own.reset_on_fork {
            false => (self.nice(), own),
            true if is_realtime => (0, Policy::default()),
            true => (self.nice().max(0), Policy { reset_on_fork: false, ..own }),
        };
        child.nice.store(nice, order);
        let _rank_of_a_new_task = child.set_policy(policy);
        if !own.reset_on_fork {
            child.slice.store(self.slice.load(order), order);
        }
        child
    }

    /// Whether it runs, or why not.
    #[inline]
    pub fn state(&self) -> State {
        // SeqCst, with `set_state`: the mark that a task sleeps and the condition that it sleeps on are
        // written and read in opposite order by sleeper and waker.
        State::from_raw(self.state.load(Ordering::SeqCst))
    }

    #[inline]
    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::SeqCst);
    }

    /// The CPU it runs on, or ran on last.
    #[inline]
    pub fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed) as usize
    }

    /// Moves it to another CPU: under the queue lock of the one that it leaves.
    pub(super) fn set_cpu(&self, cpu: usize) {
        self.cpu.store(cpu as u32, Ordering::Relaxed);
    }

    /// -20..=19.
    pub fn nice(&self) -> i32 {
        self.nice.load(Ordering::Relaxed)
    }

    /// Sets the nice value; takes effect as the task runs on.
    pub fn set_nice(&self, nice: i32) {
        self.nice.store(nice.clamp(-20, 19), Ordering::Relaxed);
    }

    /// How long it runs while others wait, as a normal task.
    pub fn slice(&self) -> u64 {
        self.slice.load(Ordering::Relaxed)
    }

    /// Sets that, within Linux's bounds; 0 is for the usual one.
    pub fn set_slice(&self, nanos: u64) {
        let slice = if nanos == 0 { SLICE_NS } else { nanos.clamp(LEAST_SLICE_NS, MOST_SLICE_NS) };
        self.slice.store(slice, Ordering::Relaxed);
    }

    /// What `ioprio_set` has set; 0 if nothing has.
    pub fn io_priority(&self) -> u32 {
        self.io_priority.load(Ordering::Relaxed)
    }

    /// Sets what [`io_priority`](Self::io_priority) gives.
    pub fn set_io_priority(&self, priority: u32) {
        self.io_priority.store(priority, Ordering::Relaxed);
    }

    /// Policy and priority.
    pub fn policy(&self) -> Policy {
        Policy {
            policy: self.policy.load(Ordering::Relaxed),
            priority: self.priority.load(Ordering::Relaxed),
            reset_on_fork: self.reset_on_fork.load(Ordering::Relaxed) != 0,
        }
    }

    /// Sets policy and priority, and begins a slice: the place among its new equals, if its rank is another one now.
    pub(super) fn set_policy(&self, new: Policy) -> Option<Place> {
        self.changing_rank(|| {
            self.policy.store(new.policy, Ordering::Relaxed);
            self.priority.store(new.priority, Ordering::Relaxed);
            self.reset_on_fork.store(u8::from(new.reset_on_fork), Ordering::Relaxed);
            self.used.store(0, Ordering::Relaxed);
        })
    }

    /// The CPUs it may run on, one bit each.
    pub fn affinity(&self) -> u64 {
        self.affinity.load(Ordering::Relaxed)
    }

    /// Sets the CPUs it may run on.
    pub fn set_affinity(&self, mask: u64) {
        const { assert!(MAX_CPUS <= 64) };
        self.affinity.store(mask, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn set_homeless(&self) {
        self.homeless.store(1, Ordering::Relaxed);
    }

    /// Whether it must be found a CPU; it is asked once.
    #[inline]
    pub(super) fn take_homeless(&self) -> bool {
        let homeless = self.homeless.load(Ordering::Relaxed) != 0;
        if homeless {
            self.homeless.store(0, Ordering::Relaxed);
        }
        homeless
    }

    /// Real-time tasks run before all others, the greater priority first.
    #[inline]
    pub fn rank(&self) -> u32 {
        let own = match self.policy.load(Ordering::Relaxed) {
            policy::FIFO | policy::RR => 99 - self.priority.load(Ordering::Relaxed).min(99),
            _ => NORMAL_RANK,
        };
        own.min(self.lent.load(Ordering::Relaxed))
    }

    /// Lends it a rank, or takes that back: its place among its new equals, if its own rank is another one now.
    pub(super) fn lend(&self, rank: Option<u32>) -> Option<Place> {
        self.changing_rank(|| self.lent.store(rank.unwrap_or(NOT_LENT), Ordering::Relaxed))
    }

    fn changing_rank(&self, change: impl FnOnce()) -> Option<Place> {
        let before = self.rank();
        change();
        let after = self.rank();
        (after != before).then(|| Place::after_change(before, after))
    }

    /// What decides when its turn comes.
    #[inline]
    pub(super) fn standing(&self) -> Standing {
        Standing { rank: self.rank(), vruntime: self.vruntime.load(Ordering::Relaxed) }
    }

    /// How long it may run while others wait; SCHED_FIFO tasks run until they sleep.
    #[inline]
    pub(super) fn slice_left(&self) -> Option<u64> {
        match self.policy.load(Ordering::Relaxed) {
            policy::FIFO => None,
            policy::RR => Some(rr_slice_ns().saturating_sub(self.used.load(Ordering::Relaxed))),
            _ => Some(self.slice()),
        }
    }

    /// It has run for so long. Whether that ends a slice of SCHED_RR, which begins anew.
    #[inline]
    pub(super) fn use_slice(&self, ran: u64) -> bool {
        if self.policy.load(Ordering::Relaxed) != policy::RR {
            return false;
        }
        let used = self.used.load(Ordering::Relaxed).saturating_add(ran);
        let is_over = used >= rr_slice_ns();
        self.used.store(if is_over { 0 } else { used }, Ordering::Relaxed);
        is_over
    }

    /// Nanoseconds of weighted time for `ran` nanoseconds of the clock.
    #[inline]
    pub(super) fn weighted(&self, ran: u64) -> u64 {
        if self.policy.load(Ordering::Relaxed) == policy::IDLE {
            return ran.saturating_mul(INVERSE_OF_IDLE);
        }
        match self.nice() {
            0 => ran,
            nice => {
                let inverse = INVERSE_WEIGHT[(nice + 20).clamp(0, 39) as usize];
                ((u128::from(ran) * u128::from(inverse)) >> 16) as u64
            }
        }
    }
}

/// How long a task runs while others wait.
pub(super) const SLICE_NS: u64 = 4_000_000;
/// What a task may choose of it.
const LEAST_SLICE_NS: u64 = 100_000;
const MOST_SLICE_NS: u64 = 100_000_000;

/// Nobody waits for a lock of the task.
const NOT_LENT: u32 = u32::MAX;
/// Linux gives SCHED_IDLE a weight of 3 beside 1024.
const INVERSE_OF_IDLE: u64 = 341;

/// 65536 * 1.25^nice: each step of nice is worth a quarter of the CPU time beside an equal competitor.
const INVERSE_WEIGHT: [u64; 40] = {
    let mut table = [0; 40];
    let mut nice = 0;
    let mut up = 65536u64 << 20;
    let mut down = 65536u64 << 20;
    while nice < 20 {
        table[20 + nice] = up >> 20;
        up = up / 4 * 5;
        down = down / 5 * 4;
        table[19 - nice] = down >> 20;
        nice += 1;
    }
    table
};
