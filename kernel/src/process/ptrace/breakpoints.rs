//! A task's breakpoints and watchpoints in debug registers, whether its steps end at branches, and whether it may read the time-stamp
//! counter.
//!
//! Owns the values that its tracer has set, or the task by prctl(2). They are in the CPU while the task runs in user mode, and are taken out when
//! another one is switched to. Atomics: written by the tracer while the task stands, or by the task itself, and read by the
//! task when it goes on, which the lock of the stop orders; so all are Relaxed. Locks: none; who takes places of the
//! four holds what [`perf::Slots`] stand for.

use crate::arch::entry::frame::{FLAG_RF, TrapFrame};
use crate::arch::task::debug::{self, PLACES};
use crate::base::cpu;
use crate::base::page::USER_END;
use crate::process::perf;
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use crate::process::task::work;
use abi::signal::code;
use abi::{Errno, Result};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The indices of DR6 and DR7.
const STATUS: usize = 6;
const CONTROL: usize = 7;

/// Bits that DR7 does not have: the next step ends at a branch; the task has events of breakpoints, which share its registers; it may not
/// read the time-stamp counter.
const BLOCKS: u64 = 1 << 63;
const EVENTS: u64 = 1 << 62;
const NO_TSC: u64 = 1 << 61;
const OTHERS: u64 = BLOCKS | EVENTS | NO_TSC;

pub(in crate::process) struct Breakpoints {
    addresses: [AtomicU64; PLACES],
    /// What the last debug exception was, as DR6 has it.
    status: AtomicU64,
    /// DR7 and [`OTHERS`]; zero while there is nothing of all this.
    control: AtomicU64,
    /// A bit for each place that the tracer has set, which no event can have any more.
    taken: AtomicU8,
}

impl Breakpoints {
    pub(super) const fn new() -> Self {
        Self {
            addresses: [const { AtomicU64::new(0) }; PLACES],
            status: AtomicU64::new(0),
            control: AtomicU64::new(0),
            taken: AtomicU8::new(0),
        }
    }

    fn control(&self) -> u64 {
        self.control.load(Ordering::Relaxed) & !OTHERS
    }

    /// Whether there is anything that must not be another task's.
    #[inline]
    fn is_used(&self) -> bool {
        self.control.load(Ordering::Relaxed) != 0
    }

    fn blocks(&self) -> bool {
        self.control.load(Ordering::Relaxed) & BLOCKS != 0
    }

    /// Registers that are the tracer's.
    pub(in crate::process) fn places(&self) -> usize {
        self.taken.load(Ordering::Relaxed).count_ones() as usize
    }

    /// Takes places for the tracer, as a bit for each, of what the task's events leave; `ENOSPC`.
    fn take(&self, places: u8, slots: &perf::Slots<'_>) -> Result<()> {
        let old = self.taken.load(Ordering::Relaxed);
        let all = old | places;
        if old != all && all.count_ones() as usize + slots.of_events() > PLACES {
            return Err(Errno::ENOSPC);
        }
        self.taken.store(all, Ordering::Relaxed);
        Ok(())
    }

    /// The task, whose own this is, looks at its events before it is in user mode again.
    pub(in crate::process) fn expect_events(&self, task: &Task) {
        self.control.fetch_or(EVENTS, Ordering::Relaxed);
        task.set_work(work::DEBUG);
    }

    /// In the task itself, which was told how to go on: whether its next step ends at a branch.
    pub(super) fn step_blocks(&self, task: Current, on: bool) {
        if on {
            self.control.fetch_or(BLOCKS, Ordering::Relaxed);
            task.set_work(work::DEBUG);
        } else if self.blocks() {
            self.control.fetch_and(!BLOCKS, Ordering::Relaxed);
            task.set_work(work::DEBUG);
            debug::step_blocks(false);
        }
    }

    /// Whether the task may not read the time-stamp counter.
    fn forbids_tsc(&self) -> bool {
        self.control.load(Ordering::Relaxed) & NO_TSC != 0
    }

    /// A new task may read what its `parent` may.
    pub(in crate::process) fn inherit(&self, task: &Task, parent: &Self) {
        if parent.forbids_tsc() {
            self.control.fetch_or(NO_TSC, Ordering::Relaxed);
            task.set_work(work::DEBUG);
        }
    }

    /// The register with this number; 4 and 5 are always zero.
    pub(super) fn get(&self, at: usize) -> u64 {
        match at {
            0..PLACES => self.addresses[at].load(Ordering::Relaxed),
            STATUS => self.status.load(Ordering::Relaxed),
            CONTROL => self.control(),
            _ => 0,
        }
    }

    /// Sets the register with this number of the task whose `slots` these are.
    ///
    /// # Errors
    /// `EINVAL` for an address beyond user space, and for a kind or a length that there is not; `ENOSPC` if the events leave no
    /// register for it; `EIO` for 4 and 5.
    pub(super) fn set(&self, at: usize, value: u64, slots: &perf::Slots<'_>) -> Result<()> {
        match at {
            0..PLACES => {
                let is_checked = debug::is_enabled(at, self.control());
                if value >= USER_END || (is_checked && !fits(at, value, self.control())) {
                    return Err(Errno::EINVAL);
                }
                self.take(1 << at, slots)?;
                self.addresses[at].store(value, Ordering::Relaxed);
            }
            STATUS => self.status.store(value, Ordering::Relaxed),
            CONTROL => {
                let control = debug::control_of(value);
                let fits = |at: &usize| {
                    !debug::is_enabled(*at, control) || fits(*at, self.get(*at), control)
                };
                if !(0..PLACES).all(|at| fits(&at)) {
                    return Err(Errno::EINVAL);
                }
                let enabled = (0..PLACES).filter(|at| debug::is_enabled(*at, control));
                self.take(enabled.fold(0, |all, at| all | 1 << at), slots)?;
                let own = self.control.load(Ordering::Relaxed) & OTHERS;
                self.control.store(control | own, Ordering::Relaxed);
            }
            _ => return Err(Errno::EIO),
        }
        Ok(())
    }

    /// A new program has none.
    pub(in crate::process) fn clear(&self, task: &Task) {
        if self.is_used() {
            if self.blocks() {
                debug::step_blocks(false);
            }
            // Its events go on, and what prctl(2) has set holds.
            self.control.fetch_and(EVENTS | NO_TSC, Ordering::Relaxed);
            task.set_work(work::DEBUG);
        }
        self.taken.store(0, Ordering::Relaxed);
        self.addresses.iter().for_each(|address| address.store(0, Ordering::Relaxed));
        self.status.store(0, Ordering::Relaxed);
    }

    /// The running task is switched away from; interrupts are off.
    #[inline]
    pub(in crate::process) fn switched_out(&self, task: &Task) {
        if self.is_used() {
            debug::disable();
            if self.blocks() {
                debug::step_blocks(false);
            }
            if self.forbids_tsc() {
                cpu::forbid_tsc(false);
            }
            task.set_work(work::DEBUG);
        }
    }
}

impl Task {
    /// Whether RDTSC in user mode gives it SIGSEGV (PR_GET_TSC).
    pub fn forbids_tsc(&self) -> bool {
        self.tracing.breakpoints.forbids_tsc()
    }
}

impl Current {
    /// The same, from now on (PR_SET_TSC).
    pub fn forbid_tsc(self, is_forbidden: bool) {
        let control = &self.tracing.breakpoints.control;
        // A switch in between would take out what is not in yet.
        cpu::without_interrupts(|| {
            match is_forbidden {
                true => control.fetch_or(NO_TSC, Ordering::Relaxed),
                false => control.fetch_and(!NO_TSC, Ordering::Relaxed),
            };
            cpu::forbid_tsc(is_forbidden);
        });
    }
}

fn fits(at: usize, addr: u64, control: u64) -> bool {
    debug::check(at, addr, control).is_ok()
}

/// The running task, on its way to user mode, has its breakpoints loaded.
pub fn load(task: Current) {
    task.clear_work(work::DEBUG);
    let breakpoints = &task.tracing.breakpoints;
    // Not between a switch and what it would have taken out.
    cpu::without_interrupts(|| {
        let mut addresses = core::array::from_fn(|at| breakpoints.get(at));
        let mut control = breakpoints.control();
        if breakpoints.control.fetch_and(!EVENTS, Ordering::Relaxed) & EVENTS != 0 {
            perf::collect(&task);
            if perf::load_breakpoints(&task, &mut addresses, &mut control) {
                breakpoints.control.fetch_or(EVENTS, Ordering::Relaxed);
            }
        }
        match control {
            0 => debug::disable(),
            control => debug::load(&addresses, control),
        }
        if breakpoints.blocks() {
            debug::step_blocks(true);
        }
        if breakpoints.forbids_tsc() {
            cpu::forbid_tsc(true);
        }
    });
}

/// The code of the SIGTRAP for a debug exception that was `status`. An instruction with a breakpoint is met before it is executed, and is
/// executed without meeting it again.
pub fn debug_code(task: Current, frame: &mut TrapFrame, status: u64) -> i32 {
    const STEP: u64 = 1 << 14;
    let breakpoints = &task.tracing.breakpoints;
    breakpoints.status.store(status, Ordering::Relaxed);
    let control = breakpoints.control();
    let executes = |at| debug::is_enabled(at, control) && debug::executes(at, control);
    if (0..PLACES).any(|at| status >> at & 1 != 0 && executes(at)) {
        frame.rflags |= FLAG_RF;
    }
    match status {
        0 => code::TRAP_BRKPT,
        status if status & STEP != 0 => code::TRAP_TRACE,
        _ => code::TRAP_HWBKPT,
    }
}
