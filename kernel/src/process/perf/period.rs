//! [`Pace`]: when samples are taken of an event: its period, which may be changed, and how many are left (PERF_EVENT_IOC_REFRESH).
//!
//! Owns nothing. Never waits: it is asked in interrupt handlers. Locks: `Perf`, of the event's times, among which is when the last sample was.

use super::event::{Changes, Event, Subject};
use super::part::Taken;
use super::sampler;
use crate::process::sched;
use crate::process::task::current::{TASKS, current};
use crate::process::task::task::Task;
use crate::time;
use abi::Result;
use abi::perf::{Attr, Software, bit, sample};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The part of an event. Relaxed everywhere: single numbers.
pub(super) struct Pace {
    /// That of its attributes, or what it was changed to; of a clock in nanoseconds.
    period: AtomicU64,
    /// Samples that may be taken before it is switched off; 0 for any number.
    limit: AtomicU32,
}

impl Pace {
    pub fn of(attr: &Attr, what: Software) -> Self {
        let by_frequency = attr.has(bit::FREQ) && what.is_clock() && attr.is_sampling();
        let period = if by_frequency { 1_000_000_000 / attr.period } else { attr.period };
        Self { period: AtomicU64::new(period), limit: AtomicU32::new(0) }
    }

    /// Before the first sample.
    pub fn taken(&self) -> Taken {
        let period = self.period.load(Ordering::Relaxed);
        Taken { at: 0, since: 0, need: period, next: period }
    }
}

impl Event {
    /// Nanoseconds from sample to sample, for what is asked for by time.
    pub fn period_ns(&self) -> u64 {
        self.in_ns(self.pace.period.load(Ordering::Relaxed))
    }

    fn in_ns(&self, period: u64) -> u64 {
        if self.is_by_frequency() { 1_000_000_000 / period.max(1) } else { period }
    }

    /// Whether its period is a number of samples a second: that of a clock is time from the beginning on.
    pub fn is_by_frequency(&self) -> bool {
        self.attr.has(bit::FREQ) && !self.what.is_clock()
    }

    /// Changes how many there are from sample to sample, or how many samples a second.
    pub fn set_period(&self, period: u64, _: &Changes) -> Result<()> {
        if self.takes_time {
            sampler::enter(self.in_ns(period));
            sampler::leave(self.period_ns());
        }
        self.pace.period.store(period, Ordering::Relaxed);
        // As on Linux, a sample is taken at once, and the one after it when it would have been.
        self.times.lock().taken.need = 0;
        Ok(())
    }

    /// Lets so many samples more be taken until it is switched off; 0 changes nothing.
    pub fn refresh(&self, number: u32, changes: &Changes) {
        self.pace.limit.fetch_add(number, Ordering::Relaxed);
        self.set_on(changes, true);
    }

    /// A sample was taken: whether it was the last one that may be.
    pub fn is_used_up(&self) -> bool {
        let less = |limit: u32| limit.checked_sub(1);
        // Relaxed: see `is_counting`.
        self.pace.limit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) == Ok(1)
    }

    /// Switches it off where no mutex can be had.
    pub fn stop(&self) {
        self.settle(self.now(), None);
        self.on.store(false, Ordering::Relaxed);
        self.counts.store(false, Ordering::Relaxed);
        self.reload();
    }

    /// An event of a breakpoint counts from now on, or does no more, or looks elsewhere: its task loads its registers anew.
    pub fn reload(&self) {
        if self.what != Software::Breakpoint {
            return;
        }
        if let Some(task) = self.task() {
            task.tracing.breakpoints.expect_events(&task);
            if !TASKS.is_active() || !core::ptr::eq(&*task, &*current()) {
                sched::kick(&task);
            }
        }
    }

    /// Whether a sample is to be taken, `more` having happened: how many it stands for.
    pub fn is_due(&self, more: u64) -> Option<u64> {
        debug_assert!(!self.what.is_clock(), "a clock does not count what happens");
        let by_time = self.attr.has(bit::FREQ);
        let now = if by_time { time::since_boot_ns() } else { 0 };
        self.is_due_at(&mut self.times.lock().taken, more, now, by_time)
    }

    /// The same of a clock that counts, at `now` since boot, when `task` runs.
    pub fn is_due_of(&self, task: &Task, now: u64) -> Option<u64> {
        let now = match &self.subject {
            Subject::Task(own) if core::ptr::eq(own.as_ptr(), task) => {
                Some(task.times.cpu_ns_at(|| now))
            }
            Subject::Task(_) => self.now(),
            Subject::Cpu => Some(now),
        };
        let mut times = self.times.lock();
        times.pass(now, self.is_counting());
        let running = times.running;
        self.is_due_at(&mut times.taken, 1, running, true)
    }

    fn is_due_at(&self, taken: &mut Taken, more: u64, now: u64, by_time: bool) -> Option<u64> {
        let period = self.period_ns();
        taken.since += more;
        let due = match by_time {
            true => now.saturating_sub(taken.at) >= period,
            // As on Linux, who wants to know for how many a sample stands gets one for each.
            false if self.attr.samples(sample::PERIOD) => true,
            false => taken.since >= taken.need,
        };
        if !due {
            return None;
        }
        let stands_for = if self.what.is_clock() { period } else { taken.since };
        let next = self.pace.period.load(Ordering::Relaxed);
        // Who is looked at less often than it would be gets as many samples as it wants, on average.
        let on_time = taken.at.saturating_add(period);
        let is_late = now.saturating_sub(on_time) >= period;
        let at = if self.what.is_clock() && !is_late { on_time } else { now };
        *taken = Taken { at, since: 0, need: taken.next, next };
        Some(stands_for)
    }
}
