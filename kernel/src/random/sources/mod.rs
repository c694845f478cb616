//! The sources of entropy, one file each, with their trust, cost and credit.
//!
//! Owns the order in which they are asked at boot. Everything is hashed into one pool; no source is
//! trusted alone, and what is credited is only what the source's file argues for. No locks.

mod boot_seed;
mod clock;
mod firmware;
mod fw_cfg;
mod hardware;
mod interrupt;
mod jitter;
mod mac;
mod machine;
pub mod virtio_rng;
pub mod vmgenid;

pub use hardware::{fresh_words, hardware_word};
pub use jitter::{Tsc, raw_samples};

use crate::arch::boot::BootInfo;

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) =
    (virtio_rng::MEMORY + vmgenid::MEMORY.0, interrupt::MEMORY + vmgenid::MEMORY.1);

/// Asks every source that exists at boot. Jitter comes last, and goes on until the service is ready.
pub fn collect_at_boot(info: &mut BootInfo) {
    clock::collect(info);
    machine::collect(info);
    firmware::collect();
    mac::collect(info);
    vmgenid::collect();
    boot_seed::collect(info);
    fw_cfg::collect();
    hardware::collect();
    virtio_rng::collect(info);
    jitter::collect();
    interrupt::start();
}
