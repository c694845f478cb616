//! The local APIC: end of interrupt, its one-shot timer, interrupts between CPUs.
//!
//! Owns the choice between x2APIC (MSRs) and xAPIC (memory) and between TSC-deadline and counting
//! mode, made once by `init`. Never reaches another CPU's registers. Locks: none.

use super::vectors;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::base::exits::{self, Exit};
use crate::base::kmap::{self, Cache};
use crate::base::{cpu, msr, tsc};

const ID: u32 = 0x2;
const TASK_PRIORITY: u32 = 0x8;
const EOI: u32 = 0xb;
const SPURIOUS: u32 = 0xf;
const COMMAND: u32 = 0x30;
const COMMAND_HIGH: u32 = 0x31;
const LVT_TIMER: u32 = 0x32;
const LVT_LINT0: u32 = 0x35;
const LVT_LINT1: u32 = 0x36;
const LVT_ERROR: u32 = 0x37;
const INITIAL_COUNT: u32 = 0x38;
const CURRENT_COUNT: u32 = 0x39;
const DIVIDE: u32 = 0x3e;

/// Bits of the base MSR.
const ENABLE: u64 = 1 << 11;
const X2: u64 = 1 << 10;

const MASKED: u32 = 1 << 16;
const MODE_DEADLINE: u32 = 2 << 17;
const DIVIDE_BY_1: u32 = 0b1011;

/// The xAPIC's registers, or zero with x2APIC.
static MEMORY: AtomicU64 = AtomicU64::new(0);
static DEADLINE: AtomicBool = AtomicBool::new(false);
/// Timer ticks per TSC tick, 32.32 fixed point; zero before `set_timer_ratio`.
static RATIO: AtomicU64 = AtomicU64::new(0);

fn read(register: u32) -> u32 {
    // Relaxed: written once by `init`.
    match MEMORY.load(Ordering::Relaxed) {
        // SAFETY: x2APIC mode is on when there is no memory base; the register exists in it.
        0 => unsafe { msr::read(msr::X2APIC_BASE + register) as u32 },
        // SAFETY: the page was mapped by `init`; registers are 16 bytes apart.
        base => unsafe { ((base + u64::from(register) * 16) as *const u32).read_volatile() },
    }
}

#[inline]
fn write(register: u32, value: u32) {
    exits::count(if register == INITIAL_COUNT { Exit::Timer } else { Exit::Apic });
    // Relaxed: written once by `init`.
    match MEMORY.load(Ordering::Relaxed) {
        // SAFETY: as in `read`; no value written by this file breaks memory safety.
        0 => unsafe { msr::write(msr::X2APIC_BASE + register, u64::from(value)) },
        // SAFETY: as in `read`.
        base => unsafe { ((base + u64::from(register) * 16) as *mut u32).write_volatile(value) },
    }
}

/// x2APIC only where it pays or the firmware chose it: under KVM an MSR is much cheaper than a trapped
/// memory access. QEMU's TCG cannot serve the timer's MSRs with `-icount`.
fn wants_x2apic(base: u64) -> bool {
    cpu::features().x2apic && (base & X2 != 0 || cpu::on_kvm())
}

/// True when the APIC is reached through MSRs.
pub fn is_x2apic() -> bool {
    // Relaxed: written once by `init`.
    MEMORY.load(Ordering::Relaxed) == 0
}

/// Chooses how the APICs are reached, and switches the boot CPU's on.
pub(super) fn init() {
    // SAFETY: every x86_64 CPU has the MSR.
    let base = unsafe { msr::read(msr::APIC_BASE) };
    if !wants_x2apic(base) {
        let phys = base & 0x000f_ffff_ffff_f000;
        let Some(at) = kmap::map(phys, 4096, Cache::Uncached) else {
            panic!("no room to map the local APIC")
        };
        // Relaxed: as in `read`; other CPUs start later.
        MEMORY.store(at, Ordering::Relaxed);
    }
    init_cpu();
}

/// Switches the calling CPU's APIC on, with its timer stopped.
pub(in crate::arch) fn init_cpu() {
    let mode = if is_x2apic() { ENABLE | X2 } else { ENABLE };
    // SAFETY: every x86_64 CPU has the MSR; x2APIC is set only when CPUID announces it.
    unsafe { msr::write(msr::APIC_BASE, msr::read(msr::APIC_BASE) | mode) };
    write(TASK_PRIORITY, 0);
    write(LVT_LINT0, MASKED);
    write(LVT_LINT1, 4 << 8); // NMI
    write(LVT_ERROR, u32::from(vectors::APIC_ERROR_VECTOR));
    write(SPURIOUS, 1 << 8 | u32::from(vectors::SPURIOUS_VECTOR));
    write(DIVIDE, DIVIDE_BY_1);
    write(INITIAL_COUNT, 0);
    // Relaxed: written before anything arms the timer.
    DEADLINE.store(cpu::features().tsc_deadline, Ordering::Relaxed);
    let mode = if cpu::features().tsc_deadline { MODE_DEADLINE } else { 0 };
    write(LVT_TIMER, u32::from(vectors::TIMER_VECTOR) | mode);
}

/// The interrupt being handled is done.
#[inline]
pub(super) fn eoi() {
    write(EOI, 0);
}

/// The calling CPU's APIC id.
pub fn id() -> u32 {
    // Relaxed: written once by `init`.
    if MEMORY.load(Ordering::Relaxed) == 0 { read(ID) } else { read(ID) >> 24 }
}

/// True when the timer counts down instead of comparing with the TSC, and so needs its ratio.
pub(in crate::arch) fn timer_needs_ratio() -> bool {
    // Relaxed: written once by `init`.
    !DEADLINE.load(Ordering::Relaxed)
}

/// Starts a free countdown for calibration, without an interrupt.
pub(in crate::arch) fn start_countdown() {
    write(LVT_TIMER, u32::from(vectors::TIMER_VECTOR) | MASKED);
    write(INITIAL_COUNT, u32::MAX);
}

/// Ends the countdown: the ticks that have passed.
pub(in crate::arch) fn end_countdown() -> u32 {
    let left = read(CURRENT_COUNT);
    write(INITIAL_COUNT, 0);
    write(LVT_TIMER, u32::from(vectors::TIMER_VECTOR));
    u32::MAX - left
}

/// Sets how many timer ticks pass in a TSC tick (32.32 fixed point).
pub(in crate::arch) fn set_timer_ratio(ratio: u64) {
    // Relaxed: written once, before the timer is armed.
    RATIO.store(ratio, Ordering::Relaxed);
}

/// Arms the one-shot timer for a TSC value; it may fire early when that is far away, and fires at
/// once when it has passed.
#[inline]
pub fn timer_arm(deadline: u64) {
    // Relaxed: both written once at boot.
    if DEADLINE.load(Ordering::Relaxed) {
        exits::count(Exit::Timer);
        // SAFETY: the MSR exists with this feature. Zero would disarm.
        unsafe { msr::write(msr::TSC_DEADLINE, deadline.max(1)) };
        return;
    }
    let ahead = deadline.saturating_sub(tsc::read());
    let ticks = (u128::from(ahead) * u128::from(RATIO.load(Ordering::Relaxed))) >> 32;
    let count = u32::try_from(ticks).unwrap_or(u32::MAX).max(1);
    write(INITIAL_COUNT, count);
}

/// Sends an interrupt to the CPU with this APIC id.
pub(in crate::arch) fn send_ipi(apic_id: u32, vector: u8) {
    send(apic_id, u32::from(vector));
}

/// Sends an NMI to the CPU with this APIC id.
pub(in crate::arch) fn send_nmi(apic_id: u32) {
    send(apic_id, 4 << 8);
}

/// Sends INIT, the first step of starting a CPU.
pub(in crate::arch) fn send_init(apic_id: u32) {
    send(apic_id, 5 << 8 | 1 << 14);
}

/// Sends STARTUP: the CPU begins in real mode at `page * 4096`.
pub(in crate::arch) fn send_startup(apic_id: u32, page: u8) {
    send(apic_id, 6 << 8 | 1 << 14 | u32::from(page));
}

fn send(apic_id: u32, command: u32) {
    // Relaxed: written once by `init`.
    if MEMORY.load(Ordering::Relaxed) == 0 {
        let value = u64::from(apic_id) << 32 | u64::from(command);
        // SAFETY: an interrupt command breaks no memory; the vectors all have entries.
        unsafe { msr::write(msr::X2APIC_BASE + COMMAND, value) };
        return;
    }
    cpu::without_interrupts(|| {
        write(COMMAND_HIGH, apic_id << 24);
        write(COMMAND, command);
        while read(COMMAND) & 1 << 12 != 0 {
            cpu::relax();
        }
    });
}
