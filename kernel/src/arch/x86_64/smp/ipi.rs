//! Interrupts from this CPU to another, by number.
//!
//! Owns which CPU has which APIC id: written while a CPU starts, read ever after. Must never wait. No locks.

use crate::arch::irq::apic;
use crate::base::percpu::MAX_CPUS;
use core::sync::atomic::{AtomicU32, Ordering};

/// The APIC id of each CPU. Relaxed throughout: written before the CPU is counted as online.
pub(super) static APIC_IDS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// The APIC id of a CPU that runs.
pub fn apic_id(cpu: usize) -> u32 {
    APIC_IDS[cpu].load(Ordering::Relaxed)
}

/// Sends an interrupt to another CPU that runs.
#[inline]
pub fn send(cpu: usize, vector: u8) {
    apic::send_ipi(apic_id(cpu), vector);
}

/// Sends an NMI to another CPU that runs.
pub fn send_nmi(cpu: usize) {
    apic::send_nmi(apic_id(cpu));
}
