//! Futexes: sleeping on a user word.
//!
//! Owns the hash table of waiters. A waiter enters its bucket before it reads the user word, and a waker
//! changes the word before it looks into the bucket, so no bucket lock is ever held across a user
//! access. Buckets rank at [`level::Futex`]; two are taken in index order when waiters move. `pi` has the
//! futexes that lend priority, `robust` the lists of locks that a thread leaves behind.

mod bucket;
pub mod pi;
mod robust;

pub use robust::{ROBUST_LIST_HEAD_LEN, leave_locks};

use crate::arch::cpu;
use crate::mm::AddressSpace;
use crate::mm::user;
use crate::process::{self, Task};
use crate::sync::wait::{Deadline, WaitError, wait_alone};
use crate::sync::{SpinGuard, SpinLock, level};
use abi::{Errno, Result};
use alloc::sync::Arc;
use bucket::{Bucket, Taken};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Wakes every waiter whatever its bitset.
pub const BITSET_MATCH_ANY: u32 = u32::MAX;

/// What a futex is known by: its address in one address space, or its place in a shared object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    Private { space: usize, addr: u64 },
    Shared { object: u64, offset: u64 },
}

impl Key {
    /// Before all others.
    const LEAST: Self = Self::Private { space: 0, addr: 0 };

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
    /// Who waits.
    task: Arc<Task>,
    /// Set once, under no lock, by whoever took the waiter out of its bucket.
    woken: AtomicBool,
    /// It owns the lock of a thread that died, whose word it must write.
    must_settle: AtomicBool,
    /// Its number in its bucket.
    place: AtomicU64,
}

impl Waiter {
    fn new(task: Arc<Task>, bitset: u32) -> Self {
        let no = || AtomicBool::new(false);
        Self { bitset, task, woken: no(), must_settle: no(), place: AtomicU64::new(0) }
    }

    fn tid(&self) -> u32 {
        self.task.tid() as u32
    }

    fn place(&self) -> u64 {
        // Relaxed: written under the lock of its bucket; any other value finds somebody else there, or nobody.
        self.place.load(Ordering::Relaxed)
    }

    fn set_place(&self, place: u64) {
        // Relaxed: see `place`.
        self.place.store(place, Ordering::Relaxed);
    }

    fn is_woken(&self) -> bool {
        // Acquire: pairs with the Release in `wake` and `grant`.
        self.woken.load(Ordering::Acquire)
    }

    fn must_settle(&self) -> bool {
        // Relaxed: written before `woken`.
        self.must_settle.load(Ordering::Relaxed)
    }

    /// It owns the lock, as it will see when it is woken.
    fn grant(&self, must_settle: bool) {
        // Relaxed: ordered by `woken`.
        self.must_settle.store(must_settle, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_woken`.
        self.woken.store(true, Ordering::Release);
    }

    fn wake(&self) {
        // Release: pairs with the Acquire in `is_woken`.
        self.woken.store(true, Ordering::Release);
        // SeqCst: pairs with the fence in `wait_alone`.
        fence(Ordering::SeqCst);
        self.task.wake_up();
    }
}

/// What somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// To be woken.
    Plain,
    /// To be moved to the queue of a lock that lends priority.
    ForPi(Key),
    /// For such a lock: `pi` has the queue itself.
    Pi,
}

const BUCKET_BITS: u32 = 8;
static BUCKETS: [SpinLock<Bucket, level::Futex>; 1 << BUCKET_BITS] =
    [const { SpinLock::new(Bucket::new()) }; 1 << BUCKET_BITS];

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
    let waiter = Arc::new(Waiter::new(process::current_arc(), bitset));
    queue(key, &waiter, Kind::Plain);
    let outcome = match user::read_u32(addr) {
        Ok(value) if value == expected => sleep(&waiter, deadline).map_err(|e| match e {
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

fn queue(key: Key, waiter: &Arc<Waiter>, kind: Kind) {
    BUCKETS[key.bucket()].lock().push(key, kind, waiter.clone());
}

fn sleep(waiter: &Waiter, deadline: Option<Deadline>) -> Result<(), WaitError> {
    wait_alone(deadline, || waiter.is_woken().then_some(()))
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
    let result = BUCKETS[key.bucket()].lock().take(key, count, bitset, &mut taken);
    let woken = wake_waiters(taken);
    result.map(|()| woken)
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
    let (a, b) = (from_key.bucket(), to_key.bucket());
    // Whichever of the two is locked first would bring interrupts back when it goes first.
    let moved = cpu::without_interrupts(|| {
        if a == b {
            let mut bucket = BUCKETS[a].lock();
            bucket.take(from_key, wake_count, BITSET_MATCH_ANY, &mut taken)?;
            bucket.move_within(from_key, to_key, move_count)
        } else {
            let (mut source, mut target) = lock_two(a, b);
            source.take(from_key, wake_count, BITSET_MATCH_ANY, &mut taken)?;
            source.move_to(&mut target, (from_key, to_key), move_count)
        }
    });
    let woken = wake_waiters(taken);
    moved.map(|moved| woken + moved)
}

type BucketGuard = SpinGuard<'static, Bucket, level::Futex>;

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

fn wake_waiters(taken: Taken) -> usize {
    taken.iter().for_each(|waiter| waiter.wake());
    taken.len()
}

/// Takes a waiter back out; false if it has been woken. It may have been moved to another bucket.
fn leave(key: Key, waiter: &Arc<Waiter>) -> bool {
    if BUCKETS[key.bucket()].lock().leave(waiter) {
        return true;
    }
    if waiter.is_woken() {
        return false;
    }
    BUCKETS.iter().any(|bucket| bucket.lock().leave(waiter))
}

const FUTEX_WAITERS: u32 = 0x8000_0000;
const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;
