//! Futexes that lend priority: the word holds the owner's number, the kernel the queue of those who wait.
//!
//! Owns nothing: queues and owners are in `contended`. Locks: its table, one sleeping mutex, never taken but when a lock
//! is contended, or when a thread that owns one ends. Each waiter also has an entry in the ordinary buckets, so that
//! calls for ordinary futexes notice it.

use super::contended::{ALIVE, CONTENDED, LEAVING, Step, TABLE, first_for};
use super::futex::{BITSET_MATCH_ANY, FUTEX_TID_MASK, QUEUES, leave};
use super::key::Key;
use super::waits;
use crate::mm::{AddressSpace, user};
use crate::process::task::task::Task;
use crate::process::{self, sched, signal};
use crate::sync::wait::{Moment, WaitError, wait_alone};
use abi::{Errno, Result};
use alea_futexq::{Entry, Kind, NoMemory};
use alloc::sync::Arc;
use core::sync::atomic::{Ordering, fence};

/// `FUTEX_LOCK_PI` and, without waiting, `FUTEX_TRYLOCK_PI`.
///
/// # Errors
/// Linux's: `EDEADLK`, `ESRCH`, `EPERM`, `EINVAL`, `EAGAIN`, `ETIMEDOUT`, `ERESTARTNOINTR`.
pub fn lock(
    space: &AddressSpace,
    addr: u64,
    shared: bool,
    deadline: Option<Moment>,
    waits: bool,
) -> Result<()> {
    let key = key_of(space, addr, shared)?;
    let task = process::current_arc();
    loop {
        let mut table = TABLE.lock();
        let owner = match table.step(key, addr, &task, false)? {
            Step::Acquired => return Ok(()),
            Step::Again => continue,
            Step::Ending(owner) => {
                drop(table);
                wait_for_end(&owner)?;
                continue;
            }
            Step::Owned(_) if !waits => return Err(Errno::EAGAIN),
            Step::Owned(owner) => owner,
        };
        table.check_chain(&owner, &task)?;
        let entry = entry(key, Kind::Pi, BITSET_MATCH_ANY)?;
        table.make_room(key, &owner)?;
        table.enqueue(&owner, entry);
        if owner.futex_state() != ALIVE {
            // It may not have seen the new waiter.
            let gone = table.withdraw(key, &task);
            drop((table, gone));
            wait_for_end(&owner)?;
            continue;
        }
        break;
    }
    let outcome = sleep(&task, deadline);
    finish(key, addr, &task, outcome, Errno::ERESTARTNOINTR)
}

/// An entry for the running task, which expects to be granted a lock.
fn entry(key: Key, kind: Kind<Key>, bitset: u32) -> Result<Entry<Key, Arc<Task>>> {
    process::current().futex.expect_grant();
    waits::entry(key, kind, bitset).map_err(|NoMemory| Errno::ENOMEM)
}

fn sleep(task: &Task, deadline: Option<Moment>) -> Result<(), WaitError> {
    wait_alone(deadline, || task.futex.is_granted().then_some(()))
}

/// Checks the word and makes it writable: it is changed with the table locked.
fn key_of(space: &AddressSpace, addr: u64, shared: bool) -> Result<Key> {
    let key = Key::of(space, addr, shared)?;
    let value = user::load_u32(addr)?;
    user::cmpxchg_u32(addr, value, value)?;
    Ok(key)
}

/// After the sleep of a task in the table: it owns the word, or leaves the queue.
fn finish(
    key: Key,
    addr: u64,
    task: &Task,
    outcome: Result<(), WaitError>,
    interrupted: Errno,
) -> Result<()> {
    if outcome.is_ok() && !task.futex.must_settle() {
        return Ok(());
    }
    let mut table = TABLE.lock();
    if task.futex.is_granted() {
        return if task.futex.must_settle() { table.settle(key, addr) } else { Ok(()) };
    }
    let gone = table.withdraw(key, task);
    drop((table, gone));
    match outcome {
        Err(WaitError::TimedOut) => Err(Errno::ETIMEDOUT),
        _ => Err(interrupted),
    }
}

/// `FUTEX_UNLOCK_PI`: the most urgent waiter becomes the owner.
///
/// # Errors
/// `EPERM` if the caller is not the owner, `EINVAL` if word and queue do not fit together.
pub fn unlock(space: &AddressSpace, addr: u64, shared: bool) -> Result<()> {
    let task = process::current_arc();
    let owns = |value: u32| value & FUTEX_TID_MASK == task.tid() as u32;
    // As on Linux, a word that is not aligned is read all the same.
    if !owns(user::read_u32(addr)?) {
        return Err(Errno::EPERM);
    }
    let key = key_of(space, addr, shared)?;
    loop {
        let mut table = TABLE.lock();
        let value = user::load_u32(addr)?;
        if !owns(value) {
            return Err(Errno::EPERM);
        }
        let new = table.word_unlocked_by(key, &task)?;
        if user::cmpxchg_u32(addr, value, new)? != value {
            continue;
        }
        let next = table.hand_over(key, false);
        drop(table);
        if let Some(next) = next {
            wake(&next);
        }
        return Ok(());
    }
}

/// `FUTEX_WAIT_REQUEUE_PI`: waits at `addr` to be moved to the queue of `target`, and to own that.
///
/// # Errors
/// `EAGAIN` if the first word does not hold `expected`, and those of [`lock`].
pub fn wait_requeue(
    space: &AddressSpace,
    (addr, target): (u64, u64),
    shared: bool,
    expected: u32,
    bitset: u32,
    deadline: Option<Moment>,
) -> Result<()> {
    if addr == target || bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = Key::of(space, addr, shared)?;
    let target_key = Key::of(space, target, shared)?;
    if key == target_key {
        return Err(Errno::EINVAL);
    }
    let task = process::current();
    QUEUES.queue(entry(key, Kind::ForPi(target_key), bitset)?);
    let looked = match user::read_u32(addr) {
        Ok(value) if value == expected => Ok(()),
        Ok(_) => Err(Errno::EAGAIN),
        Err(fault) => Err(fault),
    };
    if let Err(error) = looked
        && give_up(&task)
    {
        return Err(error);
    }
    let outcome = sleep(&task, deadline);
    let error = match outcome {
        Ok(()) => None,
        Err(WaitError::TimedOut) => Some(Errno::ETIMEDOUT),
        Err(WaitError::Interrupted) => Some(Errno::ERESTARTNOINTR),
    };
    if let Some(error) = error
        && give_up(&task)
    {
        return Err(error);
    }
    // Once moved, the call cannot be made again: the first word will have changed.
    finish(target_key, target, &task, outcome, Errno::EAGAIN)
}

/// Takes a task back out of where it waits to be moved; false if it has been moved, or owns the lock already.
fn give_up(task: &Task) -> bool {
    // With the table locked nobody moves it.
    let _table = TABLE.lock();
    let moved = task.futex.links().blocked.is_some();
    !moved && !task.futex.is_granted() && leave(task)
}

/// `FUTEX_CMP_REQUEUE_PI`: the first waiter at `from` gets the lock `to` or queues for it, up to `count` others
/// queue behind. Returns how many were moved or woken.
///
/// # Errors
/// `EAGAIN` unless `from` holds `expected`; `EINVAL` for waiters of another kind or for another lock.
pub fn requeue(
    space: &AddressSpace,
    (from, to): (u64, u64),
    shared: bool,
    count: usize,
    expected: u32,
) -> Result<usize> {
    if from == to {
        return Err(Errno::EINVAL);
    }
    let key = Key::of(space, from, shared)?;
    let target = key_of(space, to, shared)?;
    if key == target {
        return Err(Errno::EINVAL);
    }
    loop {
        let mut table = TABLE.lock();
        if user::read_u32(from)? != expected {
            return Err(Errno::EAGAIN);
        }
        let Some(first) = first_for(key, target)? else { return Ok(0) };
        match table.step(target, to, &first, count != 0)? {
            Step::Again => {}
            Step::Ending(owner) => {
                drop(table);
                wait_for_end(&owner)?;
            }
            Step::Acquired => {
                leave(&first);
                first.futex.grant(false);
                let moved = table.move_waiters(key, target, &first, count);
                let heir = table.look_again(target, &first);
                drop(table);
                wake(&first);
                heir.iter().for_each(|heir| wake(heir));
                return moved.map(|moved| moved + 1);
            }
            Step::Owned(owner) => {
                let moved = table.move_waiters(key, target, &owner, count.saturating_add(1));
                let heir = table.look_again(target, &owner);
                drop(table);
                heir.iter().for_each(|heir| wake(heir));
                return moved;
            }
        }
    }
}

/// Wakes a task that has been granted its lock.
fn wake(task: &Task) {
    // SeqCst: pairs with the fence in `wait_alone`: it sees the grant, or is seen to sleep.
    fence(Ordering::SeqCst);
    task.wake_up();
}

/// Sleeps until a thread that is ending has given its locks back.
fn wait_for_end(owner: &Task) -> Result<()> {
    const STEP: u64 = 1_000_000;
    while owner.futex_state() == LEAVING {
        if signal::pending(&process::current()) {
            return Err(Errno::ERESTARTNOINTR);
        }
        sched::schedule_timeout(STEP);
    }
    Ok(())
}

/// A thread ends or calls exec: what it owns goes to those who wait. `FUTEX_OWNER_DIED` tells them.
pub fn give_up_locks(task: &Task) {
    if CONTENDED.load(Ordering::SeqCst) == 0 {
        return;
    }
    loop {
        let mut table = TABLE.lock();
        let Some(key) = task.futex.links().owned else { return };
        let heir = table.hand_over(key, true);
        drop(table);
        heir.iter().for_each(|heir| wake(heir));
    }
}
