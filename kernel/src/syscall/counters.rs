//! How often each system call was made, and the answer to numbers that are none.
//!
//! Owns one counter a number and CPU. Never counts in an interrupt handler: only the CPU itself adds to its counters,
//! in task context, and no task is preempted inside the kernel. Locks: none, and no locked instructions.

use crate::arch::entry::frame::{SYSCALLS, TrapFrame};
use crate::base::percpu::{self, MAX_CPUS};
use abi::Errno;
use core::sync::atomic::{AtomicU64, Ordering};

/// One more than the highest number that a call can have.
pub const LEN: usize = SYSCALLS - 1;

crate::per_cpu! {
    /// One counter per number; the last one is of all numbers beyond the table.
    static COUNTS: [AtomicU64; LEN + 1] = [const { AtomicU64::new(0) }; LEN + 1];
}

/// Counts a call on this CPU; `number` is at most [`LEN`].
#[inline(always)]
pub fn count(number: usize) {
    COUNTS.with(|counts| {
        let counter = &counts[number];
        // Relaxed, and no atomic addition: this CPU is the only writer.
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    });
}

/// How often `number` was called, on all CPUs.
pub(super) fn total(number: usize) -> u64 {
    (0..MAX_CPUS.min(percpu::cpus_online()))
        .filter_map(|cpu| COUNTS.of(cpu))
        // Relaxed: a statistic of other CPUs.
        .map(|counts| counts[number].load(Ordering::Relaxed))
        .fold(0, u64::wrapping_add)
}

/// Unknown calls fail; /proc/alea/syscalls shows that they were made.
pub(super) extern "C" fn no_such_call(frame: &mut TrapFrame) -> i64 {
    // Linux looks at the low 32 bits only.
    count((frame.orig_rax as u32 as usize).min(LEN));
    Errno::ENOSYS.to_return()
}
