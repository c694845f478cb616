//! Crediting, reseeding, and who waits for readiness.
//!
//! Owns the credit and the queue of those who wait; the pool itself is in [`super::mixing`]. Mixing and crediting stay two
//! calls: mixing never credits. Locks: that of the queue, with nothing else held.

pub use super::mixing::{mix, mixed, spread, try_spread, turn, waiting};
use super::{crng, early, mixing, schedule, sources, stats};
use crate::sync::WaitQueue;
use alea_random::credit::{Credit, EntropyBits, State, Transition};
use alea_random::crng::Generation;
use alea_random::reseed::Cause;
use zeroize::Zeroize;

static CREDIT: Credit = Credit::none();
static READY: WaitQueue = WaitQueue::new();

/// Bytes that all CPUs share.
pub const MEMORY: usize = mixing::MEMORY + size_of::<Credit>() + size_of::<WaitQueue>();

/// Counts entropy that was mixed in before. Where several sources deliver together, all are mixed in before any is
/// credited: the first key is made at once.
pub fn credit(bits: EntropyBits) {
    let Some(Transition { to, .. }) = CREDIT.add(bits) else { return };
    match to {
        State::Empty => {}
        State::Early => crng::seed_early(),
        State::Ready => {
            reseed(Cause::Ready);
            stats::first_key();
            log::info!("random: crng init done");
            early::report_missed();
            READY.wake_all();
            schedule::arm();
        }
    }
}

/// Ends all credit, before there is any: the service stays Empty.
pub fn condemn() {
    CREDIT.condemn();
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
    let news = sources::look_again();
    crng::reseed();
    stats::reseeded(if news && cause == Cause::Schedule { Cause::NewSource } else { cause });
}

/// Bytes for those who take what there is, before the service is ready.
pub fn fill_unseeded(out: &mut [u8]) {
    let mut blocks = [[0u8; 64]; 4];
    for piece in out.chunks_mut(blocks.as_flattened().len()) {
        crng::fill_unseeded(&mut blocks);
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
