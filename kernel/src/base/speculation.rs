//! What this CPU says of its flaws of speculative execution, and what the kernel does against them: asks, and writes the registers of
//! its predictors.
//!
//! Owns what was decided at boot; reads CPUID and two registers when asked. Never decides: `alea-speculation` does, from these facts.
//! Locks: none.

use super::exits::{self, Exit};
use super::{cpu, msr, percpu};
use alea_speculation::predictors::Kernel;
use alea_speculation::{Asked, Choice, Done, Facts};
use core::arch::asm;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use spin::Once;

/// `index` if it is below `len`, else 0: also where a CPU runs ahead past a comparison that would have refused it. For a table that a
/// program indexes, after the check that it answers by.
#[inline]
pub fn clamp(index: usize, len: usize) -> usize {
    let mask: usize;
    // No branch and no `cmov`, which a later compiler may make one of: all ones from the borrow of index - len, else zero.
    // SAFETY: arithmetic in registers.
    unsafe {
        asm!("cmp {index}, {len}", "sbb {mask}, {mask}", index = in(reg) index, len = in(reg) len,
            mask = lateout(reg) mask, options(pure, nomem, nostack));
    }
    index & mask
}

/// The facts of the calling CPU; all are taken to be alike.
pub fn facts() -> Facts {
    const CAPABILITIES: u32 = 0x10a;
    const MICROCODE_OPTIONS: u32 = 0x123;
    let [_, vendor @ ..] = cpu::cpuid(0, 0);
    let [signature, _, leaf_1_ecx, _] = cpu::cpuid(1, 0);
    let [parts, leaf_7_ebx, _, leaf_7_edx] = cpu::cpuid(7, 0);
    let leaf_7_2_edx = if parts >= 2 { cpu::cpuid(7, 2)[3] } else { 0 };
    let [_, leaf_8000_0008_ebx, ..] = cpu::cpuid(0x8000_0008, 0);
    let [leaf_8000_0021_eax, _, leaf_8000_0021_ecx, _] = cpu::cpuid(0x8000_0021, 0);
    let threads_of_core = cpu::cpuid(0xb, 0)[1] & 0xffff;
    let mut facts = Facts {
        vendor,
        signature,
        leaf_1_ecx,
        leaf_7_ebx,
        leaf_7_edx,
        leaf_7_2_edx,
        leaf_8000_0008_ebx,
        leaf_8000_0021_eax,
        leaf_8000_0021_ecx,
        siblings: threads_of_core > 1 && percpu::cpus_online() > 1,
        threads: threads_of_core > 1,
        ..Facts::default()
    };
    // Relaxed: set before the first question.
    let pretends = PRETENDS.load(Ordering::Relaxed);
    if pretends != 0 {
        // IBRS with IBPB, STIBP, SSBD.
        facts.leaf_7_edx |= 1 << 26 | 1 << 27 | 1 << 31;
    }
    if facts.has_capabilities() {
        // SAFETY: CPUID announces the register.
        facts.capabilities = unsafe { msr::read(CAPABILITIES) };
    }
    if pretends == HELD {
        const IBRS_ALL: u64 = 1 << 1;
        facts.capabilities |= IBRS_ALL;
    }
    if facts.has_microcode_options() {
        // SAFETY: CPUID or the register above announces it.
        facts.microcode_options = unsafe { msr::read(MICROCODE_OPTIONS) };
    }
    facts
}

/// For tests: an emulator ignores the registers that it does not have.
static PRETENDS: AtomicU8 = AtomicU8::new(0);
const SWITCHED: u8 = 1;
const HELD: u8 = 2;

/// For tests: the CPU is taken for one with all of what a predictor may be told, with IBRS that is `held` or without.
pub fn pretend(held: bool) {
    // Relaxed: see `facts`.
    PRETENDS.store(if held { HELD } else { SWITCHED }, Ordering::Relaxed);
}

static DONE: Once<Done> = Once::new();

/// Whether a switch between tasks has anything to do here.
static GUARDS: AtomicBool = AtomicBool::new(false);
/// The bits of IA32_SPEC_CTRL that are none of ours, as they were found.
static FOUND: AtomicU64 = AtomicU64::new(0);

crate::per_cpu! {
    /// What IA32_SPEC_CTRL is on this CPU.
    static REGISTER: Cell<u64> = Cell::new(0);
    /// The last address space with a program that this CPU ran, and what the task had chosen.
    static LAST: Cell<(u64, Choice)> = Cell::new((0, Choice(0)));
}

/// Decides what is done; once, before any other CPU runs.
pub fn choose(asked: &Asked<'_>) {
    // IBRS, STIBP, SSBD, RRSBA_DIS_S, BHI_DIS_S
    const OURS: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 10;
    let done = DONE.call_once(|| Done::choose(&facts(), asked));
    cpu::clear_when_idle(done.clears_when_idle);
    let predictors = &done.predictors;
    // Relaxed, here and below: before other CPUs run.
    GUARDS.store(predictors.changes_with_tasks() || predictors.may_part(), Ordering::Relaxed);
    if predictors.has_register {
        // SAFETY: CPUID announces the register.
        FOUND.store(unsafe { msr::read(msr::SPEC_CTRL) } & !OURS, Ordering::Relaxed);
    }
    init_cpu();
}

/// Switches on, on the calling CPU, what holds for good.
pub fn init_cpu() {
    const AUTOMATIC_IBRS: u64 = 1 << 21;
    let predictors = done().predictors;
    if predictors.has_register {
        write_register(predictors.base | FOUND.load(Ordering::Relaxed));
    }
    if predictors.kernel == Kernel::Automatic {
        // SAFETY: CPUID announces the bit.
        unsafe { msr::write(msr::EFER, msr::read(msr::EFER) | AUTOMATIC_IBRS) };
    }
}

fn write_register(value: u64) {
    exits::count(Exit::Predictors);
    REGISTER.set(value);
    // SAFETY: `has_register` says that it is there; its bits change nothing but how the CPU guesses.
    unsafe { msr::write(msr::SPEC_CTRL, value) };
}

/// What was predicted before has no say in what comes.
pub fn barrier() {
    const IBPB: u64 = 1;
    exits::count(Exit::Barrier);
    // SAFETY: CPUID announces the barrier, or `parts` would not ask for one.
    unsafe { msr::write(msr::PRED_CMD, IBPB) };
}

/// Whether [`enter`] has anything to do here.
#[inline]
pub fn guards() -> bool {
    // Relaxed: see `choose`.
    GUARDS.load(Ordering::Relaxed)
}

/// A task runs from now on that has chosen so, in the address space of this number, or in none. Interrupts are off. Nothing is
/// written that is so already.
#[cold]
pub fn enter(space: Option<u64>, choice: Choice) {
    let predictors = done().predictors;
    if let Some(space) = space {
        let (last, theirs) = LAST.get();
        if last != space && predictors.parts(theirs, choice) {
            barrier();
        }
        LAST.set((space, choice));
    }
    let value = predictors.value(choice) | FOUND.load(Ordering::Relaxed);
    if predictors.has_register && value != REGISTER.get() {
        write_register(value);
    }
}

/// What is done against the flaws.
pub fn done() -> Done {
    DONE.get().copied().unwrap_or_default()
}
