//! The sources of entropy, one file each, with their trust, cost and credit.
//!
//! Owns the order in which they are asked at boot. Everything is hashed into one pool; no source is
//! trusted alone, and what is credited is only what the source's file argues for. No locks.

mod assessed;
mod assessed_interrupts;
mod clock;
mod collect;
mod firmware;
mod fw_cfg;
mod handed;
mod hardware;
mod interrupt;
pub(super) mod jitter;
mod mac;
mod machine;
mod tpm;
mod trust;
mod virtio_rng;
mod vmgenid;
mod wait;

pub use assessed_interrupts::show_if_asked as show_interrupts_if_asked;
pub(super) use collect::{MEMORY, collect_at_boot, late_credit, look_again};
pub(super) use hardware::{fresh_words, hardware_word, is_there as has_instruction};
pub(super) use interrupt::start as watch_interrupts;
pub(super) use jitter::Tsc;

/// Begins the start-up tests of every source again, and ends those of all that can be asked for as many samples at once.
pub(super) fn test_on_demand() {
    hardware::test();
    jitter::test();
    virtio_rng::test();
    tpm::test();
    interrupt::test();
}
