//! How often each system call was made: /proc/alea/syscalls.
//!
//! Counted per CPU without locks or locked instructions: only the CPU itself adds to its counters, in task
//! context, and no task is preempted inside the kernel.

use crate::base::percpu::{self, MAX_CPUS};
use crate::fs::procfs::{self, ProcFile};
use crate::mm::fallible::{try_arc, try_string};
use crate::syscall::args::Status;
use crate::syscall::table;
use crate::try_writeln;
use abi::Result;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

crate::per_cpu! {
    /// One counter per number; the last one is of all numbers beyond the table.
    static COUNTS: [AtomicU64; table::LEN + 1] = [const { AtomicU64::new(0) }; table::LEN + 1];
}

/// Counts a call on this CPU; `number` is at most [`crate::syscall::table::LEN`].
#[inline(always)]
pub fn count(number: usize) {
    COUNTS.with(|counts| {
        let counter = &counts[number];
        // Relaxed, and no atomic addition: this CPU is the only writer.
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    });
}

/// Adds /proc/alea/syscalls.
pub fn register() -> Result<()> {
    procfs::register_file("alea/syscalls", 0o444, try_arc(Report)?)
}

/// Lines of `number name count missing`, for calls that were made; a call that does not exist is named `-`, and
/// the last column says what a partial one lacks.
struct Report;

impl ProcFile for Report {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = try_string("number name count missing\n")?;
        for number in 0..=table::LEN {
            let total = (0..MAX_CPUS.min(percpu::cpus_online()))
                .filter_map(|cpu| COUNTS.of(cpu))
                // Relaxed: a statistic of other CPUs.
                .map(|counts| counts[number].load(Ordering::Relaxed))
                .fold(0, u64::wrapping_add);
            if total != 0 {
                let (name, missing) = match table::entry(number) {
                    Some((name, Status::Full)) => (name, "-"),
                    Some((name, Status::Partial(missing))) => (name, missing),
                    None => ("-", "everything"),
                };
                try_writeln!(text, "{number} {name} {total} {missing}")?;
            }
        }
        Ok(text.into_bytes())
    }
}
