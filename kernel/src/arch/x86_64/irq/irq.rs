//! Interrupt vectors and who handles them.
//!
//! Owns the vector numbers, the handlers of device lines and the counts. Handlers run with
//! interrupts off on whatever kernel stack was in use; they must be short, never block and never
//! touch user memory. Locks: none; a handler's slot is written once.

use super::vectors::{
    APIC_ERROR_VECTOR, CALL_VECTOR, FIRST_LINE_VECTOR, LINES, RESCHEDULE_VECTOR, SPURIOUS_VECTOR,
    TIMER_VECTOR,
};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{apic, ioapic};
use crate::base::{percpu, tsc};
use crate::machine::acpi;
use crate::sync::Once;

const SHARERS: usize = 4;

/// Who decides when an interrupt comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A program can cause it, and then knows when: a timer, another CPU, a device that has taken what a program gave it.
    Program,
    /// A device to which something came from outside.
    Outside,
}

type Slot = Once<fn()>;
/// Acts on an interrupt of a device, and says what it was.
pub type Handler = fn() -> Origin;
/// Sees every interrupt: its vector, its time, and who decided that.
pub type Observer = fn(vector: u8, tsc: u64, origin: Origin);

static HANDLERS: [[Once<Handler>; SHARERS]; LINES] =
    [const { [const { Once::new() }; SHARERS] }; LINES];
static TIMER: Once<fn(bool)> = Once::new();
static RESCHEDULE: Slot = Once::new();
static CALL: Slot = Once::new();
static OBSERVER: Once<Observer> = Once::new();

crate::per_cpu! {
    /// Interrupts taken by this CPU, by vector.
    static COUNTS: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];
    static INTERRUPTED: Cell<Interrupted> = Cell::new(Interrupted { ip: 0, bp: 0, from_user: false });
}

/// Where an interrupt came: the program counter, the frame pointer, and whether in user mode.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted {
    pub ip: u64,
    pub bp: u64,
    pub from_user: bool,
}

/// Where the interrupt that is being handled on this CPU came.
pub fn interrupted() -> Interrupted {
    INTERRUPTED.get()
}

/// The line has no free handler slot, or no interrupt controller has the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchLine;

/// Prepares the controllers of the boot CPU; interrupts may be switched on afterwards.
pub fn init() {
    apic::init();
    ioapic::init();
    let apics = acpi::get().map_or(0, |acpi| acpi.local_apics.len());
    log::info!(
        "local APIC {} ({}), {apics} CPUs listed",
        apic::id(),
        if apic::is_x2apic() { "x2APIC" } else { "xAPIC" },
    );
}

/// Adds a handler to a device line (an ISA number, or a global number from 16 on) and unmasks it.
/// Lines of PCI devices may have several handlers.
pub fn register(line: u32, handler: Handler) -> Result<(), NoSuchLine> {
    let slots = HANDLERS.get(line as usize).ok_or(NoSuchLine)?;
    let mut taken = false;
    for slot in slots {
        slot.call_once(|| {
            taken = true;
            handler
        });
        if taken {
            break;
        }
    }
    if taken && ioapic::enable(line, FIRST_LINE_VECTOR + line as u8) {
        Ok(())
    } else {
        Err(NoSuchLine)
    }
}

/// Sets what the local timer's interrupt runs (the time floor); it is told whether it interrupted user mode.
pub fn set_timer(handler: fn(bool)) {
    TIMER.call_once(|| handler);
}

/// Sets what the reschedule interrupt runs (the scheduler).
pub fn set_reschedule(handler: fn()) {
    RESCHEDULE.call_once(|| handler);
}

/// Sets what the call interrupt runs (TLB shootdown).
pub fn set_call(handler: fn()) {
    CALL.call_once(|| handler);
}

/// Sets what sees the vector and the time of every interrupt (the entropy pool).
pub fn set_observer(observer: Observer) {
    OBSERVER.call_once(|| observer);
}

/// How often a CPU took an interrupt of a vector.
pub fn count(cpu: usize, vector: u8) -> u32 {
    // Relaxed: a statistic.
    COUNTS.of(cpu).map_or(0, |counts| counts[usize::from(vector)].load(Ordering::Relaxed))
}

/// How many interrupts all CPUs took.
pub fn total() -> u64 {
    let of_cpu = |counts: &'static [AtomicU32; 256]| {
        // Relaxed: a statistic.
        counts.iter().map(|n| u64::from(n.load(Ordering::Relaxed))).sum::<u64>()
    };
    (0..percpu::cpus_online()).filter_map(|cpu| COUNTS.of(cpu)).map(of_cpu).sum()
}

/// An interrupt arrived; interrupts are off.
pub(in crate::arch) fn dispatch(vector: u8, at: Interrupted) {
    percpu::irq_enter();
    INTERRUPTED.set(at);
    // Relaxed: only this CPU writes its counts, and not from within another interrupt.
    COUNTS.with(|counts| {
        let count = &counts[usize::from(vector)];
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    });
    let mut origin = Origin::Program;
    match vector {
        TIMER_VECTOR => {
            apic::eoi();
            if let Some(handler) = TIMER.get() {
                handler(at.from_user);
            }
        }
        RESCHEDULE_VECTOR => {
            apic::eoi();
            run(&RESCHEDULE);
        }
        CALL_VECTOR => {
            apic::eoi();
            run(&CALL);
        }
        // Spurious ones want no end-of-interrupt.
        SPURIOUS_VECTOR | 0x20..FIRST_LINE_VECTOR => {}
        APIC_ERROR_VECTOR => apic::eoi(),
        _ => {
            let line = usize::from(vector.wrapping_sub(FIRST_LINE_VECTOR));
            for handler in HANDLERS.get(line).into_iter().flatten().filter_map(Once::get) {
                // One of those who share the line is enough.
                if handler() == Origin::Outside {
                    origin = Origin::Outside;
                }
            }
            apic::eoi();
        }
    }
    if let Some(observer) = OBSERVER.get() {
        observer(vector, tsc::read(), origin);
    }
    percpu::irq_exit();
}

fn run(slot: &Slot) {
    if let Some(handler) = slot.get() {
        handler();
    }
}
