//! What this CPU can do, interrupt-flag control and single instructions.
//!
//! Owns the feature record, filled once by `init` before any other CPU runs.
//!
//! Never changes it afterwards: other CPUs are taken to have the boot CPU's features. Locks: none.

use super::exits::{self, Exit};
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicBool, Ordering};

use super::msr;

/// The CPU features that the kernel acts upon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    pub nx: bool,
    pub pages_1g: bool,
    pub smep: bool,
    pub smap: bool,
    pub umip: bool,
    pub fsgsbase: bool,
    pub xsave: bool,
    pub xsaveopt: bool,
    pub rdrand: bool,
    pub rdseed: bool,
    pub erms: bool,
    pub x2apic: bool,
    pub tsc_deadline: bool,
    pub hypervisor: bool,
}

struct FeatureCell(core::cell::UnsafeCell<Features>);
// SAFETY: written once by `init` on the boot CPU before interrupts or other CPUs exist.
unsafe impl Sync for FeatureCell {}

static FEATURES: FeatureCell = FeatureCell(core::cell::UnsafeCell::new(NONE));
const NONE: Features = Features {
    nx: false,
    pages_1g: false,
    smep: false,
    smap: false,
    umip: false,
    fsgsbase: false,
    xsave: false,
    xsaveopt: false,
    rdrand: false,
    rdseed: false,
    erms: false,
    x2apic: false,
    tsc_deadline: false,
    hypervisor: false,
};

/// Read by the user-copy and page assembly: nonzero selects `rep movsb`.
#[unsafe(no_mangle)]
static ALEA_USE_ERMS: AtomicBool = AtomicBool::new(false);

/// The features of the boot CPU.
#[inline]
pub fn features() -> &'static Features {
    // SAFETY: see `FeatureCell`.
    unsafe { &*FEATURES.0.get() }
}

/// True when byte-wise string instructions are fast on this CPU.
#[inline]
pub fn fast_strings() -> bool {
    // Relaxed: written once at boot, before anything reads it.
    ALEA_USE_ERMS.load(Ordering::Relaxed)
}

/// One CPUID leaf: eax, ebx, ecx, edx. Leaves beyond the highest read as zeros.
pub fn cpuid(leaf: u32, sub_leaf: u32) -> [u32; 4] {
    exits::count(Exit::Cpuid);
    let base = leaf & 0xc000_0000;
    if base != 0x4000_0000 && leaf > __cpuid_count(base, 0).eax {
        return [0; 4];
    }
    let result = __cpuid_count(leaf, sub_leaf);
    [result.eax, result.ebx, result.ecx, result.edx]
}

/// True under KVM.
pub fn on_kvm() -> bool {
    // "KVMKVMKVM" in ebx, ecx, edx.
    features().hypervisor && cpuid(0x4000_0000, 0)[1..] == [0x4b4d_564b, 0x564b_4d56, 0x0000_004d]
}

/// Detects the features and switches on what they allow. Called once, first of all.
pub fn init() {
    let bit = |word: u32, bit: u32| word >> bit & 1 != 0;
    let [_, _, leaf1c, _] = cpuid(1, 0);
    let [_, leaf7b, leaf7c, _leaf7d] = cpuid(7, 0);
    let [_, _, _, ext_d] = cpuid(0x8000_0001, 0);
    let xsave = bit(leaf1c, 26);
    let found = Features {
        nx: bit(ext_d, 20),
        pages_1g: bit(ext_d, 26),
        smep: bit(leaf7b, 7),
        smap: bit(leaf7b, 20),
        umip: bit(leaf7c, 2),
        fsgsbase: bit(leaf7b, 0),
        xsave,
        xsaveopt: xsave && bit(cpuid(0xd, 1)[0], 0),
        rdrand: bit(leaf1c, 30),
        rdseed: bit(leaf7b, 18),
        erms: bit(leaf7b, 9),
        x2apic: bit(leaf1c, 21),
        tsc_deadline: bit(leaf1c, 24),
        hypervisor: bit(leaf1c, 31),
    };
    // SAFETY: see `FeatureCell`; this is the one write.
    unsafe { *FEATURES.0.get() = found };
    // Relaxed: nothing reads it before this returns.
    ALEA_USE_ERMS.store(found.erms, Ordering::Relaxed);
    enable(&found);
}

/// Sets the control registers of the calling CPU to what its features allow.
pub fn enable(found: &Features) {
    const WP: u64 = 1 << 16;
    const MP: u64 = 1 << 1;
    const NE: u64 = 1 << 5;
    const EM_TS: u64 = 1 << 2 | 1 << 3;
    // PAE, MCE (every x86_64 CPU has it), PGE, OSFXSR, OSXMMEXCPT
    let mut cr4: u64 = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 9 | 1 << 10;
    for (have, at) in [
        (found.umip, 11),
        (found.fsgsbase, 16),
        (found.xsave, 18),
        (found.smep, 20),
        (found.smap, 21),
    ] {
        if have {
            cr4 |= 1 << at;
        }
    }
    let efer = 1 | u64::from(found.nx) << 11; // SCE, NXE; LME and LMA stay
    // SAFETY: every bit is announced by CPUID; none changes how mapped memory is addressed.
    unsafe {
        msr::write(msr::EFER, msr::read(msr::EFER) | efer);
        let mut cr0: u64;
        asm!("mov {}, cr0", out(reg) cr0, options(nomem, nostack, preserves_flags));
        cr0 = (cr0 | WP | MP | NE) & !EM_TS;
        asm!("mov cr0, {}", in(reg) cr0, options(nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4, options(nostack, preserves_flags));
    }
}

/// True when maskable interrupts are on.
#[inline]
pub fn interrupts_enabled() -> bool {
    flags() & 1 << 9 != 0
}

/// The RFLAGS register.
#[inline]
pub fn flags() -> u64 {
    let flags: u64;
    // SAFETY: pushes and pops one word.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) };
    flags
}

/// Switches interrupts off.
#[inline]
pub fn irq_disable() {
    // SAFETY: masking interrupts breaks no invariant; it also is a compiler barrier.
    unsafe { asm!("cli", options(nostack)) };
}

/// Switches interrupts on.
#[inline]
pub fn irq_enable() {
    // SAFETY: the IDT is loaded before any caller exists.
    unsafe { asm!("sti", options(nostack)) };
}

/// Runs `f` with interrupts off; they are afterwards as they were. What `f` locks is unlocked before.
#[inline]
pub fn without_interrupts<R>(f: impl FnOnce() -> R) -> R {
    let on = interrupts_enabled();
    irq_disable();
    let result = f();
    if on {
        irq_enable();
    }
    result
}

/// Whether a CPU that halts clears its buffers first: the other thread of its core gets what it does not use.
static CLEARS_WHEN_IDLE: AtomicBool = AtomicBool::new(false);

/// From now on a CPU that halts clears its buffers, or does not.
pub fn clear_when_idle(clears: bool) {
    // Relaxed: said before other CPUs run.
    CLEARS_WHEN_IDLE.store(clears, Ordering::Relaxed);
}

/// Waits for an interrupt with interrupts on; returns with interrupts on.
#[inline]
pub fn wait_for_interrupt() {
    exits::count(Exit::Halt);
    // Relaxed: see `clear_when_idle`.
    if CLEARS_WHEN_IDLE.load(Ordering::Relaxed) {
        // A segment that may be written to, as on the way to user mode: see `alea_verw_selector`.
        // SAFETY: changes the zero flag, and the CPU's buffers.
        unsafe { asm!("verw word ptr [rip + alea_verw_selector]", options(nostack)) };
    }
    // SAFETY: `sti` takes effect after the next instruction, so no wake-up is lost in between.
    unsafe { asm!("sti", "hlt", options(nostack)) };
}

/// Stops this CPU for good.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: nothing runs after this; an NMI only makes the loop turn.
        unsafe { asm!("cli", "hlt", options(nostack)) };
    }
}

/// Whether RDTSC and RDTSCP are faults in user mode on this CPU (CR4.TSD). Interrupts are off: other bits of CR4 change meanwhile.
pub fn forbid_tsc(is_forbidden: bool) {
    const TSD: u64 = 1 << 2;
    let set = if is_forbidden { TSD } else { 0 };
    // SAFETY: the bit means nothing for the kernel, and the others stay.
    unsafe {
        let cr4: u64;
        asm!("mov {}, cr4", out(reg) cr4, options(nomem, nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4 & !TSD | set, options(nomem, nostack, preserves_flags));
    }
}

/// CR0, CR2, CR3 and CR4, for the panic text.
pub fn control_registers() -> [u64; 4] {
    let (cr0, cr2, cr3, cr4): (u64, u64, u64, u64);
    // SAFETY: reading has no effect.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr2", "mov {}, cr3", "mov {}, cr4",
            out(reg) cr0, out(reg) cr2, out(reg) cr3, out(reg) cr4,
            options(nomem, nostack, preserves_flags));
    }
    [cr0, cr2, cr3, cr4]
}

/// A pause hint for spin loops.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
}

/// One try of RDRAND: the value, or nothing when the carry flag is clear.
#[inline]
pub fn rdrand64() -> Option<u64> {
    if !features().rdrand {
        return None;
    }
    exits::count(Exit::Random);
    // SAFETY: CPUID announces the instruction.
    unsafe { rdrand() }
}

/// One try of RDRAND, before it is known what the CPU can do.
///
/// # Safety
/// CPUID announces the instruction.
#[inline(always)]
pub unsafe fn rdrand() -> Option<u64> {
    let (value, ok): (u64, u8);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rdrand {0}", "setc {1}", out(reg) value, out(reg_byte) ok, options(nomem, nostack))
    };
    (ok != 0).then_some(value)
}

/// One try of RDSEED: the value, or nothing when the carry flag is clear.
#[inline]
pub fn rdseed64() -> Option<u64> {
    if !features().rdseed {
        return None;
    }
    exits::count(Exit::Random);
    let (value, ok): (u64, u8);
    // SAFETY: CPUID announces the instruction.
    unsafe {
        asm!("rdseed {0}", "setc {1}", out(reg) value, out(reg_byte) ok, options(nomem, nostack))
    };
    (ok != 0).then_some(value)
}
