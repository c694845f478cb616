//! The live pool: what everything is mixed into and seeds are made of.
//!
//! Owns the pool and the id of the machine that was mixed into it last. Never credits. Locks: `Random`, for both, not
//! held while hardware is asked; an interrupt handler only tries it.

use crate::machine::vm_id::VmId;
use crate::sync::{SpinLock, level};
use alea_random::block::Key;
use alea_random::pool::{FRESH_WORDS, Pool};
use zerocopy::IntoBytes;

struct Mixing {
    pool: Pool,
    id: VmId,
}

static POOL: SpinLock<Mixing, level::Random> =
    SpinLock::new(Mixing { pool: Pool::new(), id: VmId([0; 2]) });

/// Bytes that all CPUs share.
pub const MEMORY: usize = size_of::<SpinLock<Mixing, level::Random>>();

/// Adds to what an attacker has to know; credits nothing.
pub fn mix(bytes: &[u8]) {
    POOL.lock().pool.mix(bytes);
}

/// As [`mix`], from an interrupt handler: gives up when the pool is in use.
pub fn try_mix(bytes: &[u8]) -> bool {
    POOL.try_lock().map(|mut mixing| mixing.pool.mix(bytes)).is_some()
}

/// Makes `seed` of everything that was mixed in, of `id` and of what the hardware has to add; whether the id was new.
pub fn extract(id: VmId, fresh: &[u64; FRESH_WORDS], seed: &mut Key) -> bool {
    let mut mixing = POOL.lock();
    let new = mixing.id != id;
    if new {
        mixing.id = id;
        mixing.pool.mix(id.0.as_bytes());
    }
    mixing.pool.extract(fresh, seed);
    new
}

/// Bytes mixed in so far.
pub fn mixed() -> u64 {
    POOL.lock().pool.mixed()
}
