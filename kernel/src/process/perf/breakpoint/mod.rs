//! Events of breakpoints and watchpoints: in the debug registers while their task runs, beside those of its tracer.
//!
//! There are four registers; a tracer's address takes one from when it is set, an event from when it is opened. Which event a register
//! has is noted when it is loaded, so that a hit finds it. What the kernel reads and writes for the program is counted when the
//! program goes on, or is switched away from. Owns nothing. Never watches the kernel's own memory. Locks: `Perf`, of the task's list.

mod modify;
mod slots;

pub(super) use modify::modify;
pub(in crate::process) use slots::{Slots, with_slots};

use super::context::Context;
use super::part::Spot;
use super::record::Place;
use crate::arch::entry::frame::{FLAG_RF, TrapFrame};
use crate::arch::task::debug::{self, PLACES};
use crate::base::{cpu, percpu};
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use abi::perf::{Attr, Software, bit, sample};
use abi::{Errno, Result};
use core::sync::atomic::Ordering;

/// HW_BREAKPOINT_EMPTY and HW_BREAKPOINT_INVALID.
const EMPTY: u32 = 0;
const INVALID: u32 = 7;

/// How often what the kernel meets within one call is sampled; the rest is only counted.
const MOST_SAMPLES: u32 = 16;

/// What is counted, for attributes that can be. A whole CPU cannot be watched.
pub(super) fn find(attr: &Attr, task: Option<&Task>, cpu: Option<usize>) -> Result<Software> {
    if attr.samples(sample::BRANCH_STACK) {
        return Err(Errno::EOPNOTSUPP);
    }
    // As on Linux, a register is looked for before what would be in it is checked.
    if let Some(task) = task
        && let Some(context) = task.perf.get()
        && !matches!(attr.bp_type, EMPTY | INVALID)
    {
        with_slots(task, |slots| slots.check_event(context, cpu))?;
    }
    Spot::of(attr)?;
    if task.is_some() { Ok(Software::Breakpoint) } else { Err(Errno::EOPNOTSUPP) }
}

/// Puts the events of the running task into registers that its tracer has not enabled; false if it has none at all. Interrupts are off.
pub(in crate::process) fn load(
    task: &Task,
    addresses: &mut [u64; PLACES],
    control: &mut u64,
) -> bool {
    let Some(context) = task.perf.get() else { return false };
    let cpu = percpu::cpu_id();
    let (mut has_any, mut loaded) = (false, [0; PLACES]);
    context.for_each(|event| {
        let is_it = event.what == Software::Breakpoint;
        has_any |= is_it;
        if !is_it || !event.is_counting() || event.cpu.is_some_and(|own| own != cpu) {
            return;
        }
        if let Some(at) = (0..PLACES).find(|at| !debug::is_enabled(*at, *control)) {
            let spot = event.aim.spot();
            addresses[at] = spot.addr;
            *control |= spot.control(at);
            loaded[at] = event.id;
        }
    });
    for (to, id) in context.loaded.iter().zip(loaded) {
        // Relaxed: only the task itself, and who switches away from it, looks.
        to.store(id, Ordering::Relaxed);
    }
    has_any
}

/// The running program has met a debug exception, which was `status`: what of it was none of its events.
pub(in crate::process) fn hit(task: Current, frame: &mut TrapFrame, status: u64) -> u64 {
    let Some(context) = task.perf.get() else { return status };
    let place =
        Place { ip: frame.rip, bp: frame.rbp, address: 0, from_user: true, fact: None, when: None };
    let mut left = status;
    for at in (0..PLACES).filter(|at| status >> at & 1 != 0) {
        // Relaxed: see `load`.
        let id = context.loaded[at].load(Ordering::Relaxed);
        if id != 0 {
            left &= !(1 << at);
            if count(context, &task, id, 1, place) {
                frame.rflags |= FLAG_RF;
            }
        }
    }
    left
}

/// Counts what the kernel has met in registers of `task`, which runs on this CPU or did until now.
pub(in crate::process) fn collect(task: &Task) {
    let Some(context) = task.perf.get() else { return };
    cpu::without_interrupts(|| {
        for at in 0..PLACES {
            let (number, ip) = debug::take_met(at);
            // Relaxed: see `load`.
            let id = context.loaded[at].load(Ordering::Relaxed);
            if number != 0 && id != 0 {
                let place =
                    Place { ip, bp: 0, address: 0, from_user: false, fact: None, when: None };
                count(context, task, id, number, place);
            }
        }
    });
}

/// Counts so many of one event; whether it is about execution.
fn count(context: &Context, task: &Task, id: u64, number: u32, place: Place<'_>) -> bool {
    let excluded = if place.from_user { bit::EXCLUDE_USER } else { bit::EXCLUDE_KERNEL };
    let mut executes = false;
    cpu::without_interrupts(|| {
        context.for_each_of(|event, all| {
            if event.id != id {
                return;
            }
            let spot = event.aim.spot();
            executes = spot.executes();
            let place = Place { address: spot.addr, ..place };
            for _ in 0..number.min(MOST_SAMPLES) {
                if event.is_counting() && !event.attr.has(excluded) {
                    event.count_one(Some(task), &place, all, false);
                }
            }
            if event.is_counting() && !event.attr.has(excluded) {
                event.count_more(number.saturating_sub(MOST_SAMPLES).into());
            }
        });
    });
    executes
}
