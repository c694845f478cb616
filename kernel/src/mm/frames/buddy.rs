//! The buddy that all CPUs share, and the reserve that not everybody may take from it.
//!
//! Owns the free frames that no CPU keeps, and the [marks](mark) down to which each kind of caller may take them
//! (decision 0011). Below a quarter of the reserve it asks for an out-of-memory kill, which happens later, on the way to user
//! mode. Never waits, and never looks at the running task with the lock held. Locks: `Frames`, with interrupts off.

use super::pfn::{For, metadata};
use crate::base::percpu;
use crate::sync::{Once, SpinGuard, SpinLock, level};
use alea_frames::Buddy;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static BUDDY: SpinLock<Buddy, level::Frames> = SpinLock::new(Buddy::new());
/// All frames ever given to the allocator. Relaxed: a statistic.
pub(super) static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Frames that only the kernel itself may take. Relaxed: set once at boot.
pub(super) static RESERVE: AtomicU64 = AtomicU64::new(0);
/// Whether less than half of the reserve is left. Relaxed: kept up to date under the buddy's lock.
static LOW: AtomicBool = AtomicBool::new(false);
/// Whether who runs now may go below the others' marks; the process floor knows.
static TRUSTED: Once<fn() -> bool> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_trusted(trusted: fn() -> bool) {
    TRUSTED.call_once(|| trusted);
}

/// Whether an administrator, the dying or the kernel itself asks. Before the slot is filled there are no others.
#[cold]
pub(in crate::mm) fn is_trusted() -> bool {
    TRUSTED.get().is_none_or(|trusted| trusted())
}

/// How many frames an allocation has to leave free: all of the reserve if it is a user's memory, less if it is the kernel's on
/// behalf of a user; what an administrator, init, a kernel thread or somebody who dies needs goes lower, so that the others
/// cannot keep him from forking and from ending.
pub(super) fn mark(whom: For) -> u64 {
    // Relaxed: set once at boot.
    let reserve = RESERVE.load(Ordering::Relaxed);
    match whom {
        For::Stock => reserve,
        For::User if is_trusted() => reserve / 8,
        For::User => reserve,
        For::Kernel if is_trusted() => 0,
        For::Kernel => reserve / 2,
    }
}

/// The buddy, locked; unlocking brings [`LOW`] up to date.
pub(super) struct LockedBuddy(SpinGuard<'static, Buddy, level::Frames>);

pub(super) fn buddy() -> LockedBuddy {
    LockedBuddy(BUDDY.lock())
}

impl Deref for LockedBuddy {
    type Target = Buddy;
    fn deref(&self) -> &Buddy {
        &self.0
    }
}

impl DerefMut for LockedBuddy {
    fn deref_mut(&mut self) -> &mut Buddy {
        &mut self.0
    }
}

impl Drop for LockedBuddy {
    fn drop(&mut self) {
        let low = self.0.free_frames() < RESERVE.load(Ordering::Relaxed) / 2;
        if low != LOW.load(Ordering::Relaxed) {
            LOW.store(low, Ordering::Relaxed);
        }
        if self.0.free_frames() < RESERVE.load(Ordering::Relaxed) / 4 {
            // Relaxed: the flag announces nothing but itself, to this CPU.
            percpu::work().fetch_or(percpu::WORK_MEMORY, Ordering::Relaxed);
        }
    }
}

/// Takes frames from the buddy for a CPU's cache, down to the caller's mark: how many.
pub(super) fn refill(out: &mut [u32], whom: For) -> usize {
    // Before the lock: it looks at the running task.
    let mark = mark(whom);
    let mut buddy = buddy();
    let spare = buddy.free_frames().saturating_sub(mark);
    if buddy.free_frames() <= RESERVE.load(Ordering::Relaxed) {
        // One at a time: what the caller left in the cache would be the next one's, whoever that is.
        let want = out.len().min(1).min(spare as usize);
        return buddy.alloc_singles(metadata(), &mut out[..want]);
    }
    let want = out.len().min(usize::try_from(spare).unwrap_or(usize::MAX));
    buddy.alloc_singles(metadata(), &mut out[..want])
}

/// Gives frames of a CPU's cache back to the buddy.
pub(super) fn give_back(frames: &[u32]) {
    buddy().free_singles(metadata(), frames);
}

/// Whether there are more than a few frames beyond what the caller's user memory has to leave.
pub(in crate::mm) fn has_spare() -> bool {
    let few = 256;
    let mark = mark(For::User);
    buddy().free_frames() > mark + few
}

/// Whether a large block may be missing though single frames are left.
pub fn is_short() -> bool {
    buddy().free_frames() < 4 * RESERVE.load(Ordering::Relaxed)
}

/// Whether memory is so short that a call of the running task's that creates long-lived kernel objects should give `ENOMEM`.
#[inline]
pub fn kernel_memory_low() -> bool {
    is_reserve_in_use() && !is_trusted()
}

/// Whether memory is so short that only some may have more for the kernel's objects.
#[inline]
pub fn is_reserve_in_use() -> bool {
    // Relaxed: a threshold, no more precise than the moment.
    LOW.load(Ordering::Relaxed)
}
