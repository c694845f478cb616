//! The table of contended words of `pi`: who owns each and who waits for it.
//!
//! The most urgent waiter's rank is lent to the owner, and on along the chain of owners who wait themselves.
//!
//! Owns the table. Never wakes a task: one that is returned is the caller's to wake. Locks: [`TABLE`], a sleeping mutex
//! that is held over the accesses to the words; inside it those of the ordinary buckets.

use super::futex::{QUEUES, leave};
use super::key::Key;
use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::mm::user;
use crate::process::task::task::Task;
use crate::process::tree::table;
use crate::process::{self, sched};
use crate::sync::Mutex;
use abi::{Errno, Result};
use alea_futexq::{Entry, Kind};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

const WAITERS: u32 = super::futex::FUTEX_WAITERS;
const OWNER_DIED: u32 = super::futex::FUTEX_OWNER_DIED;
const TID_MASK: u32 = super::futex::FUTEX_TID_MASK;

/// Linux's bound on a chain of owners who wait for each other.
const MAX_CHAIN: usize = 1024;

/// What is known of a contended word.
pub(super) struct State {
    owner: Arc<Task>,
    /// The owner's other contended words, before and after this one.
    other: [Option<Key>; 2],
    /// The most urgent first, then by arrival; empty only while unsettled.
    waiters: Vec<(u32, Arc<Task>)>,
    /// The new owner has not written its number to the word yet.
    unsettled: bool,
}

/// All contended words. For which of them a task waits, and the first that it owns, is noted in the task
/// ([`Links`](super::waits::Links)): the words of one owner are a list, so that handing one over needs no memory.
pub(super) struct Table {
    states: BTreeMap<Key, State>,
}

pub(super) static TABLE: Mutex<Table> = Mutex::new(Table { states: BTreeMap::new() });

/// Number of contended words. SeqCst: an owner that ends says so, then looks here; a waiter is counted here,
/// then looks whether the owner ends.
pub(super) static CONTENDED: AtomicUsize = AtomicUsize::new(0);

/// How far a thread is with leaving its locks: `Task::futex_state`.
pub const ALIVE: u8 = 0;
pub const LEAVING: u8 = 1;
pub const GONE: u8 = 2;

/// What one look at the word came to.
pub(super) enum Step {
    Acquired,
    Owned(Arc<Task>),
    /// The word changed meanwhile.
    Again,
    /// The owner is ending: wait for that.
    Ending(Arc<Task>),
}

impl Table {
    /// Tries to take the word for `task`, or finds out who has it and marks it as contended.
    pub(super) fn step(
        &mut self,
        key: Key,
        addr: u64,
        task: &Arc<Task>,
        mark: bool,
    ) -> Result<Step> {
        let value = user::load_u32(addr)?;
        let tid = task.tid() as u32;
        let owner = value & TID_MASK;
        if owner == tid {
            return Err(Errno::EDEADLK);
        }
        if let Some(state) = self.states.get(&key) {
            let fits = state.owner.tid() as u32 == owner
                || state.unsettled
                || (owner == 0 && value & OWNER_DIED != 0);
            return if fits { Ok(Step::Owned(state.owner.clone())) } else { Err(Errno::EINVAL) };
        }
        if has_ordinary(key) {
            return Err(Errno::EINVAL);
        }
        if owner == 0 {
            let new = value & OWNER_DIED | tid | if mark { WAITERS } else { 0 };
            let swapped = user::cmpxchg_u32(addr, value, new)? == value;
            return Ok(if swapped { Step::Acquired } else { Step::Again });
        }
        if value & WAITERS == 0 && user::cmpxchg_u32(addr, value, value | WAITERS)? != value {
            return Ok(Step::Again);
        }
        let owner = table::lookup_task(owner as i32).filter(|task| task.futex_state() != GONE);
        match owner {
            Some(owner) if owner.is_kernel_thread() => Err(Errno::EPERM),
            Some(owner) if owner.futex_state() == LEAVING => Ok(Step::Ending(owner)),
            Some(owner) => Ok(Step::Owned(owner)),
            None if user::load_u32(addr)? != value | WAITERS => Ok(Step::Again),
            None => Err(Errno::ESRCH),
        }
    }

    /// What `task` writes to its word to unlock it: the first waiter's number. EINVAL if it does not own the word.
    pub(super) fn word_unlocked_by(&self, key: Key, task: &Arc<Task>) -> Result<u32> {
        match self.states.get(&key) {
            Some(state) if !Arc::ptr_eq(&state.owner, task) => Err(Errno::EINVAL),
            Some(state) => {
                Ok(state.waiters.first().map_or(0, |(_, next)| WAITERS | next.tid() as u32))
            }
            None if has_ordinary(key) => Err(Errno::EINVAL),
            None => Ok(0),
        }
    }

    /// Makes room for one more waiter for a word that `owner` has; `check_chain` has passed. If nobody is queued then,
    /// [`forget_if_free`](Self::forget_if_free) takes it back.
    pub(super) fn make_room(&mut self, key: Key, owner: &Arc<Task>) -> Result<()> {
        if !self.states.contains_key(&key) {
            let state = State {
                owner: owner.clone(),
                other: [None; 2],
                waiters: Vec::with_room(1)?,
                unsettled: false,
            };
            self.states.try_put(key, state)?;
            self.link(key, owner);
            CONTENDED.fetch_add(1, Ordering::SeqCst);
        }
        self.states.get_mut(&key).map_or(Ok(()), |state| state.waiters.try_room(1))
    }

    /// Forgets a word for which nobody waits and which nobody has to settle.
    pub(super) fn forget_if_free(&mut self, key: Key) -> Option<State> {
        let state = self.states.get(&key)?;
        if state.waiters.is_empty() && !state.unsettled { self.forget(key) } else { None }
    }

    /// Queues a task for a word that `owner` has and for which there is room.
    pub(super) fn enqueue(&mut self, owner: &Arc<Task>, entry: Entry<Key, Arc<Task>>) {
        let (key, task) = (entry.key(), entry.waiter().clone());
        if let Some(state) = self.states.get_mut(&key) {
            insert_by_rank(&mut state.waiters, task.sched.rank(), task.clone());
        }
        task.futex.links().blocked = Some(key);
        QUEUES.queue(entry);
        self.lend(owner.clone());
    }

    /// Enters a word into the list of those that `owner` has.
    fn link(&mut self, key: Key, owner: &Task) {
        let first = owner.futex.links().owned.replace(key);
        if let Some(state) = self.states.get_mut(&key) {
            state.other = [None, first];
        }
        if let Some(after) = first.and_then(|first| self.states.get_mut(&first)) {
            after.other[0] = Some(key);
        }
    }

    /// Takes a word, whose neighbours were `other`, out of the list of those that `owner` has.
    fn unlink(&mut self, [before, after]: [Option<Key>; 2], owner: &Task) {
        match before.and_then(|before| self.states.get_mut(&before)) {
            Some(state) => state.other[1] = after,
            None => owner.futex.links().owned = after,
        }
        if let Some(state) = after.and_then(|after| self.states.get_mut(&after)) {
            state.other[0] = before;
        }
    }

    /// `EDEADLK` if `owner` waits for `task`, by however many others.
    pub(super) fn check_chain(&self, owner: &Arc<Task>, task: &Arc<Task>) -> Result<()> {
        let mut at = owner;
        for _ in 0..MAX_CHAIN {
            if Arc::ptr_eq(at, task) {
                return Err(Errno::EDEADLK);
            }
            let next = at.futex.links().blocked.and_then(|key| self.states.get(&key));
            let Some(next) = next else { return Ok(()) };
            at = &next.owner;
        }
        Err(Errno::EDEADLK)
    }

    /// Takes a task out that gives up; what is returned is dropped with nothing locked.
    pub(super) fn withdraw(&mut self, key: Key, task: &Task) -> Option<State> {
        leave(task);
        task.futex.links().blocked = None;
        let state = self.states.get_mut(&key)?;
        state.waiters.retain(|(_, other)| !core::ptr::eq(&**other, task));
        let owner = state.owner.clone();
        // An heir that has not written the word yet does the forgetting.
        let gone = self.forget_if_free(key);
        self.lend(owner);
        gone
    }

    /// Nobody waits for the word any more.
    pub(super) fn forget(&mut self, key: Key) -> Option<State> {
        let state = self.states.remove(&key)?;
        self.unlink(state.other, &state.owner);
        CONTENDED.fetch_sub(1, Ordering::SeqCst);
        Some(state)
    }

    /// Makes the first waiter the owner; it must be woken. With `died`, it writes the word itself.
    pub(super) fn hand_over(&mut self, key: Key, died: bool) -> Option<Arc<Task>> {
        let state = self.states.get_mut(&key)?;
        if state.waiters.is_empty() {
            self.forget(key);
            return None;
        }
        let (_, task) = state.waiters.remove(0);
        let old = core::mem::replace(&mut state.owner, task.clone());
        state.unsettled = died;
        leave(&task);
        task.futex.links().blocked = None;
        let (other, is_last) = (state.other, state.waiters.is_empty() && !died);
        self.unlink(other, &old);
        if is_last {
            self.states.remove(&key);
            CONTENDED.fetch_sub(1, Ordering::SeqCst);
        } else {
            self.link(key, &task);
        }
        task.futex.grant(died);
        self.lend(old);
        self.lend(task.clone());
        Some(task)
    }

    /// The running task has got the word of an owner that died: writes its number there. Whether or not that can be
    /// done, the word is no longer in between two owners.
    pub(super) fn settle(&mut self, key: Key, addr: u64) -> Result<()> {
        let written = write_heir(addr);
        if let Some(state) = self.states.get_mut(&key)
            && core::ptr::eq(&*state.owner, &*process::current())
        {
            state.unsettled = false;
            if state.waiters.is_empty() {
                self.forget(key);
            }
        }
        written
    }

    /// Moves up to `count` waiters at `key` to the queue of `target`.
    pub(super) fn move_waiters(
        &mut self,
        key: Key,
        target: Key,
        owner: &Arc<Task>,
        count: usize,
    ) -> Result<usize> {
        let mut moved = 0;
        while moved < count {
            let Some(task) = first_for(key, target)? else { break };
            self.check_chain(owner, &task)?;
            self.make_room(target, owner)?;
            let Some(mut entry) = QUEUES.leave::<Key, Arc<Task>>(&*task) else {
                self.forget_if_free(target);
                continue;
            };
            entry.retarget(target, Kind::Pi);
            self.enqueue(owner, entry);
            moved += 1;
        }
        Ok(moved)
    }

    /// An owner that began to end while waiters were queued may not have seen them: they get its word at once. Returns
    /// the new owner, which must be woken.
    pub(super) fn look_again(&mut self, key: Key, owner: &Arc<Task>) -> Option<Arc<Task>> {
        let is_leaving = owner.futex_state() != ALIVE;
        let is_owner = self.states.get(&key).is_some_and(|state| Arc::ptr_eq(&state.owner, owner));
        if is_leaving && is_owner { self.hand_over(key, true) } else { None }
    }

    /// Lends a task the rank of the most urgent one that waits for it, and so on along the chain.
    fn lend(&mut self, mut task: Arc<Task>) {
        for _ in 0..MAX_CHAIN {
            let links = *task.futex.links();
            let mut lent = None;
            let mut next = links.owned;
            while let Some(state) = next.and_then(|key| self.states.get(&key)) {
                let first = state.waiters.first().map(|(rank, _)| *rank);
                lent = lent.into_iter().chain(first).min();
                next = state.other[1];
            }
            if !sched::lend_rank(&task, lent) {
                return;
            }
            // If it waits itself, its place in that queue is another one now.
            let Some(state) = links.blocked.and_then(|key| self.states.get_mut(&key)) else {
                return;
            };
            let of_task = |(_, waiter): &(u32, Arc<Task>)| Arc::ptr_eq(waiter, &task);
            let Some(at) = state.waiters.iter().position(of_task) else { return };
            let (_, waiter) = state.waiters.remove(at);
            insert_by_rank(&mut state.waiters, task.sched.rank(), waiter);
            task = state.owner.clone();
        }
    }
}

/// The first waiter at `key`, which must wait to be moved to `target`.
pub(super) fn first_for(key: Key, target: Key) -> Result<Option<Arc<Task>>> {
    QUEUES.first(key, |entry: Option<&Entry<Key, Arc<Task>>>| match entry {
        None => Ok(None),
        Some(entry) if entry.kind() == Kind::ForPi(target) => Ok(Some(entry.waiter().clone())),
        Some(_) => Err(Errno::EINVAL),
    })
}

/// Whether somebody waits at a word as if it were an ordinary futex.
fn has_ordinary(key: Key) -> bool {
    QUEUES.any::<Key, Arc<Task>>(key, |kind| kind != Kind::Pi)
}

/// The word of an owner that died gets the running task's number.
fn write_heir(addr: u64) -> Result<()> {
    let tid = process::current().tid() as u32;
    let mut old = user::load_u32(addr)?;
    loop {
        let seen = user::cmpxchg_u32(addr, old, tid | WAITERS | OWNER_DIED)?;
        if seen == old {
            return Ok(());
        }
        old = seen;
    }
}

fn insert_by_rank(waiters: &mut Vec<(u32, Arc<Task>)>, rank: u32, waiter: Arc<Task>) {
    let at = waiters.partition_point(|(other, _)| *other <= rank);
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    waiters.insert(at, (rank, waiter));
}
