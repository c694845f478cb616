//! When each phase of the last forks, execs, exits and waits ran, for a picture of them.
//!
//! Owns one ring of events per CPU, off until /proc/alea/exec_timeline is switched on: a phase then costs a few stores
//! more. Execs that failed leave nothing. Only the running CPU's task code writes to its ring; a reader may see an
//! entry half replaced, which a picture bears. Must never be used in interrupt handlers. Locks: none.
#![expect(clippy::disallowed_methods, reason = "what it writes to can fail")]

use super::phase::Phase;
use crate::base::percpu;
use crate::per_cpu;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events that a CPU keeps.
const EVENTS: usize = 512;

struct Event {
    start: AtomicU64,
    ticks: AtomicU64,
    /// The process above, the phase in the low byte, one more than its number; 0 for no event.
    what: AtomicU64,
}

struct Ring {
    next: AtomicU64,
    events: [Event; EVENTS],
}

// All accesses are Relaxed: one writer, and readers that take what they see.
per_cpu! {
    static RING: Ring = Ring {
        next: AtomicU64::new(0),
        events: [const {
            Event { start: AtomicU64::new(0), ticks: AtomicU64::new(0), what: AtomicU64::new(0) }
        }; EVENTS],
    };
}

/// Relaxed: events a moment around the change may be missing.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether events are kept.
#[inline(always)]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Process `pid` spent `ticks` from `start` on with `phase`.
#[cold]
pub(super) fn keep(pid: i32, phase: Phase, start: u64, ticks: u64) {
    RING.with(|ring| {
        let next = ring.next.load(Ordering::Relaxed);
        ring.next.store(next.wrapping_add(1), Ordering::Relaxed);
        let event = &ring.events[next as usize % EVENTS];
        event.start.store(start, Ordering::Relaxed);
        event.ticks.store(ticks, Ordering::Relaxed);
        let what = u64::from(pid.unsigned_abs()) << 8 | (phase as u64 + 1);
        event.what.store(what, Ordering::Relaxed);
    });
}

/// Begins with no events, or ends.
pub fn switch(on: bool) {
    ON.store(on, Ordering::Relaxed);
    if on {
        for ring in (0..percpu::cpus_online()).filter_map(|cpu| RING.of(cpu)) {
            ring.events.iter().for_each(|event| event.what.store(0, Ordering::Relaxed));
        }
    }
}

/// The table of /proc/alea/exec_timeline: on each CPU in the order in which they ended, an exec as one; `to_ns` is the
/// clock's scale.
pub fn text(to_ns: impl Fn(u64) -> u64, text: &mut dyn Write) -> fmt::Result {
    text.write_str("cpu pid phase start_ns duration_ns\n")?;
    for cpu in 0..percpu::cpus_online() {
        let Some(ring) = RING.of(cpu) else { continue };
        let next = ring.next.load(Ordering::Relaxed) as usize;
        for at in 0..EVENTS {
            let event = &ring.events[next.wrapping_add(at) % EVENTS];
            let what = event.what.load(Ordering::Relaxed);
            let Some(name) = (what as u8).checked_sub(1).and_then(Phase::name) else { continue };
            let start = to_ns(event.start.load(Ordering::Relaxed));
            let duration = to_ns(event.ticks.load(Ordering::Relaxed));
            writeln!(text, "{cpu} {} {name} {start} {duration}", what >> 8)?;
        }
    }
    Ok(())
}
