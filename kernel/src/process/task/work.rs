//! Work flags: why a task may not return to user mode directly.

use crate::base::percpu;

/// Something is pending for `deliver::exit_to_user`.
pub const SIGNAL: u32 = percpu::WORK_SIGNAL;
/// Another task should run.
pub const RESCHED: u32 = percpu::WORK_RESCHED;
/// The kernel's own reserve of memory is being used up: who makes it smaller frees memory first.
pub const MEMORY: u32 = percpu::WORK_MEMORY;
/// Somebody began to wait for the CPU: the slice timer must be armed.
pub const SLICE: u32 = 1 << 2;
/// The thread has breakpoints in debug registers, which are not loaded, or which the kernel has met.
pub const DEBUG: u32 = percpu::WORK_DEBUG;
/// The thread has something of seccomp: its calls are to be watched.
pub const SECCOMP: u32 = 1 << 5;
/// Who counts the thread's calls is another.
pub const WATCH: u32 = 1 << 6;
/// The thread was switched away from, and has a restartable sequence to look at.
pub const RSEQ: u32 = 1 << 3;
/// A higher floor has left something to the thread (`later`).
pub const LATER: u32 = 1 << 8;
/// Events have sampled the thread, and owe signals for that.
pub const PERF: u32 = 1 << 9;
/// The thread must not sleep where a signal could wake it: set within one call only (`sched::sleep::without_waiting`).
pub const NO_WAIT: u32 = 1 << 7;
