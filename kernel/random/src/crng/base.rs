//! The base key: what all keys of CPUs are made from.
//!
//! Owns [`Base`] and the numbers of its [`Generation`]s. It must never be replaced: what is installed is made of the old
//! key and the new seed, so that the order in which two CPUs install theirs cannot undo one of them. Lock rules: it
//! lies behind the kernel's lock ([`Exclusive`](super::Exclusive)).

use core::fmt;

use super::twins::MachineId;
use crate::block::{BLOCK_LEN, BlockGenerator, KEY_LEN, Key};
use crate::pool;

/// Which reseed a key stems from. [`Generation::NONE`] until the first; never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

impl Generation {
    /// Before the first reseed. User space sees it as "do not use the vDSO".
    pub const NONE: Self = Self(0);
    /// What a CPU holds that has no key: equal to no published generation.
    pub(super) const VACANT: Self = Self(u64::MAX);

    pub(super) const fn of(number: u64) -> Self {
        Self(number)
    }

    /// The number, as user space sees it.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next one; the two special values are skipped.
    pub(super) const fn next(self) -> Self {
        match self.0.wrapping_add(1) {
            0 | u64::MAX => Self(1),
            number => Self(number),
        }
    }
}

/// What the kernel's lock protects.
pub struct Base {
    pub(super) key: Key,
    pub(super) generation: Generation,
    /// The machine whose id the key depends on.
    pub(super) made_for: MachineId,
    /// Whether there is a key: from the first seed on, which may come before the first generation.
    pub(super) keyed: bool,
}

impl Base {
    /// No key yet.
    pub const fn vacant() -> Self {
        let (generation, made_for) = (Generation::NONE, MachineId::NONE);
        Self { key: Key::vacant(), generation, made_for, keyed: false }
    }

    /// Makes a new key of the old one and `seed`, which is wiped: `BLAKE2s(key = old key, seed)`. Who knows one of them
    /// alone knows nothing of it.
    pub(super) fn absorb(&mut self, seed: &mut Key) {
        pool::chain(&mut self.key, seed);
        self.keyed = true;
    }

    /// Generates `out` (at most 32 bytes) from the base key, which erases itself.
    pub(super) fn expand(&mut self, blocks: &impl BlockGenerator, out: &mut Key) {
        let mut group = [[0; BLOCK_LEN]];
        blocks.fill(&self.key, 0, &mut group);
        let [block] = &mut group;
        self.key.take_from(block);
        if let Some(second) = block.last_chunk_mut::<KEY_LEN>() {
            out.take(second);
        }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("generation", &self.generation).finish_non_exhaustive()
    }
}
