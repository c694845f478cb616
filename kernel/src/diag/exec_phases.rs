//! How long each phase of `execve` takes, and fork, exit and wait beside them.
//!
//! Owns one accumulator per phase and CPU: sum, extremes and a histogram with four steps per power of two, which
//! is the count, too. Only the running CPU's task code writes to its accumulators and it is not preempted, so no
//! atomic addition is needed; a reader may see a sample half entered, which a statistic bears. Times
//! are TSC ticks until they are shown. Must never be used in interrupt handlers. Locks: none.
#![expect(clippy::disallowed_methods, reason = "what it writes to can fail")]

use super::phase::{EXEC_PHASES, NAMES, PHASES, Phase};
use super::timeline;
use crate::base::{percpu, tsc};
use crate::per_cpu;
use crate::trace::{self, Event, Point};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

/// Four steps in each power of two; the numbers below 4 and above 251 do not come up.
const BUCKETS: usize = 256;

struct Accumulator {
    sum: AtomicU64,
    min: AtomicU64,
    /// The maximum less the minimum.
    range: AtomicU64,
    histogram: [AtomicU64; BUCKETS],
}

// All accesses are Relaxed: one writer, and readers that take what they see.
impl Accumulator {
    const fn new() -> Self {
        Self {
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            range: AtomicU64::new(0),
            histogram: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    #[inline]
    fn enter(&self, ticks: u64) {
        add(&self.sum, ticks);
        // One comparison tells that it lies between the extremes.
        let above = ticks.wrapping_sub(self.min.load(Ordering::Relaxed));
        if above > self.range.load(Ordering::Relaxed) {
            self.widen(ticks);
        }
        add(&self.histogram[bucket(ticks)], 1);
    }

    #[cold]
    fn widen(&self, ticks: u64) {
        let (min, max) = self.extremes();
        let min = min.min(ticks);
        self.min.store(min, Ordering::Relaxed);
        self.range.store(max.max(ticks).wrapping_sub(min), Ordering::Relaxed);
    }

    /// The least and the greatest; the first is above the second when there are none.
    fn extremes(&self) -> (u64, u64) {
        let (min, range) = (self.min.load(Ordering::Relaxed), self.range.load(Ordering::Relaxed));
        (min, if min == u64::MAX { 0 } else { min.wrapping_add(range) })
    }

    fn reset(&self) {
        self.sum.store(0, Ordering::Relaxed);
        self.min.store(u64::MAX, Ordering::Relaxed);
        self.range.store(0, Ordering::Relaxed);
        for step in &self.histogram {
            step.store(0, Ordering::Relaxed);
        }
    }
}

#[inline]
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// The step that `ticks` falls into: its power of two and the two bits below the highest.
#[inline]
fn bucket(ticks: u64) -> usize {
    let ticks = ticks | 4;
    // At least 0, since bit 2 is set.
    let below = (63 ^ u64::from(ticks.leading_zeros())).wrapping_sub(2);
    // The highest three bits, which are 4 to 7.
    let digits = ticks >> (below & 63);
    usize::from(below.wrapping_mul(4).wrapping_add(digits) as u8)
}

/// The greatest value that falls into a step.
fn bucket_end(bucket: usize) -> u64 {
    let (digits, below) = (4 + bucket as u64 % 4, (bucket as u32 / 4).saturating_sub(1));
    (((u128::from(digits) + 1) << below) - 1) as u64
}

per_cpu! {
    static ACCUMULATORS: [Accumulator; PHASES] = [const { Accumulator::new() }; PHASES];
}

/// The steps of an exec in the order in which they end; some belong to the same phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Step {
    Arguments,
    Executable,
    NewSpace,
    Layout,
    Image,
    Prefault,
    Stack,
    Switch,
    OldSpace,
    Close,
    Rest,
}

const STEPS: usize = Step::Rest as usize + 1;
const PHASE_OF: [Phase; STEPS] = [
    Phase::Stack,
    Phase::ElfLoad,
    Phase::AddressSpace,
    Phase::Random,
    Phase::ElfLoad,
    Phase::Prefault,
    Phase::Stack,
    Phase::Switch,
    Phase::AddressSpace,
    Phase::CloseCloexecCmdline,
    Phase::Other,
];

/// Measures the steps of one exec; nothing counts until [`commit`](Self::commit).
pub struct ExecTimer {
    pid: i32,
    start: u64,
    ends: [u64; STEPS],
}

impl ExecTimer {
    /// Starts the first step of process `pid`'s exec.
    #[inline]
    pub fn start(pid: i32) -> Self {
        Self { pid, start: tsc::read(), ends: [0; STEPS] }
    }

    /// What has run since the end of the step before was `step`.
    #[inline(always)]
    pub fn end(&mut self, step: Step) {
        self.ends[step as usize] = tsc::read();
    }

    /// The exec succeeded, all steps have ended: its phases count.
    pub fn commit(&self) {
        debug_assert!(!self.ends.contains(&0), "a step of exec was left out");
        let (mut last, mut spent) = (self.start, [0u64; EXEC_PHASES]);
        for (end, phase) in self.ends.iter().zip(PHASE_OF) {
            let sum = &mut spent[phase as usize];
            *sum = sum.wrapping_add(end.wrapping_sub(last));
            last = *end;
        }
        ACCUMULATORS.with(|all| {
            for (accumulator, ticks) in all.iter().zip(spent) {
                accumulator.enter(ticks);
            }
        });
        if timeline::is_on() || trace::wanted(Point::Phase) {
            self.show();
        }
    }

    #[cold]
    fn show(&self) {
        let mut last = self.start;
        for (end, phase) in self.ends.iter().zip(PHASE_OF) {
            told(self.pid, phase, last, end.wrapping_sub(last));
            last = *end;
        }
    }
}

/// Measures one of fork, exit and wait.
pub struct PhaseTimer(u64);

impl PhaseTimer {
    #[inline]
    pub fn start() -> Self {
        Self(tsc::read())
    }

    /// It took this long; process `pid` did it.
    #[inline]
    pub fn finish(self, phase: Phase, pid: i32) {
        let ticks = tsc::read().wrapping_sub(self.0);
        ACCUMULATORS.with(|all| all[phase as usize].enter(ticks));
        if timeline::is_on() || trace::wanted(Point::Phase) {
            told(pid, phase, self.0, ticks);
        }
    }
}

/// Process `pid` spent `ticks` from `start` on with `phase`.
#[cold]
fn told(pid: i32, phase: Phase, start: u64, ticks: u64) {
    if timeline::is_on() {
        timeline::keep(pid, phase, start, ticks);
    }
    trace::at(Point::Phase, || Event::Phase { name: NAMES[phase as usize], start, ticks });
}

struct Sum {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    histogram: [u64; BUCKETS],
}

fn total_ticks(phase: usize) -> u64 {
    let all = (0..percpu::cpus_online()).filter_map(|cpu| ACCUMULATORS.of(cpu));
    all.map(|all| all[phase].sum.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
}

#[inline(never)]
fn collect(phase: usize) -> Sum {
    let mut total = Sum { count: 0, sum: 0, min: u64::MAX, max: 0, histogram: [0; BUCKETS] };
    for cpu in 0..percpu::cpus_online() {
        let Some(one) = ACCUMULATORS.of(cpu).map(|all| &all[phase]) else { continue };
        total.sum = total.sum.wrapping_add(one.sum.load(Ordering::Relaxed));
        let (min, max) = one.extremes();
        total.min = total.min.min(min);
        total.max = total.max.max(max);
        for (to, from) in total.histogram.iter_mut().zip(&one.histogram) {
            *to += from.load(Ordering::Relaxed);
        }
    }
    total.count = total.histogram.iter().sum();
    total
}

impl Sum {
    fn p99(&self) -> u64 {
        let mut left = self.count - self.count / 100;
        for (at, count) in self.histogram.iter().enumerate() {
            if *count >= left {
                return bucket_end(at).clamp(self.min, self.max);
            }
            left -= count;
        }
        self.max
    }
}

/// The table of /proc/alea/exec_phases; `to_ns` is the clock's scale. Shares are of a whole exec.
pub fn text(to_ns: impl Fn(u64) -> u64, text: &mut dyn Write) -> fmt::Result {
    let whole = (0..EXEC_PHASES).map(total_ticks).fold(0, u64::wrapping_add);
    let execs = collect(Phase::Other as usize).count;
    text.write_str("phase count avg_ns min_ns max_ns p99_ns share_percent\n")?;
    for (phase, name) in NAMES.iter().enumerate() {
        // One at a time: all the histograms together are larger than a kernel stack.
        let sum = collect(phase);
        let (avg, min, p99) = match sum.count {
            0 => (0, 0, 0),
            count => (sum.sum / count, sum.min, sum.p99()),
        };
        // In hundredths of a percent of the execs' time; of one exec's for what lies beside it.
        let share = (u128::from(sum.sum) * 10_000).checked_div(u128::from(whole)).unwrap_or(0);
        let share = if *name == "fork" || *name == "exit" || *name == "wait" {
            let per_exec = u128::from(whole).checked_div(u128::from(execs)).unwrap_or(0);
            (u128::from(avg) * 10_000).checked_div(per_exec).unwrap_or(0)
        } else {
            share
        };
        writeln!(
            text,
            "{name} {} {} {} {} {} {}.{:02}",
            sum.count,
            to_ns(avg),
            to_ns(min),
            to_ns(sum.max),
            to_ns(p99),
            share / 100,
            share % 100
        )?;
    }
    Ok(())
}

/// The steps of every phase's histogram that are not empty, for /proc/alea/exec_histogram: how many took
/// up to so long, and more than the step before.
pub fn histogram(to_ns: impl Fn(u64) -> u64, text: &mut dyn Write) -> fmt::Result {
    text.write_str("phase upto_ns count\n")?;
    for (phase, name) in NAMES.iter().enumerate() {
        let sum = collect(phase);
        for (at, count) in sum.histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
            writeln!(text, "{name} {} {count}", to_ns(bucket_end(at)))?;
        }
    }
    Ok(())
}

/// Forgets everything.
pub fn reset() {
    for cpu in 0..percpu::cpus_online() {
        if let Some(all) = ACCUMULATORS.of(cpu) {
            all.iter().for_each(Accumulator::reset);
        }
    }
}
