//! Interval timers (`setitimer`, `alarm`).
//!
//! The real-time timer is a kernel timer. The two that count CPU time are sampled every [`TICK`] while
//! armed, as Linux's are by its tick. Owns the three of a process. Locks:
//! [`crate::sync::level::Itimer`], which interrupt handlers take; never held while a signal is sent.

use super::times::process_cpu_ns;
use crate::mm::fallible::try_arc;
use crate::process::signal;
use crate::process::task::process::Process;
use crate::sync::{SpinLock, level};
use crate::time::{self, Nanos, TimerId, TimerRoom, TimerTarget};
use abi::Result;
use abi::signal::{SigInfo, Signal, code};
use alloc::sync::{Arc, Weak};

/// How often armed CPU-time timers are looked at.
const TICK: Nanos = Nanos::from_millis(4);

/// Which of a process's three interval timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItimerKind {
    /// Real time: SIGALRM.
    Real,
    /// The process's time in user mode: SIGVTALRM.
    Virtual,
    /// The process's time in user mode and in the kernel: SIGPROF.
    Prof,
}

impl ItimerKind {
    /// From `ITIMER_REAL`, `ITIMER_VIRTUAL`, `ITIMER_PROF`.
    pub fn from_raw(which: i32) -> Option<Self> {
        Some(match which {
            0 => Self::Real,
            1 => Self::Virtual,
            2 => Self::Prof,
            _ => return None,
        })
    }

    fn signal(self) -> Signal {
        match self {
            Self::Real => Signal::SIGALRM,
            Self::Virtual => Signal::SIGVTALRM,
            Self::Prof => Signal::SIGPROF,
        }
    }

    /// The clock that the timer counts, in nanoseconds.
    fn now(self, process: &Process) -> u64 {
        match self {
            Self::Real => time::monotonic().0,
            Self::Virtual => process.usage().utime_ns,
            Self::Prof => process_cpu_ns(process),
        }
    }

    /// When to look at an armed timer next, on the monotonic clock.
    fn next_look(self, at: u64) -> Nanos {
        match self {
            Self::Real => Nanos(at),
            Self::Virtual | Self::Prof => time::monotonic() + TICK,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// Expiry on the timer's own clock; 0 while disarmed.
    at: u64,
    interval: u64,
    timer: Option<TimerId>,
}

/// The three timers of a process.
pub struct Itimers {
    slots: SpinLock<[Slot; 3], level::Itimer>,
}

impl Itimers {
    /// Three disarmed timers: a child inherits none.
    pub const fn new() -> Self {
        Self { slots: SpinLock::new([Slot { at: 0, interval: 0, timer: None }; 3]) }
    }

    /// Disarms everything, when the process exits.
    pub fn cancel_all(&self) {
        let mut slots = self.slots.lock();
        for slot in slots.iter_mut() {
            if let Some(timer) = slot.timer.take() {
                time::cancel(timer);
            }
            *slot = Slot::default();
        }
    }
}

/// What is left until expiry (0 when disarmed) and the interval, in nanoseconds.
pub fn get(process: &Process, kind: ItimerKind) -> (u64, u64) {
    let now = kind.now(process);
    let slot = process.signals.itimers.slots.lock()[kind as usize];
    (left(&slot, now), slot.interval)
}

/// An armed timer never shows zero.
fn left(slot: &Slot, now: u64) -> u64 {
    if slot.at == 0 { 0 } else { slot.at.saturating_sub(now).max(1000) }
}

/// Arms the timer to expire after `value` nanoseconds and every `interval` then, or disarms it if
/// `value` is 0. Returns what [`get`] would have.
pub fn set(
    process: &Arc<Process>,
    kind: ItimerKind,
    value: u64,
    interval: u64,
) -> Result<(u64, u64)> {
    let made = match value {
        0 => None,
        _ => Some(try_arc(Expiry {
            process: Arc::downgrade(process),
            kind,
            room: TimerRoom::new()?,
        })?),
    };
    let now = kind.now(process);
    let mut slots = process.signals.itimers.slots.lock();
    let slot = &mut slots[kind as usize];
    let old = (left(slot, now), slot.interval);
    if let Some(timer) = slot.timer.take() {
        time::cancel(timer);
    }
    *slot = Slot::default();
    if let Some(made) = made {
        let at = now.saturating_add(value);
        let timer = time::arm(&made.room, kind.next_look(at), made.clone());
        *slot = Slot { at, interval, timer: Some(timer) };
    }
    Ok(old)
}

struct Expiry {
    process: Weak<Process>,
    kind: ItimerKind,
    room: TimerRoom,
}

impl TimerTarget for Expiry {
    fn expired(self: Arc<Self>, _now: Nanos) {
        let Some(process) = self.process.upgrade() else { return };
        if self.advance(&process) {
            let signal = self.kind.signal();
            // No real-time signal: it cannot exceed a limit.
            let info = SigInfo::new(signal, code::SI_KERNEL);
            if let Err(error) = signal::send_to_process(&process, signal, info) {
                unreachable!("{signal:?} refused: {error}");
            }
        }
    }

    fn needs_thread(&self) -> bool {
        true // signals take the locks of the process
    }
}

impl Expiry {
    /// Rearms as needed; whether the timer has expired.
    fn advance(self: &Arc<Self>, process: &Arc<Process>) -> bool {
        let now = self.kind.now(process);
        let mut slots = process.signals.itimers.slots.lock();
        let slot = &mut slots[self.kind as usize];
        if slot.at == 0 {
            return false;
        }
        let expired = now >= slot.at;
        if expired {
            slot.at = match slot.interval {
                0 => 0,
                // Missed periods are skipped, not made up for.
                interval => {
                    let missed = (now - slot.at) / interval;
                    slot.at.saturating_add(missed.saturating_add(1).saturating_mul(interval))
                }
            };
        }
        // What is armed is another timer if this one was set anew meanwhile.
        if let Some(other) = slot.timer.take() {
            time::cancel(other);
        }
        if slot.at != 0 {
            slot.timer = Some(time::arm(&self.room, self.kind.next_look(slot.at), self.clone()));
        }
        expired
    }
}
