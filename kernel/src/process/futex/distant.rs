//! [`Distant`]: a wait at a futex for which no thread sleeps: io_uring's.
//!
//! A wake-up comes to it when no thread that waits at the word is left; FUTEX_REQUEUE does not move it. As a thread does, it stands in
//! the list before it reads the user word. Owns the list, ordered by word and then by age. Never
//! sleeps for a wake-up. Locks: a mutex around the list, with only
//! wait queues taken below it; nobody who wakes holds a spinlock.

use super::key::Key;
use crate::mm::fallible::{TryMap, try_arc};
use crate::mm::{AddressSpace, user};
use crate::sync::{Mutex, Pace, PollTable, WaitQueue};
use crate::vfs::PollEvents;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

struct Waiter {
    bitset: u32,
    /// Release by who wakes it, Acquire by who looks.
    woken: AtomicBool,
    queue: WaitQueue,
}

static WAITING: Mutex<BTreeMap<(Key, u64), Arc<Waiter>>> = Mutex::new(BTreeMap::new());
/// How many are in the list. SeqCst: counted before the user word is read, and read after it was written.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A wait, which ends when this is dropped.
pub struct Distant {
    at: (Key, u64),
    waiter: Arc<Waiter>,
}

impl Distant {
    /// Begins to wait.
    ///
    /// # Errors
    /// `EAGAIN` if the word does not hold `expected`, and as `futex::wait`.
    pub fn new(
        space: &AddressSpace,
        addr: u64,
        shared: bool,
        expected: u32,
        bitset: u32,
    ) -> Result<Self> {
        let key = Key::of(space, addr, shared)?;
        let waiter = Waiter { bitset, woken: AtomicBool::new(false), queue: WaitQueue::new() };
        let waiter = try_arc(waiter)?;
        // Relaxed: only that no two are the same matters.
        let at = (key, NEXT.fetch_add(1, Ordering::Relaxed));
        WAITING.lock().try_put(at, waiter.clone())?;
        COUNT.fetch_add(1, Ordering::SeqCst);
        let wait = Self { at, waiter };
        match user::read_u32(addr)? {
            value if value == expected => Ok(wait),
            _ => Err(Errno::EAGAIN),
        }
    }

    pub fn is_woken(&self) -> bool {
        self.waiter.woken.load(Ordering::Acquire)
    }

    pub fn poll(&self, table: &mut PollTable) -> PollEvents {
        table.watch(&self.waiter.queue);
        if self.is_woken() { PollEvents::READABLE } else { PollEvents::empty() }
    }
}

impl Drop for Distant {
    fn drop(&mut self) {
        let gone = WAITING.lock().remove(&self.at);
        if gone.is_some() {
            COUNT.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Wakes up to `count` whose bitset meets `bitset`, first come first: how many.
#[inline]
pub(super) fn wake(key: Key, count: usize, bitset: u32) -> usize {
    if COUNT.load(Ordering::SeqCst) == 0 { 0 } else { wake_some(key, count, bitset) }
}

#[cold]
fn wake_some(key: Key, count: usize, bitset: u32) -> usize {
    let mut waiting = WAITING.lock();
    let (mut woken, mut from) = (0, 0);
    while woken < count {
        let mut rest = waiting.range((key, from)..=(key, u64::MAX)).paced();
        let Some(at) = rest.find(|(_, waiter)| waiter.bitset & bitset != 0).map(|(&at, _)| at)
        else {
            break;
        };
        from = at.1 + 1;
        if let Some(waiter) = waiting.remove(&at) {
            COUNT.fetch_sub(1, Ordering::SeqCst);
            waiter.woken.store(true, Ordering::Release);
            waiter.queue.wake_events(PollEvents::READABLE.bits());
            woken += 1;
        }
    }
    woken
}
