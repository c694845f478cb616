//! What a new program finds on its stack: counts, pointers, the auxiliary vector.
//!
//! Owns the two words of hardware capabilities, asked for once. Never touches the new space: it fills pages that nobody
//! sees yet. Locks: none.

use super::args::ArgArea;
use super::block::{AUX_ENTRIES, Auxv, FIRST_POINTER, RANDOM_LEN, extras_at};
use super::image::Placed;
use crate::arch::task::fpu;
use crate::base::{PAGE_SIZE, cpu};
use crate::process::task::rseq;
use crate::sync::Once;
use crate::vfs::Cred;

const PLATFORM: u64 = u64::from_le_bytes(*b"x86_64\0\0");

mod at {
    pub(super) const NULL: u64 = 0;
    pub(super) const PHDR: u64 = 3;
    pub(super) const PHENT: u64 = 4;
    pub(super) const PHNUM: u64 = 5;
    pub(super) const PAGESZ: u64 = 6;
    pub(super) const BASE: u64 = 7;
    pub(super) const FLAGS: u64 = 8;
    pub(super) const ENTRY: u64 = 9;
    pub(super) const UID: u64 = 11;
    pub(super) const EUID: u64 = 12;
    pub(super) const GID: u64 = 13;
    pub(super) const EGID: u64 = 14;
    pub(super) const PLATFORM: u64 = 15;
    pub(super) const HWCAP: u64 = 16;
    pub(super) const CLKTCK: u64 = 17;
    pub(super) const SECURE: u64 = 23;
    pub(super) const RANDOM: u64 = 25;
    pub(super) const HWCAP2: u64 = 26;
    pub(super) const RSEQ_FEATURE_SIZE: u64 = 27;
    pub(super) const RSEQ_ALIGN: u64 = 28;
    pub(super) const EXECFN: u64 = 31;
    pub(super) const SYSINFO_EHDR: u64 = 33;
    pub(super) const MINSIGSTKSZ: u64 = 51;
}

/// Where the parts of the stack came to lie.
pub(super) struct Laid {
    pub(super) sp: u64,
    /// Start and end of the argument strings and of the environment strings.
    pub(super) args: (u64, u64),
    pub(super) env: (u64, u64),
    pub(super) auxv: Auxv,
}

/// What this CPU can do, as AT_HWCAP and AT_HWCAP2 show it; asked once.
fn hwcap() -> (u64, u64) {
    static CAPS: Once<(u64, u64)> = Once::new();
    *CAPS.call_once(|| {
        let [.., edx] = cpu::cpuid(1, 0);
        // HWCAP2 bit 1: FSGSBASE may be used.
        (u64::from(edx), u64::from(cpu::features().fsgsbase) << 1)
    })
}

/// Fills in the block; the pages will end at `top`.
pub(super) fn lay_out(
    area: &mut ArgArea,
    top: u64,
    placed: &Placed,
    cred: &Cred,
    secure: bool,
    vdso: Option<u64>,
    secret: &[u64; 2],
) -> Laid {
    let [args, env, name] = area.starts;
    let random = area.block + extras_at(area.argc, area.envc);
    let platform = random + RANDOM_LEN;
    let &[low, high] = secret;
    for (at, word) in [(random, low), (random + 8, high), (platform, PLATFORM)] {
        area.put_word(at, word);
    }
    let base = top - (area.page_count() * PAGE_SIZE) as u64;
    let addr = |at: usize| base + at as u64;
    let (hwcap, hwcap2) = hwcap();
    let mut auxv: Auxv = [[at::NULL, 0]; AUX_ENTRIES];
    let entries = [
        [at::SYSINFO_EHDR, vdso.unwrap_or(0)],
        [at::MINSIGSTKSZ, min_signal_stack()],
        [at::HWCAP, hwcap],
        [at::PAGESZ, PAGE_SIZE as u64],
        [at::CLKTCK, 100],
        [at::PHDR, placed.phdrs],
        [at::PHENT, alea_elf::PHDR_LEN as u64],
        [at::PHNUM, placed.phdr_count.into()],
        [at::BASE, placed.base],
        [at::FLAGS, 0],
        [at::ENTRY, placed.program_entry],
        [at::UID, cred.uid.into()],
        [at::EUID, cred.euid.into()],
        [at::GID, cred.gid.into()],
        [at::EGID, cred.egid.into()],
        [at::SECURE, secure.into()],
        [at::RANDOM, addr(random)],
        [at::HWCAP2, hwcap2],
        [at::EXECFN, addr(name)],
        [at::PLATFORM, addr(platform)],
        [at::RSEQ_FEATURE_SIZE, rseq::FEATURE_SIZE as u64],
        [at::RSEQ_ALIGN, rseq::ALIGN],
    ];
    // Without a vDSO its entry is left out.
    let skip = usize::from(vdso.is_none());
    for (to, from) in auxv.iter_mut().zip(entries.into_iter().skip(skip)) {
        *to = from;
    }
    put_block(area, base, &auxv);
    Laid { sp: addr(area.block), args: (addr(args), addr(env)), env: (addr(env), addr(name)), auxv }
}

fn put_block(area: &mut ArgArea, base: u64, auxv: &Auxv) {
    let (argc, envc) = (area.argc, area.envc);
    area.put_word(area.block, argc as u64);
    let arguments = area.block + FIRST_POINTER;
    let env = arguments + (argc + 1) * 8;
    area.move_pointers(arguments, argc, base);
    area.move_pointers(env, envc, base);
    area.put_words(env + (envc + 1) * 8, auxv.as_flattened());
}

/// The least stack that a signal frame fits on.
fn min_signal_stack() -> u64 {
    /// The frame without the extended state, its red zone and alignment.
    const FRAME: u64 = 440 + 128 + 64 + 16;
    fpu::signal_size() as u64 + FRAME
}
