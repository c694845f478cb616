//! The debug registers: breakpoints and watchpoints of the running program.
//!
//! They hold a program's addresses only, from its way to user mode until another task runs, so the kernel never runs into a
//! breakpoint; what it reads and writes for the program may meet a watchpoint, which is counted for events and not told. Owns the
//! instructions, and these counts. Never holds a value that was not checked. Locks: none.

use crate::base::msr;
use crate::base::percpu::{self, MAX_CPUS};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many there are for addresses.
pub const PLACES: usize = 4;

/// DR7 with nothing enabled: bit 10 is always set.
const OFF: u64 = 1 << 10;
/// What a program may set in DR7: enables, exactness, lengths and kinds; neither general detection nor transactions.
const CONTROL: u64 = 0xffff_03ff;
/// DR6 with nothing in it.
const NO_STATUS: u64 = 0xffff_0ff0;
/// What of DR6 is a program's: the four places, and a single step.
const STATUS: u64 = 0x400f;

/// Why a value is no program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// What DR7 would have in it for a value that a program's tracer gives.
pub const fn control_of(value: u64) -> u64 {
    value & CONTROL
}

/// Checks one place as DR7 describes it: kinds are execution, write, and read or write; a length divides the address.
///
/// # Errors
/// [`Refused`] for any other.
pub fn check(place: usize, addr: u64, control: u64) -> Result<(), Refused> {
    let bits = control >> (16 + 4 * place);
    let length = match bits >> 2 & 3 {
        2 => 8,
        bits => bits + 1,
    };
    match bits & 3 {
        0 if length != 1 => Err(Refused),
        2 => Err(Refused),
        _ if !addr.is_multiple_of(length) => Err(Refused),
        _ => Ok(()),
    }
}

/// Whether DR7 enables a place.
pub const fn is_enabled(place: usize, control: u64) -> bool {
    control >> (2 * place) & 3 != 0
}

/// Whether a place is a breakpoint, which is met by execution.
pub const fn executes(place: usize, control: u64) -> bool {
    control >> (16 + 4 * place) & 3 == 0
}

/// Loads the running program's. Addresses are user space's, and `control` is [`control_of`] something.
pub fn load(addresses: &[u64; PLACES], control: u64) {
    let [a, b, c, d] = *addresses;
    // SAFETY: the kernel uses no debug registers of its own; bits that could trap here are masked out, and user addresses
    // are executed in user mode only.
    unsafe {
        asm!("mov dr0, {}", in(reg) a, options(nomem, nostack, preserves_flags));
        asm!("mov dr1, {}", in(reg) b, options(nomem, nostack, preserves_flags));
        asm!("mov dr2, {}", in(reg) c, options(nomem, nostack, preserves_flags));
        asm!("mov dr3, {}", in(reg) d, options(nomem, nostack, preserves_flags));
        asm!("mov dr7, {}", in(reg) control_of(control) | OFF, options(nomem, nostack, preserves_flags));
    }
}

/// Another task is to run: none of the breakpoints is its own.
pub fn disable() {
    // SAFETY: as in `load`.
    unsafe { asm!("mov dr7, {}", in(reg) OFF, options(nomem, nostack, preserves_flags)) };
}

/// DEBUGCTL's bit by which a single step ends at the next branch that is taken, in place of the next instruction.
const STEP_BLOCKS: u64 = 1 << 1;

/// Whether the running program's next single step ends at a branch. A step that has ended has switched it off; QEMU's TCG
/// has no such bit, and steps by instructions.
pub fn step_blocks(on: bool) {
    let value = if on { STEP_BLOCKS } else { 0 };
    // SAFETY: every CPU of this architecture has the register, and the kernel uses no other bit of it.
    unsafe { msr::write(msr::DEBUGCTL, value) };
}

/// What the kernel has met of the breakpoints that are loaded on a CPU, and where last. Relaxed: the CPU's own.
struct Met {
    places: [AtomicU32; PLACES],
    ip: AtomicU64,
}

static MET: [Met; MAX_CPUS] =
    [const { Met { places: [const { AtomicU32::new(0) }; PLACES], ip: AtomicU64::new(0) } };
        MAX_CPUS];

/// Notes that the kernel, at `ip`, has met what `status` tells of, and has the running program look at its breakpoints before it goes on.
/// Called in the middle of anything.
pub(in crate::arch) fn note_met(status: u64, ip: u64) {
    let met = &MET[percpu::cpu_id()];
    for (at, number) in met.places.iter().enumerate() {
        if status >> at & 1 != 0 {
            number.fetch_add(1, Ordering::Relaxed);
            met.ip.store(ip, Ordering::Relaxed);
            percpu::work().fetch_or(percpu::WORK_DEBUG, Ordering::Relaxed);
        }
    }
}

/// How often the kernel has met what a place of this CPU has in it since this was asked last, and where last. Interrupts are off.
pub fn take_met(place: usize) -> (u32, u64) {
    let met = &MET[percpu::cpu_id()];
    let number = met.places[place].swap(0, Ordering::Relaxed);
    (number, met.ip.load(Ordering::Relaxed))
}

/// What the last debug exception was, and forgets it.
pub(in crate::arch) fn take_status() -> u64 {
    let status: u64;
    // SAFETY: as in `load`.
    unsafe {
        asm!("mov {}, dr6", out(reg) status, options(nomem, nostack, preserves_flags));
        asm!("mov dr6, {}", in(reg) NO_STATUS, options(nomem, nostack, preserves_flags));
    }
    status & STATUS
}
