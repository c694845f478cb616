//! [`RunQueue`]: the tasks that wait for one CPU.
//!
//! A binary heap by real-time rank, then weighted run time, then place in line: O(log n) for all that happens often. The
//! first stands beside the heap: most often it is the only one, and nothing is sorted.
//! Real-time tasks of one rank stand in a line: who becomes runnable, yields or has used up a slice goes to its tail, who
//! is preempted or lowered to this rank to its head, as POSIX and Linux have it. [`Share`] lets normal tasks go first now
//! and then.
//!
//! Owns the order. Memory is had in [`RunQueue::reserve`] only. Whoever has it locked uses it.

use crate::heap::{Heap, PIECE};
use crate::share::Share;
use alloc::collections::TryReserveError;
use core::cmp::Ordering as Order;

/// The rank of tasks that are not real-time; a smaller rank is more urgent.
pub const NORMAL_RANK: u32 = 100;
/// How far behind the others a task that slept may start, in weighted nanoseconds.
const SLEEPER_BONUS: u64 = 2_000_000;

/// How far behind the running task a woken one must be to preempt it, in weighted nanoseconds.
const WAKEUP_LEAD: u64 = 1_000_000;
/// How long a normal task has the CPU before another normal one that wakes takes it away, in nanoseconds: one that feeds others
/// in small pieces makes many of them at once.
pub const UNDISTURBED_NS: u64 = 500_000;

/// Whether a task that has just become runnable takes the CPU from the running one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preempts {
    Now,
    /// Then the running one will have had the CPU for [`UNDISTURBED_NS`].
    At(u64),
    Never,
}

/// What decides when a task's turn comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    pub rank: u32,
    /// Weighted run time, which orders normal tasks.
    pub vruntime: u64,
}

impl Standing {
    fn is_normal(self) -> bool {
        self.rank >= NORMAL_RANK
    }
}

/// Where a task goes among real-time tasks of its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Head,
    Tail,
}

impl Place {
    /// Of a task whose rank changes: lowered, it is before its new equals, raised, behind them.
    #[inline]
    pub fn after_change(old_rank: u32, new_rank: u32) -> Self {
        if new_rank > old_rank { Self::Head } else { Self::Tail }
    }
}

struct Waiting<T> {
    standing: Standing,
    /// Grows towards the tail.
    place: i64,
    task: T,
}

impl<T> Waiting<T> {
    fn key(&self) -> (u32, u64, i64) {
        (self.standing.rank, self.standing.vruntime, self.place)
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for Waiting<T> {}
impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Waiting<T> {
    /// Reversed: the heap's greatest is the one that runs next.
    fn cmp(&self, other: &Self) -> Order {
        other.key().cmp(&self.key())
    }
}

/// The tasks that wait for one CPU.
pub struct RunQueue<T> {
    /// Whose turn is next.
    first: Option<Waiting<T>>,
    /// All others; empty if there is no first.
    heap: Heap<Waiting<T>>,
    /// How many of them are normal.
    normal: usize,
    /// The least weighted run time of any task that ran from here; only grows.
    least: u64,
    head: i64,
    tail: i64,
    share: Share,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RunQueue<T> {
    /// Nobody waits, and there is no room.
    pub const fn new() -> Self {
        let share = Share::new();
        let heap = Heap::new();
        Self { first: None, heap, normal: 0, least: 0, head: 0, tail: 0, share }
    }

    /// Makes room for `tasks` tasks in all.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, tasks: usize) -> Result<(), TryReserveError> {
        // One more than the heap will hold.
        self.heap.reserve(tasks)
    }

    /// How many there is room for.
    pub fn capacity(&self) -> usize {
        self.heap.capacity()
    }

    /// Of how many pieces of memory that room consists.
    pub fn pieces(&self) -> usize {
        self.heap.capacity() / PIECE
    }

    /// How many bytes each of them has.
    pub const PIECE_BYTES: usize = Heap::<Waiting<T>>::PIECE_BYTES;

    /// How many tasks wait.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.heap.len()
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The run time that a task starts with which has slept.
    #[inline]
    pub fn after_sleep(&self, vruntime: u64) -> u64 {
        vruntime.max(self.least.saturating_sub(SLEEPER_BONUS))
    }

    /// A normal task runs on and on, now with that run time: the least follows it, unless who waits first is behind. So those who
    /// come later begin where it is, and not where it was when it got the CPU.
    pub fn runs_on(&mut self, running: Standing) {
        let first =
            self.first.as_ref().map(|first| first.standing).filter(|first| first.is_normal());
        if running.is_normal() {
            let behind =
                first.map_or(running.vruntime, |first| first.vruntime.min(running.vruntime));
            self.least = self.least.max(behind);
        }
    }

    /// How far a run time is ahead of this queue's least.
    pub fn lead_of(&self, vruntime: u64) -> u64 {
        vruntime.saturating_sub(self.least)
    }

    /// The run time that gives a task from another queue the place here that it had there.
    pub fn with_lead(&self, lead: u64) -> u64 {
        self.least.saturating_add(lead)
    }

    /// Adds a task, for which there must be room.
    #[inline]
    pub fn push(&mut self, task: T, standing: Standing, place: Place) {
        debug_assert!(self.len() < self.heap.capacity(), "room is reserved for every task");
        let place = match place {
            Place::Tail => {
                self.tail = self.tail.wrapping_add(1);
                self.tail
            }
            Place::Head => {
                self.head = self.head.wrapping_sub(1);
                self.head
            }
        };
        // Real-time tasks go by their place in line alone.
        let vruntime = if standing.is_normal() { standing.vruntime } else { 0 };
        self.normal += usize::from(standing.is_normal());
        let standing = Standing { vruntime, ..standing };
        let mut new = Waiting { standing, place, task };
        match &mut self.first {
            None => self.first = Some(new),
            Some(first) => {
                if new > *first {
                    core::mem::swap(first, &mut new);
                }
                self.heap.push(new);
            }
        }
    }

    /// The task that would run next if none were owed anything.
    #[inline]
    pub fn peek(&self) -> Option<&T> {
        self.first.as_ref().map(|first| &first.task)
    }

    /// Takes the task that should run next.
    #[inline]
    pub fn pop(&mut self, now: u64) -> Option<T> {
        let owed = self.first_is_urgent() && self.share.is_owed(now);
        let next = match owed.then(|| self.best_normal()).flatten() {
            Some(at) => self.extract(at)?,
            None => self.take_first()?,
        };
        if next.standing.is_normal() {
            self.least = self.least.max(next.standing.vruntime);
        }
        Some(self.leaves(next))
    }

    /// Takes the next task that `fits`, or one that soon would be; only so many are looked at.
    pub fn take(&mut self, searched: usize, mut fits: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.all().take(searched).position(|waiting| fits(&waiting.task))?;
        let taken = self.extract(at)?;
        Some(self.leaves(taken))
    }

    /// Takes a certain task, if it waits here.
    pub fn remove(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.all().position(|waiting| is_it(&waiting.task))?;
        let taken = self.extract(at)?;
        Some(self.leaves(taken))
    }

    fn leaves(&mut self, waiting: Waiting<T>) -> T {
        self.normal -= usize::from(waiting.standing.is_normal());
        waiting.task
    }

    /// The first, and the others in the order of the heap's places.
    fn all(&self) -> impl Iterator<Item = &Waiting<T>> {
        self.first.iter().chain(self.heap.iter())
    }

    #[inline]
    fn take_first(&mut self) -> Option<Waiting<T>> {
        let next = if self.heap.is_empty() { None } else { self.heap.pop() };
        core::mem::replace(&mut self.first, next)
    }

    /// Takes what is at a place of [`all`](Self::all).
    fn extract(&mut self, at: usize) -> Option<Waiting<T>> {
        match at.checked_sub(1) {
            None => self.take_first(),
            Some(at) => self.heap.remove(at),
        }
    }

    fn first_is_urgent(&self) -> bool {
        self.first.as_ref().is_some_and(|first| !first.standing.is_normal())
    }

    /// Where the normal task is that would run first; looked for only while normal tasks go before real-time ones.
    fn best_normal(&self) -> Option<usize> {
        let normal = self.all().enumerate().filter(|(_, one)| one.standing.is_normal());
        normal.min_by_key(|(_, one)| one.key()).map(|(at, _)| at)
    }

    /// Whether a task that was just queued should run rather than the running one, which has had the CPU since then.
    #[inline]
    pub fn preempts(&self, running: Standing, since: u64, now: impl FnOnce() -> u64) -> Preempts {
        let end = since.saturating_add(UNDISTURBED_NS);
        if !self.beats(running, WAKEUP_LEAD) {
            Preempts::Never
        } else if self.first_is_urgent() || now() >= end {
            Preempts::Now
        } else {
            Preempts::At(end)
        }
    }

    /// Whether the first should run rather than the running one. With `lead`, a normal one only if it is that far behind.
    #[inline]
    fn beats(&self, running: Standing, lead: u64) -> bool {
        let Some(first) = &self.first else { return false };
        let first = first.standing;
        if first.rank != running.rank || !running.is_normal() {
            return first.rank < running.rank;
        }
        first.vruntime.saturating_add(lead) < running.vruntime
    }

    /// Whether the running task, which could go on, makes way. One that `rotates`, because it yields or has used up its
    /// slice, does so for its equals too.
    #[inline]
    pub fn displaces(&self, running: Standing, rotates: bool, now: u64) -> bool {
        let Some(first) = &self.first else { return false };
        if self.share.is_owed(now) && (self.first_is_urgent() || !running.is_normal()) {
            return self.displaces_while_owed(running, rotates);
        }
        let equal = rotates && !running.is_normal() && first.standing.rank == running.rank;
        equal || self.beats(running, 0)
    }

    /// The same while normal tasks go before real-time ones.
    #[cold]
    fn displaces_while_owed(&self, running: Standing, rotates: bool) -> bool {
        let best = self.best_normal().and_then(|at| self.all().nth(at));
        match best {
            Some(best) => !running.is_normal() || best.standing.vruntime < running.vruntime,
            None if running.is_normal() => false,
            None => self.beats(running, 0) || rotates,
        }
    }

    /// The running task, if it was not the idle one, has run until now; it is in no queue.
    #[inline]
    pub fn has_run(&mut self, rank: impl FnOnce() -> Option<u32>, ran: u64, now: u64) {
        if self.share.is_at_rest() {
            return;
        }
        match rank() {
            Some(rank) if rank >= NORMAL_RANK => self.share.fair_ran(ran),
            _ if self.normal == 0 => self.share.wait_ends(),
            _ => {}
        }
        self.share.renew(now);
    }

    /// When the CPU must look here again, with `running` on it since then, which has so much left of its slice, if it has one.
    #[inline]
    pub fn next_look(
        &mut self,
        running: Standing,
        since: u64,
        slice: Option<u64>,
        now: u64,
    ) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let end = match self.preempts(running, since, || now) {
            Preempts::At(end) => Some(end),
            _ => slice.map(|left| now.saturating_add(left)),
        };
        let share = if !running.is_normal() && self.normal != 0 {
            Some(self.share.wait_begins(now))
        } else if running.is_normal() && self.first_is_urgent() {
            Some(now.saturating_add(self.share.owed()))
        } else {
            None
        };
        match (end, share) {
            (Some(end), Some(share)) => Some(end.min(share)),
            (end, share) => end.or(share),
        }
    }
}
