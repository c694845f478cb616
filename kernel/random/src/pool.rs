//! The entropy pool: a running BLAKE2s hash that everything is mixed into.
//!
//! Owns the hash state and the extraction of keys. Mixing never credits: see [`crate::credit`]. The
//! pool must never reveal its state: what is extracted is a keyed hash of it, and the state is
//! replaced in the same step. Lock rules: none here; the kernel keeps the pool behind a lock that
//! interrupt handlers do not take.
//!
//! Extraction, with `pool` the running hash and `fresh` words of the hardware generator if there
//! are any:
//!
//! ```text
//! secret = finish(pool)
//! pool   = BLAKE2s keyed by BLAKE2s(key = secret, fresh || 0)   -- no way back to `secret`
//! key    =                  BLAKE2s(key = secret, fresh || 1)
//! ```

use core::fmt;

use crate::block::wipe::{wipe, wipe_stack};
use crate::block::{KEY_LEN, Key};
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, KeyInit, Update};

/// Words of the hardware generator that go into an extraction: 256 bits.
pub const FRESH_WORDS: usize = 4;

/// More stack than extraction and BLAKE2s use: 1,400 bytes in an optimised build.
const SCRUB: usize = 2048;

/// The running hash of everything mixed in.
pub struct Pool {
    /// `None` until something is mixed in, so that a pool can be made in a constant.
    hash: Option<Blake2sMac256>,
    mixed: u64,
}

impl Pool {
    /// A pool that nothing was mixed into.
    pub const fn new() -> Self {
        Self { hash: None, mixed: 0 }
    }

    /// Mixes `bytes` in. Can only ever add to what an attacker has to know.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.mix_inner(bytes);
        self.mixed = self.mixed.saturating_add(bytes.len() as u64);
        wipe_stack::<SCRUB>();
    }

    /// Not inlined, as every function whose frame is to be wiped: [`wipe_stack`] begins below its caller's.
    #[inline(never)]
    fn mix_inner(&mut self, bytes: &[u8]) {
        self.hash().update(bytes);
    }

    /// How many bytes were mixed in: for statistics.
    pub const fn mixed(&self) -> u64 {
        self.mixed
    }

    /// Makes `key` one that depends on everything mixed in so far; the pool moves on.
    pub fn extract(&mut self, fresh: &[u64; FRESH_WORDS], key: &mut Key) {
        self.extract_inner(fresh, key);
        wipe_stack::<SCRUB>();
    }

    #[inline(never)]
    fn extract_inner(&mut self, fresh: &[u64; FRESH_WORDS], key: &mut Key) {
        self.hash();
        let mut secret = self.hash.take().map_or([0; KEY_LEN], finish);
        let mut next = expand(&secret, fresh, 0);
        self.hash = Some(keyed(&next));
        key.take(&mut expand(&secret, fresh, 1));
        wipe(&mut secret);
        wipe(&mut next);
    }

    fn hash(&mut self) -> &mut Blake2sMac256 {
        self.hash.get_or_insert_with(|| keyed(&[0; KEY_LEN]))
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("mixed", &self.mixed).finish_non_exhaustive()
    }
}

/// Makes `key` a new one of itself and of `seed`, which is wiped: `BLAKE2s(key = key, seed)`.
pub(crate) fn chain(key: &mut Key, seed: &mut Key) {
    chain_inner(key, seed);
    wipe_stack::<SCRUB>();
}

#[inline(never)]
fn chain_inner(key: &mut Key, seed: &mut Key) {
    let mut hash = keyed(key.as_bytes());
    hash.update(seed.as_bytes());
    key.take(&mut finish(hash));
    wipe(seed.as_mut_bytes());
}

fn keyed(key: &[u8; KEY_LEN]) -> Blake2sMac256 {
    Blake2sMac256::new(key.into())
}

fn finish(hash: Blake2sMac256) -> [u8; KEY_LEN] {
    hash.finalize_fixed().into()
}

/// `BLAKE2s(key = secret, fresh || counter)`.
fn expand(secret: &[u8; KEY_LEN], fresh: &[u64; FRESH_WORDS], counter: u64) -> [u8; KEY_LEN] {
    let mut hash = keyed(secret);
    for word in fresh {
        hash.update(&word.to_le_bytes());
    }
    hash.update(&counter.to_le_bytes());
    finish(hash)
}
