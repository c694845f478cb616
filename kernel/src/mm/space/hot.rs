//! [`HotPages`]: which pages of a program are written soon after it forks.
//!
//! A page that parent or child writes while they still share it is remembered; the next fork copies it at
//! once, which saves both of them a fault. A page of zeros that a child was the first to write is remembered, too;
//! the next child gets it at once. What turns out not to be written is forgotten again. So is
//! a page of the program's file that a child was the first to touch; the next fork maps it in the parent. The
//! record is shared by a family of forks and starts afresh with exec. Only a hint: wrong or torn entries cost
//! time, never correctness, so all accesses are Relaxed.

use core::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 12;

/// Addresses of pages; 0 for a free slot.
pub(super) struct HotPages([AtomicU64; SLOTS]);

impl HotPages {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; SLOTS])
    }

    /// Remembers the page at `addr`, if there is room.
    pub fn remember(&self, addr: u64) {
        if self.0.iter().any(|slot| slot.load(Ordering::Relaxed) == addr) {
            return;
        }
        if let Some(free) = self.0.iter().find(|slot| slot.load(Ordering::Relaxed) == 0) {
            free.store(addr, Ordering::Relaxed);
        }
    }

    /// Forgets the page at `addr`.
    pub fn forget(&self, addr: u64) {
        for slot in &self.0 {
            if slot.load(Ordering::Relaxed) == addr {
                slot.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The pages remembered.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|&addr| addr != 0)
    }
}
