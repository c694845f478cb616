//! The buddy that all CPUs share, and the reserve that only the kernel may take from it.
//!
//! Owns the free frames that no CPU keeps. Never gives a user a frame of the reserve; when a lower mark is passed it
//! asks for an out-of-memory kill, which happens later, on the way to user mode. Locks: `Frames`, with interrupts off.

use super::pfn::{For, metadata};
use crate::base::percpu;
use crate::sync::{SpinGuard, SpinLock, level};
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
        if self.0.free_frames() < RESERVE.load(Ordering::Relaxed) / 8 {
            // Relaxed: the flag announces nothing but itself, to this CPU.
            percpu::work().fetch_or(percpu::WORK_MEMORY, Ordering::Relaxed);
        }
    }
}

/// Takes frames from the buddy for a CPU's cache: how many. Users leave the reserve alone.
pub(super) fn refill(out: &mut [u32], whom: For) -> usize {
    let mut buddy = buddy();
    let reserve = match whom {
        For::User => RESERVE.load(Ordering::Relaxed),
        For::Kernel => 0,
    };
    let spare = buddy.free_frames().saturating_sub(reserve);
    let want = out.len().min(usize::try_from(spare).unwrap_or(usize::MAX));
    buddy.alloc_singles(metadata(), &mut out[..want])
}

/// Gives frames of a CPU's cache back to the buddy.
pub(super) fn give_back(frames: &[u32]) {
    buddy().free_singles(metadata(), frames);
}

/// Whether there are more than a few frames beyond the reserve.
pub(in crate::mm) fn has_spare() -> bool {
    let few = 256;
    // Relaxed: set once at boot.
    buddy().free_frames() > RESERVE.load(Ordering::Relaxed) + few
}

/// Whether memory is so short that calls that create long-lived kernel objects should give `ENOMEM`.
#[inline]
pub fn kernel_memory_low() -> bool {
    // Relaxed: a threshold, no more precise than the moment.
    LOW.load(Ordering::Relaxed)
}
