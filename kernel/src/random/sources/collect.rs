//! The order in which the sources are asked at boot.
//!
//! Owns that order. Never credits: what all of them are worth together is credited by the caller, once, so that the first
//! key is made of everything. Runs once, on the boot CPU, before anything draws. No locks.

use super::{
    assessed, clock, firmware, fw_cfg, handed, hardware, interrupt, jitter, mac, machine, tpm,
    trust, virtio_rng, vmgenid,
};
use crate::base::boot_info::BootInfo;
use alea_random::boot;
use alea_random::credit::EntropyBits;

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) = (
    virtio_rng::MEMORY + tpm::MEMORY + hardware::MEMORY + jitter::MEMORY.0,
    interrupt::MEMORY + jitter::MEMORY.1,
);

/// Asks every source that exists at boot; what they are worth. Jitter comes last, and goes on while that is not enough.
#[must_use]
pub fn collect_at_boot(info: &BootInfo) -> EntropyBits {
    clock::collect(info);
    machine::collect(info);
    firmware::collect();
    mac::collect(info);
    vmgenid::collect();
    trust::demand_instructions(hardware::is_there());
    boot::collect(&mut [
        &mut |_| fw_cfg::collect(),
        &mut |_| handed::collect(info),
        &mut |_| hardware::collect(),
        &mut |_| virtio_rng::collect(info),
        &mut |so_far| tpm::collect(so_far, info),
        &mut |so_far| {
            assessed::show_if_asked();
            jitter::collect(so_far)
        },
    ])
}

/// Mixes in what devices have answered since they were asked; whether any of it is worth credit.
pub fn look_again() -> bool {
    answered().any(|bits| bits > EntropyBits(0))
}

/// The same on a machine that is not ready, whose caller credits it: what it is worth.
pub fn late_credit() -> EntropyBits {
    EntropyBits(answered().map(|bits| bits.0).sum())
}

fn answered() -> impl Iterator<Item = EntropyBits> {
    [virtio_rng::look(), tpm::look()].into_iter().flatten()
}
