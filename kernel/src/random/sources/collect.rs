//! The order in which the sources are asked at boot.
//!
//! Runs once, on the boot CPU, before anything draws. No locks.

use super::{
    boot_seed, clock, firmware, fw_cfg, hardware, interrupt, jitter, mac, machine, virtio_rng,
    vmgenid,
};
use crate::base::boot_info::BootInfo;

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
