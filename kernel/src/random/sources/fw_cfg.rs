//! A seed that the host gives a virtual machine: QEMU's `-fw_cfg name=opt/org.alea/seed,file=...`.
//!
//! **Trust**: the host can read all of a guest's memory anyway; `random.trust_bootloader=off` denies the
//! seed credit. **Credit**: eight bits a byte, 256 at most. **Cost**:
//! one port access per byte of the directory, about 0.2 ms under emulation, once, in virtual machines
//! only. The host keeps its copy: a seed must not be used for two machines that are to differ by nothing
//! else.
//!
//! Other seeds from outside: [`super::handed`]. A PVH start info and Limine's own answers have no place for one, and Linux's
//! (`SETUP_RNG_SEED`) comes with Linux's own boot protocol, which this kernel does not have.
//!
//! Interface: QEMU, docs/specs/fw_cfg.rst. A hostile device can at worst give bytes that add nothing.

use super::trust;
use crate::base::cpu;
use crate::base::port::FW_CFG;
use crate::random::live::RANDOM;
use crate::random::stats;
use alea_random::credit::EntropyBits;

const SELECTOR: u16 = 0;
const DATA: u16 = 1;
const SIGNATURE: u16 = 0x0000;
const DIRECTORY: u16 = 0x0019;
/// More files than any QEMU has; bounds the loop whatever the device says.
const MAX_FILES: u32 = 256;
const MAX_SEED: usize = 64;

/// Mixes the seed in; what it is worth.
pub fn collect() -> EntropyBits {
    if !cpu::features().hypervisor || !present() {
        return EntropyBits(0);
    }
    let Some((key, size)) = find(b"opt/org.alea/seed") else { return EntropyBits(0) };
    let mut seed = [0u8; MAX_SEED];
    let len = usize::try_from(size).unwrap_or(MAX_SEED).min(MAX_SEED);
    FW_CFG.write16(SELECTOR, key);
    seed[..len].fill_with(|| FW_CFG.read8(DATA));
    stats::mixed(stats::Source::BootSeed, len);
    RANDOM.mix_secret(&mut seed[..len]);
    if !trust::loader() {
        return EntropyBits(0);
    }
    let bits = EntropyBits(len as u32 * u8::BITS).min(EntropyBits::READY);
    stats::credited(stats::Source::BootSeed, bits);
    bits
}

fn present() -> bool {
    FW_CFG.write16(SELECTOR, SIGNATURE);
    read::<4>() == *b"QEMU"
}

/// Selector and size of a file.
fn find(name: &[u8]) -> Option<(u16, u32)> {
    FW_CFG.write16(SELECTOR, DIRECTORY);
    let count = u32::from_be_bytes(read()).min(MAX_FILES);
    for _ in 0..count {
        let size = u32::from_be_bytes(read());
        let key = u16::from_be_bytes(read());
        let _reserved = read::<2>();
        let text = read::<56>();
        if text.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0)) {
            return Some((key, size));
        }
    }
    None
}

fn read<const N: usize>() -> [u8; N] {
    core::array::from_fn(|_| FW_CFG.read8(DATA))
}
