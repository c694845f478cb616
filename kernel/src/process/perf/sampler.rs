//! Samples of time: a timer on each CPU, while there is an event that wants any.
//!
//! It looks at the running task as often as the most frequent event wants, and takes a sample for each event whose clock has gone
//! on by its period. It runs in the timer's interrupt, so no lock is held there that an interrupt may not find held: whatever code is
//! interrupted, that of the entropy pool too, goes on as if nothing had been. Owns nothing but how often it looks. Never allocates there. Locks: `Perf`,
//! of the lists that it goes through.

use super::context::{self, Context};
use super::event;
use super::record::Place;
use crate::arch::irq::{self, Interrupted};
use crate::base::percpu;
use crate::process::task::current::{TASKS, current};
use crate::process::task::task::Task;
use crate::sync::{SpinLock, level};
use crate::time::{self, Nanos};
use abi::perf::bit;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The least time between two looks.
const LEAST_NS: u64 = 100_000;

/// The most, so that one that wants more of them is soon heard.
const MOST_NS: u64 = 1 << 22;

/// How many events want samples of time, and how often the most frequent one. Relaxed: who misses one is late by a look.
static EVENTS: AtomicUsize = AtomicUsize::new(0);
static PERIOD: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether anybody wants samples of time.
pub(super) fn is_wanted() -> bool {
    EVENTS.load(Ordering::Relaxed) != 0
}

/// Fills the slot of what looks.
pub(super) fn register() {
    time::set_look(look_again);
}

/// There is one more event that does, every so many nanoseconds.
pub(super) fn enter(period: u64) {
    EVENTS.fetch_add(1, Ordering::Relaxed);
    change(period, |number| *number += 1);
}

/// There is one less.
pub(super) fn leave(period: u64) {
    EVENTS.fetch_sub(1, Ordering::Relaxed);
    change(period, |number| *number -= 1);
}

/// How many events want samples every so often, by the highest bit of the period, and the least period since there were any.
static WANTED: SpinLock<[(u32, u64); 64], level::Perf> = SpinLock::new([(0, u64::MAX); 64]);

/// Counts an event in or out. The timers then look as often as the most frequent one wants; once that is gone, up to twice as often
/// as the next one does.
fn change(period: u64, act: impl FnOnce(&mut u32)) {
    let mut wanted = WANTED.lock();
    let period = period.max(LEAST_NS);
    let (number, least) = &mut wanted[period.ilog2() as usize];
    act(number);
    *least = if *number == 0 { u64::MAX } else { period.min(*least) };
    let least = wanted.iter().map(|(_, least)| *least).find(|least| *least != u64::MAX);
    PERIOD.store(least.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Begins to look on this CPU. Interrupts are off.
pub(super) fn begin() {
    if is_wanted() {
        time::begin_looks(next(time::since_boot_ns()));
    }
}

/// When the look comes that follows one at `now`.
fn next(now: u64) -> Nanos {
    Nanos(now.saturating_add(PERIOD.load(Ordering::Relaxed).min(MOST_NS)))
}

/// Looks, in the timer's interrupt: when to look again, if at all.
fn look_again(now: Nanos) -> Option<Nanos> {
    is_wanted().then(|| {
        look(now.0);
        next(now.0)
    })
}

fn look(now: u64) {
    if !TASKS.is_active() {
        return;
    }
    let task = current();
    let Interrupted { ip, bp, from_user } = irq::interrupted();
    let place = Place { ip, bp, address: 0, from_user, fact: None, when: Some(now) };
    if let Some(context) = task.perf.get() {
        take(context, &task, &place, now);
    }
    if event::has_of_cpus()
        && let Ok(context) = context::of_cpu(percpu::cpu_id())
    {
        take(context, &task, &place, now);
    }
}

fn take(context: &Context, task: &Task, place: &Place<'_>, now: u64) {
    let cpu = percpu::cpu_id();
    let idle = task.tid() == 0;
    let excluded = if place.from_user { bit::EXCLUDE_USER } else { bit::EXCLUDE_KERNEL };
    context.for_each_of(|event, all| {
        let here = event.cpu.is_none_or(|own| own == cpu);
        if !here || !event.is_counting() || !event.what.is_clock() || !event.attr.is_sampling() {
            return;
        }
        let Some(period) = event.is_due_of(task, now) else { return };
        let idles = idle && event.attr.has(bit::EXCLUDE_IDLE);
        if !event.attr.has(excluded) && !idles {
            event.sample(Some(task), place, all, period, true);
        }
    });
}
