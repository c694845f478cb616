//! Seeds that the firmware or the boot loader left in memory: ACPI's `OEM0` and UEFI's `LINUX_EFI_RANDOM_SEED`.
//!
//! **Trust**: who started the machine chose its kernel, too; `random.trust_bootloader=off` denies credit, and a confidential
//! machine gives none. **Credit**: eight bits a byte. **Cost**: some tens of bytes to hash, once. Wiped where they lay. Which
//! bytes they are: [`alea_random::handed`]. Owns nothing. No locks.

use super::trust;
use crate::base::boot_info::BootInfo;
use crate::machine::{acpi, efi};
use crate::random::live::RANDOM;
use crate::random::stats;
use alea_random::credit::EntropyBits;
use alea_random::handed;

/// Mixes them in; what they are worth.
pub fn collect(info: &BootInfo) -> EntropyBits {
    let mut bits = EntropyBits(0);
    acpi::with_oem0(|table| {
        if let Some(seed) = handed::in_oem0(table).and_then(|place| table.get_mut(place)) {
            bits = bits.saturating_add(take(seed));
        }
    });
    efi::with_seed(info, |seed| bits = bits.saturating_add(take(seed)));
    bits
}

fn take(seed: &mut [u8]) -> EntropyBits {
    stats::mixed(stats::Source::BootSeed, seed.len());
    let len = seed.len();
    RANDOM.mix_secret(seed);
    if !trust::loader() {
        return EntropyBits(0);
    }
    stats::credited(stats::Source::BootSeed, handed::worth(len));
    handed::worth(len)
}
