//! What tasks use: CPU time, faults, context switches.
//!
//! CPU time is exact: the clock is read at every switch. How it divides into user and system time is
//! sampled: every [`SAMPLE_NS`](crate::time::SAMPLE_NS) the timer looks whether it interrupted the program or the
//! kernel, and the total is divided in that proportion, as on Linux without exact accounting. All
//! counters are written by the task itself (or the CPU that switches it) and read by anyone: Relaxed, as each is
//! a number of its own, the CPU time together with whether it grows.
//!
//! Owns them. Never counts a task twice: one that ends adds what it used to its process. Never shows a clock of CPU time
//! that goes back. Locks: none.

use crate::process::task::process::Process;
use core::sync::atomic::{AtomicU64, Ordering};

/// In [`Times::cpu`]: the thread runs.
const RUNS: u64 = 1 << 63;

/// Counters of one thread.
#[derive(Default)]
pub struct Times {
    /// While the thread does not run: its CPU time. While it runs: [`RUNS`], and the time since boot when it would have begun
    /// had it always run. One word, so that nobody sees half a switch.
    cpu: AtomicU64,
    /// The CPU time that was last shown.
    cpu_shown: AtomicU64,
    /// When the thread was switched to, or was last looked at while it ran; of the past while it does not run.
    since_ns: AtomicU64,
    /// How often the timer found it in user mode and in the kernel.
    samples: [AtomicU64; 2],
    /// User and system time as last shown: neither ever goes back.
    shown: [AtomicU64; 2],
    minor_faults: AtomicU64,
    major_faults: AtomicU64,
    voluntary: AtomicU64,
    involuntary: AtomicU64,
    start_ns: AtomicU64,
    /// Bytes read and written by calls, and such calls.
    moved: [AtomicU64; 2],
    calls: [AtomicU64; 2],
}

/// What calls have read and written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Bytes.
    pub read: u64,
    pub written: u64,
    /// Calls, those that failed included.
    pub reads: u64,
    pub writes: u64,
}

impl Moved {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.read = self.read.wrapping_add(other.read);
        self.written = self.written.wrapping_add(other.written);
        self.reads = self.reads.wrapping_add(other.reads);
        self.writes = self.writes.wrapping_add(other.writes);
    }
}

/// The way of bytes that a call moves.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Read = 0,
    Write = 1,
}

/// A sum of counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub utime_ns: u64,
    pub stime_ns: u64,
    pub max_rss_pages: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary: u64,
    pub involuntary: u64,
}

impl Usage {
    /// User and system time in clock ticks (1/100 s).
    pub fn ticks(&self) -> (i64, i64) {
        const TICK_NS: u64 = abi::time::NSEC_PER_SEC / abi::time::USER_HZ;
        ((self.utime_ns / TICK_NS) as i64, (self.stime_ns / TICK_NS) as i64)
    }

    /// Adds another sum; the resident peak is the greater one.
    pub fn add(&mut self, other: &Self) {
        self.utime_ns = self.utime_ns.saturating_add(other.utime_ns);
        self.stime_ns = self.stime_ns.saturating_add(other.stime_ns);
        self.max_rss_pages = self.max_rss_pages.max(other.max_rss_pages);
        self.minor_faults = self.minor_faults.saturating_add(other.minor_faults);
        self.major_faults = self.major_faults.saturating_add(other.major_faults);
        self.voluntary = self.voluntary.saturating_add(other.voluntary);
        self.involuntary = self.involuntary.saturating_add(other.involuntary);
    }
}

/// What is gone: ended threads of a process, and children that were waited for.
#[derive(Default)]
pub(in crate::process) struct Spent {
    pub(in crate::process) threads: Usage,
    /// By the threads.
    pub(in crate::process) moved: Moved,
    pub(in crate::process) children: Usage,
}

impl Times {
    /// All zero, started now.
    pub fn new() -> Self {
        Self { start_ns: AtomicU64::new(crate::time::since_boot_ns()), ..Self::default() }
    }

    /// When the thread was made.
    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Relaxed)
    }

    /// The task begins to run.
    #[inline]
    pub(in crate::process) fn resume(&self, now: u64) {
        self.since_ns.store(now, Ordering::Relaxed);
        let ran = self.cpu.load(Ordering::Relaxed);
        debug_assert_eq!(ran & RUNS, 0, "a task that runs is switched to");
        self.cpu.store(RUNS | now.saturating_sub(ran), Ordering::Relaxed);
    }

    /// The running task is looked at: what it ran since it was switched to or last looked at.
    #[inline]
    pub(in crate::process) fn look(&self, now: u64) -> u64 {
        let ran = self.since_look(now);
        self.since_ns.store(now, Ordering::Relaxed);
        ran
    }

    /// What the running task ran since it was switched to or last looked at.
    pub(in crate::process) fn since_look(&self, now: u64) -> u64 {
        now.saturating_sub(self.since_ns.load(Ordering::Relaxed))
    }

    /// The task stops running.
    #[inline]
    pub(in crate::process) fn pause(&self, now: u64) {
        let begin = self.cpu.load(Ordering::Relaxed);
        debug_assert_ne!(begin & RUNS, 0, "a task that does not run is switched away from");
        self.cpu.store(now.saturating_sub(begin & !RUNS), Ordering::Relaxed);
    }

    /// Whether the thread runs on a CPU now.
    pub fn is_running(&self) -> bool {
        self.cpu.load(Ordering::Relaxed) & RUNS != 0
    }

    /// A context switch that the task asked for, or not.
    #[inline]
    pub(in crate::process) fn count_switch(&self, voluntary: bool) {
        add(if voluntary { &self.voluntary } else { &self.involuntary }, 1);
    }

    /// A call of the task that moved so many bytes, or none.
    #[inline]
    pub fn count_moved(&self, way: Way, bytes: usize) {
        add(&self.moved[way as usize], bytes as u64);
        add(&self.calls[way as usize], 1);
    }

    /// What its calls have moved.
    pub fn moved(&self) -> Moved {
        Moved {
            read: self.moved[0].load(Ordering::Relaxed),
            written: self.moved[1].load(Ordering::Relaxed),
            reads: self.calls[0].load(Ordering::Relaxed),
            writes: self.calls[1].load(Ordering::Relaxed),
        }
    }

    /// A page fault that needed no device.
    #[inline]
    pub fn count_fault(&self) {
        add(&self.minor_faults, 1);
    }

    /// CPU time so far.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns_at(crate::time::since_boot_ns)
    }

    /// The same at `now` since boot, which is looked at while the thread runs only.
    pub fn cpu_ns_at(&self, now: impl FnOnce() -> u64) -> u64 {
        let cpu = self.cpu.load(Ordering::Relaxed);
        let ran = match cpu & RUNS {
            0 => cpu,
            _ => now().saturating_sub(cpu & !RUNS),
        };
        // A switch reads the clock a little before it notes the time: what was read between the two may be more.
        self.cpu_shown.fetch_max(ran, Ordering::Relaxed).max(ran)
    }

    /// The timer found the running task in user mode, or in the kernel.
    pub(in crate::process) fn sample(&self, from_user: bool) {
        add(&self.samples[usize::from(!from_user)], 1);
        if !from_user {
            // Relaxed: a statistic.
            SYSTEM.fetch_add(crate::time::SAMPLE_NS, Ordering::Relaxed);
        }
    }

    /// User and system time out of the total.
    fn divide(&self, total: u64) -> [u64; 2] {
        let [user, system] = [0, 1].map(|of: usize| self.samples[of].load(Ordering::Relaxed));
        let [shown_user, shown_system] =
            [0, 1].map(|of: usize| self.shown[of].load(Ordering::Relaxed));
        let share = match user.saturating_add(system) {
            0 => 0,
            all => (u128::from(total) * u128::from(system) / u128::from(all)) as u64,
        };
        let system = share.max(shown_system).min(total);
        let system = (total - system).max(shown_user).min(total).abs_diff(total);
        let user = total - system;
        self.shown[0].fetch_max(user, Ordering::Relaxed);
        self.shown[1].fetch_max(system, Ordering::Relaxed);
        [user, system]
    }

    /// All counters.
    pub fn usage(&self) -> Usage {
        let [utime_ns, stime_ns] = self.divide(self.cpu_ns());
        Usage {
            utime_ns,
            stime_ns,
            max_rss_pages: 0,
            minor_faults: self.minor_faults.load(Ordering::Relaxed),
            major_faults: self.major_faults.load(Ordering::Relaxed),
            voluntary: self.voluntary.load(Ordering::Relaxed),
            involuntary: self.involuntary.load(Ordering::Relaxed),
        }
    }
}

/// Time in the kernel of all tasks since boot.
static SYSTEM: AtomicU64 = AtomicU64::new(0);

/// Time in the kernel of all tasks since boot.
pub(in crate::process) fn system_total() -> u64 {
    SYSTEM.load(Ordering::Relaxed)
}

/// One writer at a time, so no atomic addition is needed.
#[inline]
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// CPU time of a whole process, for its clock.
pub fn process_cpu_ns(process: &Process) -> u64 {
    let usage = process.usage();
    usage.utime_ns.saturating_add(usage.stime_ns)
}
