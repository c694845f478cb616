//! Interrupts: the vectors, who handles them, and the controllers (`apic`, `ioapic`) that bring them.

pub mod apic;
mod ioapic;
mod irq;
mod vectors;

pub(super) use irq::dispatch;
pub use irq::{
    Interrupted, Origin, count, init, interrupted, register, set_call, set_observer,
    set_reschedule, set_timer, total,
};
pub use vectors::{
    APIC_ERROR_VECTOR, CALL_VECTOR, FIRST_LINE_VECTOR, LINES, RESCHEDULE_VECTOR, SPURIOUS_VECTOR,
    TIMER_VECTOR,
};
