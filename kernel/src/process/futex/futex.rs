//! Futexes: sleeping on a user word.
//!
//! Owns the queues of waiters, whose rules are in the crate `futexq`. A waiter enters its queue before it reads the
//! user word, and a waker changes the word before it looks into the queue, so no lock of a queue is ever held across a
//! user access: it is never needed. Locks: those of the queues, which rank at [`crate::sync::level::Futex`]; two are
//! taken in index order when waiters move. `pi` has the futexes that lend priority, `robust` the lists of locks that a
//! thread leaves behind.

use super::distant;
use super::key::Key;
use super::waits;
use crate::mm::{AddressSpace, user};
use crate::process::task::task::Task;
use crate::sync::wait::{Moment, WaitError, wait_alone};
use crate::sync::{SpinLock, level};
use crate::{process, time};
use abi::{Errno, Result};
use alea_futexq::{Entry, Exclusive, Kind, Line, Table, Taken, WrongKind};
use alloc::sync::Arc;
use core::sync::atomic::{Ordering, fence};

/// Wakes every waiter whatever its bitset.
pub const BITSET_MATCH_ANY: u32 = u32::MAX;

/// One queue; see `futexq` for what is under its lock.
pub(super) struct Queue(SpinLock<Line<Key, Arc<Task>>, level::Futex>);

impl Exclusive<Line<Key, Arc<Task>>> for Queue {
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Line<Key, Arc<Task>>) -> R) -> R {
        f(&mut self.0.lock())
    }
}

const QUEUE_COUNT: usize = 256;
pub(super) static QUEUES: Table<Queue, QUEUE_COUNT> =
    Table::new([const { Queue(SpinLock::new(Line::new())) }; QUEUE_COUNT]);

/// How long to wait for memory at a time, in nanoseconds.
const MEMORY_WAIT: u64 = 20_000_000;

/// Sleeps while the word at `addr` holds `expected`.
///
/// # Errors
/// `EAGAIN` if it holds something else, `ETIMEDOUT`, `ERESTARTSYS`, and those of [`Key::of`].
pub fn wait(
    space: &AddressSpace,
    addr: u64,
    shared: bool,
    expected: u32,
    bitset: u32,
    deadline: Option<Moment>,
) -> Result<()> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = Key::of(space, addr, shared)?;
    let failed = |error| match error {
        WaitError::TimedOut => Errno::ETIMEDOUT,
        WaitError::Interrupted => Errno::ERESTARTSYS,
    };
    QUEUES.queue(find_memory(key, bitset, deadline).map_err(failed)?);
    let task = process::current();
    let outcome = match user::read_u32(addr) {
        Ok(value) if value == expected => {
            wait_alone(deadline, || (!task.futex.is_queued()).then_some(())).map_err(failed)
        }
        Ok(_) => Err(Errno::EAGAIN),
        Err(fault) => Err(fault),
    };
    match outcome {
        Ok(()) => Ok(()),
        // Whoever took the waiter out has spent a wake-up on it: that is a success.
        Err(_) if !leave(&task) => Ok(()),
        Err(error) => Err(error),
    }
}

/// An entry for the running task. Programs end when a wait fails for want of memory, as none does on Linux: so this
/// waits until there is some. Nobody can tell that from a wait that began later.
fn find_memory(
    key: Key,
    bitset: u32,
    deadline: Option<Moment>,
) -> core::result::Result<Entry<Key, Arc<Task>>, WaitError> {
    loop {
        if let Ok(entry) = waits::entry(key, Kind::Plain, bitset) {
            return Ok(entry);
        }
        if deadline.is_some_and(|until| time::now_on(until.base).0 >= until.at) {
            return Err(WaitError::TimedOut);
        }
        let next = Moment::monotonic(time::since_boot_ns().saturating_add(MEMORY_WAIT));
        match wait_alone(Some(next), || None::<()>) {
            Ok(()) | Err(WaitError::TimedOut) => {}
            Err(interrupted) => return Err(interrupted),
        }
    }
}

/// Wakes up to `count` waiters whose bitset meets `bitset`; returns how many.
pub fn wake(
    space: &AddressSpace,
    addr: u64,
    shared: bool,
    count: usize,
    bitset: u32,
) -> Result<usize> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = Key::of(space, addr, shared)?;
    let mut taken = Taken::new();
    let result = QUEUES.wake(key, count, bitset, &mut taken);
    let woken = wake_waiters(taken);
    result.map_err(wrong_kind)?;
    Ok(woken + distant::wake(key, count - woken, bitset))
}

/// Wakes up to `wake_count` waiters of one word and moves up to `move_count` others to a second one.
/// With `expected`, fails with `EAGAIN` unless the first word still holds it.
pub fn requeue(
    space: &AddressSpace,
    (from, to): (u64, u64),
    shared: bool,
    wake_count: usize,
    move_count: usize,
    expected: Option<u32>,
) -> Result<usize> {
    let from_key = Key::of(space, from, shared)?;
    let to_key = Key::of(space, to, shared)?;
    if let Some(expected) = expected
        && user::read_u32(from)? != expected
    {
        return Err(Errno::EAGAIN);
    }
    let mut taken = Taken::new();
    let moved = QUEUES.requeue((from_key, to_key), (wake_count, move_count), &mut taken);
    let woken = wake_waiters(taken);
    moved.map(|moved| woken + moved).map_err(wrong_kind)
}

fn wrong_kind(_: WrongKind) -> Errno {
    Errno::EINVAL
}

fn wake_waiters(taken: Taken<Key, Arc<Task>>) -> usize {
    if taken.is_empty() {
        return 0;
    }
    // SeqCst: pairs with the fence in `wait_alone`: they have left their queues, and see it, or are seen to sleep.
    fence(Ordering::SeqCst);
    taken.drain(|task| {
        task.wake_up();
    })
}

/// Takes a task that gives up out of its queue; false if it has been woken.
pub(super) fn leave(task: &Task) -> bool {
    QUEUES.leave::<Key, Arc<Task>>(task).is_some()
}

pub(super) const FUTEX_WAITERS: u32 = 0x8000_0000;
pub(super) const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
pub(super) const FUTEX_TID_MASK: u32 = 0x3fff_ffff;
