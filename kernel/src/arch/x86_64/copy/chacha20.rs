//! ChaCha20 keystream in vector registers.
//!
//! Owns the choice between the routines of chacha20.s by what the CPU has, what the kernel switched
//! on, and which is faster. The routines save and restore every vector register they use, so they need no `KernelFpu`
//! bracket and leave the running task's state where it is; they must not be called from interrupt
//! handlers. Never waits for a page of user memory. Locks: none.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::arch::task::fpu;
use crate::base::{cpu, tsc};

// The loops are the vDSO's, too.
global_asm!(include_str!("../../../../vdso/src/keystream.s"), include_str!("chacha20.s"));

/// Key, counter, place and number of groups; 1, or 0 if the place could not be written, which is in user space.
type Keystream = unsafe extern "sysv64" fn(*const u8, u32, *mut u8, usize) -> u32;

unsafe extern "sysv64" {
    fn alea_chacha20_sse2(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx2_shift(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx2_shuffle(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx512(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    /// In `usercopy`: with user memory open.
    fn alea_chacha20_user(_: *const u8, _: u32, _: *mut u8, _: usize, by: Keystream) -> u32;

    /// Where each routine may fault: from, and to where it goes then; distances from here.
    static alea_chacha20_ranges: [[i32; 2]; 4];
}

/// Bytes of a group: eight blocks, whose 32-bit words come out interleaved.
pub const GROUP: usize = 512;

/// Which routine this machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Routine {
    /// Four blocks at once; every x86_64 CPU has it.
    Sse2,
    /// Eight blocks at once; rotations are shifts.
    Avx2Shift,
    /// Eight blocks at once; rotations by whole bytes are shuffles.
    Avx2Shuffle,
    /// Eight blocks at once, with an instruction for rotations, where the task's registers are 512 bits wide.
    Avx512,
}

/// A [`Routine`]; SSE2 until `init`.
static ROUTINE: AtomicU8 = AtomicU8::new(Routine::Sse2 as u8);

/// Chooses the routine. After the vector state is switched on.
pub fn init() {
    const AVX: u64 = 0b110;
    const AVX512: u64 = 0b1110_0000;
    let leaf7b = cpu::cpuid(7, 0)[1];
    let (avx2, avx512vl) = (leaf7b >> 5 & 1 != 0, leaf7b >> 31 & 1 != 0);
    let routine = match fpu::xcr0() {
        state if !avx2 || state & AVX != AVX => Routine::Sse2,
        state if state & AVX512 == 0 => faster(Routine::Avx2Shift, Routine::Avx2Shuffle),
        _ if avx512vl => Routine::Avx512,
        // Its wide registers would lose their upper halves to the others.
        _ => Routine::Sse2,
    };
    // Relaxed: before the first use by another CPU, and any value is correct on its own.
    ROUTINE.store(routine as u8, Ordering::Relaxed);
}

/// The faster of two, by trial. CPUs shuffle in one step what takes three shifts; emulators do it byte by byte.
fn faster(one: Routine, other: Routine) -> Routine {
    let mut out = [[0; GROUP]; 2];
    let mut time = |routine: Routine| {
        let (key, groups) = ([0; 32], out.len());
        let start = tsc::read_ordered();
        // SAFETY: key and out are whole; `init` checked that the CPU has the instructions.
        unsafe { (routine.code())(key.as_ptr(), 0, out.as_mut_ptr().cast(), groups) };
        tsc::read_ordered().wrapping_sub(start)
    };
    // The least of several: an interrupt, or the first translation of an emulator, makes one longer.
    let (of_one, of_other) = (0..8).fold((u64::MAX, u64::MAX), |(least, least_other), _| {
        (least.min(time(one)), least_other.min(time(other)))
    });
    if of_one <= of_other { one } else { other }
}

/// The routine in use.
pub fn routine() -> Routine {
    // Relaxed: as in `init`.
    match ROUTINE.load(Ordering::Relaxed) {
        r if r == Routine::Avx2Shift as u8 => Routine::Avx2Shift,
        r if r == Routine::Avx2Shuffle as u8 => Routine::Avx2Shuffle,
        r if r == Routine::Avx512 as u8 => Routine::Avx512,
        _ => Routine::Sse2,
    }
}

/// How many blocks lie side by side in a group.
pub fn lanes() -> usize {
    if is_wide() { 8 } else { 4 }
}

/// Whether 256-bit vectors may be used, in user mode too.
pub fn is_wide() -> bool {
    routine() != Routine::Sse2
}

impl Routine {
    fn code(self) -> Keystream {
        match self {
            Self::Sse2 => alea_chacha20_sse2,
            Self::Avx2Shift => alea_chacha20_avx2_shift,
            Self::Avx2Shuffle => alea_chacha20_avx2_shuffle,
            Self::Avx512 => alea_chacha20_avx512,
        }
    }
}

/// Overwrites `out` with the keystream of `key` from block `counter` on, nonce zero.
#[inline]
pub fn keystream(key: &[u8; 32], counter: u32, out: &mut [[u8; GROUP]]) {
    if out.is_empty() {
        return;
    }
    let (key, groups, out) = (key.as_ptr(), out.len(), out.as_mut_ptr().cast::<u8>());
    // SAFETY: key and out are whole for the lengths the routine is told; `init` checked that the CPU
    // has the instructions; the routine restores the registers it uses.
    let done = unsafe { (routine().code())(key, counter, out, groups) };
    debug_assert_eq!(done, 1, "kernel memory does not fault");
}

/// As [`keystream`], by the routine that the vDSO's image has for this machine, which stands in the kernel's text. At boot
/// only: the routine leaves zeros in all vector registers, which later belong to the running task.
pub fn vdso_keystream(key: &[u8; 32], counter: u32, out: &mut [[u8; GROUP]]) {
    #[repr(align(64))]
    struct Scratch([u8; 64]);
    let mut scratch = Scratch([0; 64]);
    let place = if is_wide() { alea_vdso::routines::AVX2 } else { alea_vdso::routines::SSE2 };
    let (groups, to) = (out.len(), out.as_mut_ptr());
    if groups == 0 {
        return;
    }
    // SAFETY: the build script found the routine there, and the linker put the image among the code; key, out and
    // scratch are whole and live; it changes what a callee may change, and the vector registers, which the kernel's code
    // never uses.
    unsafe {
        core::arch::asm!(
            "call {routine}",
            routine = in(reg) alea_vdso::IMAGE.as_ptr().add(place),
            inout("rdi") key.as_ptr() => _, inout("esi") counter => _, inout("rdx") to => _,
            inout("rcx") groups => _, inout("r9") scratch.0.as_mut_ptr() => _,
            out("rax") _, out("r8") _, out("r10") _, out("r11") _,
        );
    }
}

/// As [`keystream`], for `groups` groups of user memory at `addr`. False if some of it is not there to be written, and
/// then any part of it may be overwritten: the routine does not wait for pages.
///
/// # Safety
/// `addr..addr + groups * GROUP` is below the user limit.
pub unsafe fn keystream_to_user(key: &[u8; 32], counter: u32, addr: u64, groups: usize) -> bool {
    if groups == 0 {
        return true;
    }
    // SAFETY: as in `keystream`; a fault on `addr` ends in `leave`.
    unsafe {
        alea_chacha20_user(key.as_ptr(), counter, addr as *mut u8, groups, routine().code()) == 1
    }
}

/// Where a routine goes on whose instruction at `rip` met a fault on user memory.
pub(in crate::arch) fn fixup(rip: u64) -> Option<u64> {
    // SAFETY: chacha20.s makes one pair for each of four routines, in read-only data.
    let ranges = unsafe { &alea_chacha20_ranges };
    let place = |distance| (ranges.as_ptr() as u64).wrapping_add_signed(i64::from(distance));
    let mut places = ranges.iter().map(|range| range.map(place));
    places.find(|[from, to]| (*from..*to).contains(&rip)).map(|[_, to]| to)
}
