//! membarrier: memory barriers on the CPUs that run a program's threads.
//!
//! The interrupt by which other CPUs are made to flush is a full barrier there, and returning from it
//! serialises the CPU; so a flush of no pages is all that is needed.
//!
//! Owns nothing. Never called with a spinlock held: it waits for the other CPUs. Locks: none.

use super::tlb::barrier;
use crate::mm::space::space::AddressSpace;
use abi::{Errno, Result};
use bitflags::bitflags;
use core::sync::atomic::Ordering;

bitflags! {
    /// What a process registered for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Membarrier: u32 {
        const EXPEDITED = 1;
        const SYNC_CORE = 2;
        const RSEQ = 4;
        const GLOBAL = 8;
    }
}

impl AddressSpace {
    /// Allows [`membarrier`](Self::membarrier) of this kind from now on.
    pub fn register_membarrier(&self, kind: Membarrier) {
        // Relaxed: read by threads that know of the registration by other means.
        self.membarrier.fetch_or(kind.bits(), Ordering::Relaxed);
    }

    /// What was registered.
    pub fn membarrier_registrations(&self) -> Membarrier {
        // Relaxed: as above.
        Membarrier::from_bits_truncate(self.membarrier.load(Ordering::Relaxed))
    }

    /// A barrier on every CPU that runs a thread of this space; `EPERM` if it was not registered.
    pub fn membarrier(&self, kind: Membarrier) -> Result<()> {
        if self.membarrier.load(Ordering::Relaxed) & kind.bits() == 0 {
            return Err(Errno::EPERM);
        }
        barrier(self.cpus.get());
        Ok(())
    }
}

/// A barrier on every CPU.
pub fn barrier_everywhere() {
    barrier(u64::MAX);
}
