//! The running task.
//!
//! Owns the one list of what runs on each CPU. What it gives is good for as long as the task runs, and is never given
//! to another thread. No locks.

use super::task::Task;

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

/// Whether the running task's allocations are never made to fail by `alea.fail_alloc`: process 1, which is the harness, and
/// the kernel's own threads.
pub fn is_spared_faults() -> bool {
    if crate::base::percpu::current().is_null() {
        return true;
    }
    let task = current();
    task.is_kernel_thread() || task.process().is_init()
}
