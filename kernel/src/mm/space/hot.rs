//! [`HotPages`]: which pages of a program are written soon after it forks.
//!
//! A page that parent or child writes while they still share it is remembered; the next fork copies it at
//! once, which saves both of them a fault. A page of zeros that a child was the first to write is remembered, too;
//! the next child gets it at once. What turns out not to be written is forgotten again. So is
//! a page of the program's file that a child was the first to touch; the next fork maps it in the parent. The
//! record is shared by a family of forks; with exec it starts with what earlier runs of the program wrote.
//!
//! Owns the record. Never more than a hint: an entry may be wrong, be lost, or stand there twice (two CPUs remember the
//! same page at the same moment), so all accesses are Relaxed. Locks: none.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SLOTS: usize = 12;

/// Addresses of pages; 0 for a free slot.
pub(in crate::mm::space) struct HotPages {
    slots: [AtomicU64; SLOTS],
    /// The pages that earlier runs wrote after forks have been added.
    recalled: AtomicBool,
}

impl HotPages {
    pub const fn new() -> Self {
        Self { slots: [const { AtomicU64::new(0) }; SLOTS], recalled: AtomicBool::new(false) }
    }

    /// True for the first fork of the program.
    pub fn is_first(&self) -> bool {
        !self.recalled.load(Ordering::Relaxed) && !self.recalled.swap(true, Ordering::Relaxed)
    }

    /// Remembers the page at `addr`, if there is room: whether it is new.
    pub fn remember(&self, addr: u64) -> bool {
        if self.slots.iter().any(|slot| slot.load(Ordering::Relaxed) == addr) {
            return false;
        }
        let free = self.slots.iter().find(|slot| slot.load(Ordering::Relaxed) == 0);
        if let Some(free) = free {
            free.store(addr, Ordering::Relaxed);
        }
        free.is_some()
    }

    /// Forgets the page at `addr`.
    pub fn forget(&self, addr: u64) {
        for slot in &self.slots {
            if slot.load(Ordering::Relaxed) == addr {
                slot.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The pages remembered; one may come twice.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|&addr| addr != 0)
    }
}
