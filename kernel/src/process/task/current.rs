//! The running task.
//!
//! Owns the one list of what runs on each CPU. What it gives is good for as long as the task runs, and is never given
//! to another thread. No locks.

use super::task::Task;
use crate::mm::frames::inject::Fate;
use crate::process::signal;
use crate::vfs::Capability;
use core::sync::atomic::Ordering;

crate::running_tasks! {
    /// The tasks that run on the CPUs.
    pub(in crate::process) static TASKS: Task
}

/// The running task, in its own hands.
pub type Current = crate::base::current::Current<Task>;

/// Ambiguous, and so an error, if one of them could be given to another thread or left in a static.
const _: fn() = || {
    trait StaysHere<Why> {
        fn check() {}
    }
    struct IsSend;
    struct IsSync;
    impl<T> StaysHere<()> for T {}
    impl<T: Send> StaysHere<IsSend> for T {}
    impl<T: Sync> StaysHere<IsSync> for T {}
    <Current as StaysHere<_>>::check();
    <crate::sync::OwnerRef<i32> as StaysHere<_>>::check();
};

/// The running task.
#[inline]
pub fn current() -> Current {
    TASKS.current()
}

/// A counted reference to the running task.
#[inline]
pub fn current_arc() -> alloc::sync::Arc<Task> {
    TASKS.current_arc()
}

/// What becomes of an allocation of the running task under `alea.fail_alloc`, which begins with so many forks from process 1: what
/// is nearer to it, which is the harness, and the kernel's own threads are spared. One that has named an allocation has that alone.
pub fn fate_of_allocation(first_generation: u32) -> Fate {
    if crate::base::percpu::current().is_null() {
        return Fate::Spared;
    }
    let task = current();
    // Relaxed: only the thread itself counts, and no interrupt handler allocates.
    let named = &task.settings.fail_nth;
    match named.load(Ordering::Relaxed) {
        0 if task.is_kernel_thread() || task.process().generation() < first_generation => {
            Fate::Spared
        }
        0 => Fate::Drawn,
        left => {
            named.store(left - 1, Ordering::Relaxed);
            if left == 1 { Fate::Named } else { Fate::Spared }
        }
    }
}

/// Whether what the running task needs may come out of the reserve (decision 0011): it is an administrator's, process 1, the
/// kernel's own thread, or one that dies and will give back what it has. Before there are tasks it is the kernel itself.
pub fn is_trusted_with_memory() -> bool {
    if crate::base::percpu::current().is_null() {
        return true;
    }
    let task = current();
    let process = task.process();
    if task.is_kernel_thread() || process.is_init() || process.is_exiting() || signal::killed(&task)
    {
        return true;
    }
    let cred = task.cred();
    cred.capable(Capability::SYS_RESOURCE) || cred.capable(Capability::SYS_ADMIN)
}

/// The account of the process that runs, 0 for process 1 and the kernel's own threads, which nobody would kill for what they take.
pub fn payer() -> u16 {
    if crate::base::percpu::current().is_null() {
        return 0;
    }
    let task = current();
    let process = task.process();
    if task.is_kernel_thread() || process.is_init() { 0 } else { process.account.number() }
}
