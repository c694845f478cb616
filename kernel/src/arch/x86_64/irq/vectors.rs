//! The numbers of the interrupt vectors: the one list. No locks, no state.

/// Device line `n` arrives at this vector plus `n`.
pub const FIRST_LINE_VECTOR: u8 = 0x30;

/// The number of device lines.
pub const LINES: usize = 64;

pub const TIMER_VECTOR: u8 = 0xec;

/// Interrupts between CPUs.
pub const RESCHEDULE_VECTOR: u8 = 0xfb;

pub const CALL_VECTOR: u8 = 0xfc;

pub const APIC_ERROR_VECTOR: u8 = 0xfe;

pub const SPURIOUS_VECTOR: u8 = 0xff;
