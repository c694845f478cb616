//! The entropy pools: running BLAKE2s hashes that everything is mixed into.
//!
//! Owns the hash states, the extraction of keys, and the rule by which trickles of entropy are spread over [`Pools`], so
//! that a state that leaked once heals. Mixing never credits: see [`crate::credit`]. The
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
    waiting: u64,
}

impl Pool {
    /// A pool that nothing was mixed into.
    pub const fn new() -> Self {
        Self { hash: None, mixed: 0, waiting: 0 }
    }

    /// Mixes `bytes` in. Can only ever add to what an attacker has to know.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.mix_inner(bytes);
        self.mixed = self.mixed.saturating_add(bytes.len() as u64);
        self.waiting = self.waiting.saturating_add(bytes.len() as u64);
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

    /// How many bytes were mixed in since the last extraction.
    pub const fn waiting(&self) -> u64 {
        self.waiting
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
        self.waiting = 0;
    }

    /// Mixes what this pool has into `other` and begins anew.
    fn join(&mut self, other: &mut Self) {
        self.join_inner(other);
        wipe_stack::<SCRUB>();
    }

    #[inline(never)]
    fn join_inner(&mut self, other: &mut Self) {
        let Some(hash) = self.hash.take() else { return };
        // Made anew at once: what was moved out is still in its old place.
        self.hash = Some(keyed(&[0; KEY_LEN]));
        let mut digest = finish(hash);
        other.hash().update(&digest);
        other.waiting = other.waiting.saturating_add(self.waiting);
        self.waiting = 0;
        wipe(&mut digest);
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

/// How many pools there are: the last one joins after 3^7 turns, 36 hours of minutes.
pub const POOLS: usize = 8;

/// A source that never has much at a time: what it brings is spread over the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Trickle {
    /// Samples of a counter's jitter.
    Jitter,
    /// Times of interrupts.
    Interrupts,
}

/// Several pools, of which the first makes the keys and the others join it ever more rarely: Fortuna (Ferguson and
/// Schneier), with the base of Windows and FreeBSD's fenestrasX.
///
/// Who knew all state once, and sees output all the time, searches at each reseed for what was mixed in since. With one
/// pool and little noise he keeps up for ever. Pool *n* collects 3^n times as long before it joins, so that one of them
/// has more than he can search when it does, whatever the rate. `tests/recovery.rs` plays him.
///
/// Each trickle goes round by itself: who causes events of one cannot steer where those of the other go.
///
/// ```
/// use alea_random::pool::{POOLS, Pools, Trickle};
/// let mut pools = Pools::new();
/// pools.spread(Trickle::Jitter, &[1; 8]);
/// assert_eq!(pools.waiting()[0], 8, "the first key is made of everything");
/// pools.turn();
/// (0..POOLS).for_each(|_| pools.spread(Trickle::Jitter, &[2; 8]));
/// assert_eq!(pools.waiting(), [16, 8, 8, 8, 8, 8, 8, 8]);
/// ```
#[derive(Debug)]
pub struct Pools {
    first: Pool,
    later: [Pool; POOLS - 1],
    next: [u8; 2],
    turns: u64,
}

impl Pools {
    /// Pools that nothing was mixed into.
    pub const fn new() -> Self {
        Self {
            first: Pool::new(),
            later: [const { Pool::new() }; POOLS - 1],
            next: [0; 2],
            turns: 0,
        }
    }

    /// Mixes `bytes` in so that the next extraction depends on them.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.first.mix(bytes);
    }

    /// Mixes `bytes` into the pool whose turn it is; before the first [`turn`](Self::turn), when no key is to wait for
    /// anything, into the first.
    pub fn spread(&mut self, from: Trickle, bytes: &[u8]) {
        if self.turns == 0 {
            return self.first.mix(bytes);
        }
        let next = &mut self.next[from as usize];
        let pool = usize::from(*next);
        *next = (*next + 1) % POOLS as u8;
        match pool.checked_sub(1) {
            None => self.first.mix(bytes),
            Some(later) => self.later[later].mix(bytes),
        }
    }

    /// Another period of the schedule has passed: every third time the second pool joins the first, every ninth time the
    /// third, and so on. Only the clock may call it, or who asks for reseeds would have the pools join before they have
    /// anything.
    pub fn turn(&mut self) {
        self.turns += 1;
        let mut every = 1;
        for pool in &mut self.later {
            every *= 3;
            if !self.turns.is_multiple_of(every) {
                break;
            }
            pool.join(&mut self.first);
        }
    }

    /// As [`Pool::extract`], from the first pool.
    pub fn extract(&mut self, fresh: &[u64; FRESH_WORDS], key: &mut Key) {
        self.first.extract(fresh, key);
    }

    /// How many bytes were mixed in, in all: for statistics.
    pub fn mixed(&self) -> u64 {
        self.later.iter().fold(self.first.mixed(), |sum, pool| sum.saturating_add(pool.mixed()))
    }

    /// How many bytes each pool has that no key was made of.
    pub fn waiting(&self) -> [u64; POOLS] {
        core::array::from_fn(|n| match n.checked_sub(1) {
            None => self.first.waiting(),
            Some(later) => self.later[later].waiting(),
        })
    }
}

impl Default for Pools {
    fn default() -> Self {
        Self::new()
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

/// BLAKE2s of `input` under `key`: for known answers.
pub(crate) fn mac(key: &[u8; KEY_LEN], input: &[u8]) -> [u8; KEY_LEN] {
    let mut hash = keyed(key);
    hash.update(input);
    finish(hash)
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
