//! The live pool: mixing, crediting, reseeding, and who waits for readiness.
//!
//! Owns the pool, the credit and the queue of those who wait. Mixing and crediting stay two calls: mixing never
//! credits. Locks: `Random`, for the pool; mixing from an interrupt handler only tries it.

use super::sources::{self, virtio_rng, vmgenid};
use super::{crng, early, schedule, stats};
use crate::sync::{SpinLock, WaitQueue, level};
use alea_random::block::{Key, Portable};
use alea_random::credit::{Credit, EntropyBits, State, Transition};
use alea_random::crng::{Generation, fill_unseeded as expand};
use alea_random::pool::Pool;
use alea_random::reseed::Cause;
use zeroize::Zeroize;

static POOL: SpinLock<Pool, level::Random> = SpinLock::new(Pool::new());
static CREDIT: Credit = Credit::none();
static READY: WaitQueue = WaitQueue::new();

/// Bytes that all CPUs share.
pub const MEMORY: usize =
    size_of::<SpinLock<Pool, level::Random>>() + size_of::<Credit>() + size_of::<WaitQueue>();

/// Adds to what an attacker has to know; credits nothing.
pub fn mix(bytes: &[u8]) {
    POOL.lock().mix(bytes);
}

/// As [`mix`], from an interrupt handler: gives up when the pool is in use.
pub fn try_mix(bytes: &[u8]) -> bool {
    POOL.try_lock().map(|mut pool| pool.mix(bytes)).is_some()
}

/// Counts entropy that was mixed in before.
pub fn credit(bits: EntropyBits) {
    let Some(Transition { to, .. }) = CREDIT.add(bits) else { return };
    if to == State::Ready {
        reseed(Cause::Ready);
        log::info!("random: crng init done");
        early::report_missed();
        READY.wake_all();
        schedule::arm();
    }
}

/// What a write to a device does: mixes, credits nothing.
pub fn mix_user(bytes: &[u8]) {
    stats::mixed(stats::Source::User, bytes.len());
    mix(bytes);
}

/// What a privileged ioctl does.
pub fn credit_user(bits: EntropyBits) {
    stats::credited(stats::Source::User, bits);
    credit(bits);
}

/// Gives the generator a new key.
pub fn reseed(cause: Cause) {
    virtio_rng::look();
    let mut key = Key::vacant();
    extract(&mut key);
    crng::reseed(&mut key);
    stats::reseeded(cause);
}

fn extract(key: &mut Key) {
    let mut fresh = sources::fresh_words();
    POOL.lock().extract(&fresh, key);
    fresh.zeroize();
}

/// Bytes from the pool as it is, before the generator has a key: one extraction for each piece.
pub fn fill_unseeded(out: &mut [u8]) {
    let (mut blocks, mut seed) = ([[0u8; 64]; 4], Key::vacant());
    for piece in out.chunks_mut(blocks.as_flattened().len()) {
        loop {
            extract(&mut seed);
            expand(&seed, &Portable, &mut blocks);
            if vmgenid::unchanged_base() {
                break;
            }
        }
        piece.copy_from_slice(&blocks.as_flattened()[..piece.len()]);
    }
    blocks.zeroize();
}

/// How far the service is.
#[inline]
pub fn state() -> State {
    // Ready means that there is a key, not only the credit for one.
    if crng::generation() == Generation::NONE {
        CREDIT.state().min(State::Early)
    } else {
        State::Ready
    }
}

/// The credited bits, 0 to 256.
pub fn credited() -> EntropyBits {
    CREDIT.bits()
}

/// Who waits for [`State::Ready`].
pub fn ready_queue() -> &'static WaitQueue {
    &READY
}

/// Bytes mixed in so far.
pub fn mixed() -> u64 {
    POOL.lock().mixed()
}
