//! How often the kernel did what leaves a virtual machine: each costs a microsecond or more under KVM, so
//! none of it belongs on a path that programs take often.
//!
//! Owns one counter per kind. Never decides anything: it only counts. Locks: none. Every place that does such a thing
//! calls [`count`] beside it.

use core::sync::atomic::{AtomicU64, Ordering};

/// What leaves the virtual machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// A port was read or written.
    Port,
    /// The local APIC's timer was programmed.
    Timer,
    /// Another access to the local APIC: end of interrupt, interrupts to other CPUs.
    Apic,
    /// CPUID.
    Cpuid,
    /// RDRAND or RDSEED: hypervisors may intercept them.
    Random,
    /// The CPU was halted.
    Halt,
    /// IA32_SPEC_CTRL was written.
    Predictors,
    /// A barrier for predictions.
    Barrier,
}

const KINDS: usize = 8;
const NAMES: [&str; KINDS] =
    ["port", "timer", "apic", "cpuid", "random", "halt", "predictors", "barrier"];
static COUNTS: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

/// One more. Relaxed: statistics.
#[inline]
pub fn count(kind: Exit) {
    COUNTS[kind as usize].fetch_add(1, Ordering::Relaxed);
}

/// All kinds with how often each happened since boot.
pub fn counts() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().zip(&COUNTS).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
}
