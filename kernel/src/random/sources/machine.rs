//! What tells this machine from others: CPU, memory map, command line, where the kernel lies.
//!
//! **Trust**: none; all of it may be known to an attacker. **Credit**: none. It makes machines with the
//! same poor sources start differently. **Cost**: some 100 bytes to hash, once.
//!
//! Linux mixes in its command line and its name in the same way (`random_init_early`).

use crate::base::boot_info::BootInfo;
use crate::base::cpu;
use crate::random::live::RANDOM;
use crate::random::stats;

pub fn collect(info: &BootInfo) {
    mix(&stack_address().to_le_bytes());
    for leaf in [0, 1, 7] {
        for register in cpu::cpuid(leaf, 0) {
            mix(&register.to_le_bytes());
        }
    }
    for region in &info.memory_map {
        mix(&region.start.as_u64().to_le_bytes());
        mix(&region.len.to_le_bytes());
    }
    mix(info.cmdline.as_bytes());
}

fn mix(bytes: &[u8]) {
    stats::mixed(stats::Source::Machine, bytes.len());
    RANDOM.mix(bytes);
}

/// Where this runs: differs where the kernel's place does.
fn stack_address() -> u64 {
    let here = 0u8;
    core::ptr::from_ref(&here).addr() as u64
}
