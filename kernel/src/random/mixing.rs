//! The live pools: what everything is mixed into and seeds are made of.
//!
//! Owns the pools and the id of the machine that was mixed into it last. Never credits. Locks: `Random`, for both, not
//! held while hardware is asked; an interrupt handler only tries it.

use crate::machine::vm_id::VmId;
use crate::sync::{SpinLock, level};
use alea_random::block::Key;
use alea_random::pool::{FRESH_WORDS, POOLS, Pools, Trickle};
use zerocopy::IntoBytes;

struct Mixing {
    pools: Pools,
    id: VmId,
}

static POOL: SpinLock<Mixing, level::Random> =
    SpinLock::new(Mixing { pools: Pools::new(), id: VmId([0; 2]) });

/// Bytes that all CPUs share.
pub const MEMORY: usize = size_of::<SpinLock<Mixing, level::Random>>();

/// Adds to what an attacker has to know; credits nothing.
pub fn mix(bytes: &[u8]) {
    POOL.lock().pools.mix(bytes);
}

/// As [`mix`], for a source that brings a little at a time: what comes after the first key is spread over the pools.
pub fn spread(from: Trickle, bytes: &[u8]) {
    POOL.lock().pools.spread(from, bytes);
}

/// As [`spread`], from an interrupt handler: gives up when the pools are in use.
pub fn try_spread(from: Trickle, bytes: &[u8]) -> bool {
    POOL.try_lock().map(|mut mixing| mixing.pools.spread(from, bytes)).is_some()
}

/// A period of the schedule has passed: the pools whose turn it is join the one that seeds are made of.
pub fn turn() {
    POOL.lock().pools.turn();
}

/// Makes `seed` of everything that was mixed in, of `id` and of what the hardware has to add; whether the id was new.
pub fn extract(id: VmId, fresh: &[u64; FRESH_WORDS], seed: &mut Key) -> bool {
    let mut mixing = POOL.lock();
    let new = mixing.id != id;
    if new {
        mixing.id = id;
        mixing.pools.mix(id.0.as_bytes());
    }
    mixing.pools.extract(fresh, seed);
    new
}

/// Bytes mixed in so far.
pub fn mixed() -> u64 {
    POOL.lock().pools.mixed()
}

/// Bytes in each pool that no seed was made of.
pub fn waiting() -> [u64; POOLS] {
    POOL.lock().pools.waiting()
}
