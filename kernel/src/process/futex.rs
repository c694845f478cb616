//! Futexes: sleeping on a user word.
//!
//! Owns the hash table of waiters. A waiter enters its bucket before it reads the user word, and a waker
//! changes the word before it looks into the bucket, so no bucket lock is ever held across a user
//! access. Buckets rank at [`level::Futex`]; two are taken in index order when waiters move.

use crate::mm::AddressSpace;
use crate::mm::user;
use crate::sync::wait::{Deadline, WaitError};
use crate::sync::{SpinGuard, SpinLock, WaitQueue, level};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// Wakes every waiter whatever its bitset.
pub const BITSET_MATCH_ANY: u32 = u32::MAX;

/// What a futex is known by: its address in one address space, or its place in a shared object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Private { space: usize, addr: u64 },
    Shared { object: u64, offset: u64 },
}

impl Key {
    /// The key of the word at `addr`.
    ///
    /// # Errors
    /// `EINVAL` if misaligned, `EFAULT` if nothing is mapped there.
    pub fn of(space: &AddressSpace, addr: u64, shared: bool) -> Result<Self> {
        if !addr.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        if !user::in_range(addr, 4) {
            return Err(Errno::EFAULT);
        }
        let private = Self::Private { space: core::ptr::from_ref(space).addr(), addr };
        if !shared {
            return Ok(private);
        }
        // Reading the word faults the page in, so that a bad address is EFAULT here.
        user::read_u32(addr)?;
        Ok(match space.shared_object_at(addr) {
            Some((object, offset)) => Self::Shared { object, offset },
            // A page that only this space has must be writable, and is another futex than the private
            // one there: no address has the lowest bit set.
            None => {
                let value = user::read_u32(addr)?;
                user::cmpxchg_u32(addr, value, value)?;
                Self::Private { space: core::ptr::from_ref(space).addr(), addr: addr | 1 }
            }
        })
    }

    fn bucket(&self) -> usize {
        let (a, b) = match *self {
            Self::Private { space, addr } => (space as u64, addr),
            Self::Shared { object, offset } => (object, offset),
        };
        let mixed = (a ^ b.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - BUCKET_BITS)) as usize
    }
}

struct Waiter {
    bitset: u32,
    /// Set once, under no lock, by whoever took the waiter out of its bucket.
    woken: AtomicBool,
    queue: WaitQueue,
}

struct Queued {
    key: Key,
    waiter: Arc<Waiter>,
}

const BUCKET_BITS: u32 = 8;
type Bucket = SpinLock<Vec<Queued>, level::Futex>;
static BUCKETS: [Bucket; 1 << BUCKET_BITS] =
    [const { SpinLock::new(Vec::new()) }; 1 << BUCKET_BITS];

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
    deadline: Option<Deadline>,
) -> Result<()> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = Key::of(space, addr, shared)?;
    let waiter =
        Arc::new(Waiter { bitset, woken: AtomicBool::new(false), queue: WaitQueue::new() });
    BUCKETS[key.bucket()].lock().push(Queued { key, waiter: waiter.clone() });
    let outcome = match user::read_u32(addr) {
        Ok(value) if value == expected => waiter
            .queue
            // Acquire: pairs with the Release in `wake_waiters`.
            .wait_deadline(deadline, || waiter.woken.load(Ordering::Acquire).then_some(()))
            .map_err(|e| match e {
                WaitError::TimedOut => Errno::ETIMEDOUT,
                WaitError::Interrupted => Errno::ERESTARTSYS,
            }),
        Ok(_) => Err(Errno::EAGAIN),
        Err(fault) => Err(fault),
    };
    match outcome {
        Ok(()) => Ok(()),
        // Whoever took the waiter out has spent a wake-up on it: that is a success.
        Err(_) if !leave(key, &waiter) => Ok(()),
        Err(error) => Err(error),
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
    let mut taken = Vec::new();
    take(&mut BUCKETS[key.bucket()].lock(), key, count, bitset, &mut taken);
    Ok(wake_waiters(taken))
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
    let mut taken = Vec::new();
    let mut moved = 0;
    let (a, b) = (from_key.bucket(), to_key.bucket());
    if a == b {
        let mut bucket = BUCKETS[a].lock();
        take(&mut bucket, from_key, wake_count, BITSET_MATCH_ANY, &mut taken);
        for queued in bucket.iter_mut().filter(|q| q.key == from_key).take(move_count) {
            queued.key = to_key;
            moved += 1;
        }
    } else {
        let (mut source, mut target) = lock_two(a, b);
        take(&mut source, from_key, wake_count, BITSET_MATCH_ANY, &mut taken);
        while moved < move_count {
            let Some(at) = source.iter().position(|q| q.key == from_key) else { break };
            let mut queued = source.remove(at);
            queued.key = to_key;
            target.push(queued);
            moved += 1;
        }
    }
    Ok(wake_waiters(taken) + moved)
}

type BucketGuard = SpinGuard<'static, Vec<Queued>, level::Futex>;

/// Locks two different buckets, the lower index first.
fn lock_two(a: usize, b: usize) -> (BucketGuard, BucketGuard) {
    if a < b {
        let first = BUCKETS[a].lock();
        (first, BUCKETS[b].lock())
    } else {
        let first = BUCKETS[b].lock();
        (BUCKETS[a].lock(), first)
    }
}

fn take(
    bucket: &mut Vec<Queued>,
    key: Key,
    count: usize,
    bitset: u32,
    taken: &mut Vec<Arc<Waiter>>,
) {
    let mut at = 0;
    while taken.len() < count && at < bucket.len() {
        if bucket[at].key == key && bucket[at].waiter.bitset & bitset != 0 {
            taken.push(bucket.remove(at).waiter);
        } else {
            at += 1;
        }
    }
}

fn wake_waiters(taken: Vec<Arc<Waiter>>) -> usize {
    for waiter in &taken {
        // Release: pairs with the Acquire in `wait`.
        waiter.woken.store(true, Ordering::Release);
        waiter.queue.wake_one();
    }
    taken.len()
}

/// Takes a waiter back out; false if it has been woken. It may have been moved to another bucket.
fn leave(key: Key, waiter: &Arc<Waiter>) -> bool {
    let remove = |bucket: &Bucket| {
        let mut bucket = bucket.lock();
        let at = bucket.iter().position(|q| Arc::ptr_eq(&q.waiter, waiter));
        at.map(|at| bucket.remove(at)).is_some()
    };
    if remove(&BUCKETS[key.bucket()]) {
        return true;
    }
    // Acquire: pairs with the Release in `wake_waiters`.
    if waiter.woken.load(Ordering::Acquire) {
        return false;
    }
    BUCKETS.iter().any(remove)
}

/// Size of the user's `struct robust_list_head`.
pub const ROBUST_LIST_HEAD_LEN: usize = 24;
/// Linux's bound on a robust list, against cycles.
const ROBUST_LIST_LIMIT: usize = 2048;
const FUTEX_WAITERS: u32 = 0x8000_0000;
const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;

/// A thread exits: marks the locks on its robust list as left by a dead owner and wakes a waiter of
/// each. Ends quietly at the first bad pointer, as the list is the program's own.
pub fn exit_robust_list(space: &AddressSpace, head: u64, tid: i32) {
    let read = |addr: u64| {
        let mut word = [0; 8];
        user::read_bytes(addr, &mut word).ok().map(|()| u64::from_le_bytes(word))
    };
    let (Some(first), Some(offset), Some(pending)) =
        (read(head), read(head.wrapping_add(8)), read(head.wrapping_add(16)))
    else {
        return;
    };
    let mut entry = first;
    for _ in 0..ROBUST_LIST_LIMIT {
        // Bit 0 marks a priority-inheriting lock.
        let node = entry & !1;
        if node == head {
            break;
        }
        let Some(next) = read(node) else { return };
        if node != pending & !1 && leave_lock(space, node.wrapping_add(offset), tid).is_err() {
            return;
        }
        entry = next;
    }
    if pending & !1 != 0 {
        // The lock that was being taken or released; a bad pointer ends it like the others.
        if leave_lock(space, (pending & !1).wrapping_add(offset), tid).is_err() {}
    }
}

fn leave_lock(space: &AddressSpace, addr: u64, tid: i32) -> Result<()> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    loop {
        let old = user::load_u32(addr)?;
        if old & FUTEX_TID_MASK != tid as u32 {
            return Ok(());
        }
        let new = old & FUTEX_WAITERS | FUTEX_OWNER_DIED;
        if user::cmpxchg_u32(addr, old, new)? == old {
            if old & FUTEX_WAITERS != 0 {
                // As on Linux: robust locks wait for shared futexes, even within one process.
                wake(space, addr, true, 1, BITSET_MATCH_ANY)?;
            }
            return Ok(());
        }
    }
}
