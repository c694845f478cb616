//! What the pools' lock protects.
//!
//! Owns the id that was mixed in last. Lock rules: those of [`super`].

use core::fmt;

use crate::crng::twins::MachineId;
use crate::pool::Pools;

/// The pools, and of which machine they know: made once, for the lock that [`Service::new`](super::Service::new) takes.
pub struct Mixing {
    pub(super) pools: Pools,
    pub(super) id: MachineId,
}

impl Mixing {
    /// Pools that nothing was mixed into.
    pub const fn new() -> Self {
        Self { pools: Pools::new(), id: MachineId::NONE }
    }
}

impl Default for Mixing {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Mixing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mixing").field("pools", &self.pools).finish_non_exhaustive()
    }
}
