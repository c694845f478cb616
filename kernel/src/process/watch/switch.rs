//! What turns counting on and off, and how each task hears of it.
//!
//! Owns the switch of all tasks; what is asked of one process stands in its threads. Never changes what a task has in use: who
//! asks sets a work flag, and the task takes over what is asked on its way to user mode. So a call that is under way when
//! counting begins is not counted. Locks: `Leaf`, for what is asked.

use super::counts::{self, Counts};
use super::names::name_of;
use crate::fs::procfs::TextBuf;
use crate::mm::fallible::try_arc;
use crate::process::ptrace;
use crate::process::sched;
use crate::process::task::current::{Current, TASKS};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::tree::table::for_each_process;
use crate::sync::{OwnerCell, SpinLock, level};
use crate::try_writeln;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// All tasks are counted. SeqCst where it is set and where a task is born: one of the two sees the other.
static COUNTING: AtomicBool = AtomicBool::new(false);

#[inline]
pub(super) fn is_counting() -> bool {
    // Relaxed: a task that misses it now sees it by its work flag.
    COUNTING.load(Ordering::Relaxed)
}

/// The counters of one process, and whether they count.
pub(super) struct Watch {
    counts: Counts,
    on: AtomicBool,
}

/// A task's own part.
pub(in crate::process) struct Watched {
    /// What was asked of its process.
    asked: SpinLock<Option<Arc<Watch>>, level::Leaf>,
    /// What it goes by.
    own: OwnerCell<Option<Arc<Watch>>>,
}

impl Watched {
    pub(in crate::process) const fn new() -> Self {
        Self { asked: SpinLock::new(None), own: OwnerCell::new(None) }
    }

    fn asked(&self) -> Option<Arc<Watch>> {
        self.asked.lock().clone()
    }
}

/// What only the task itself may do.
impl Current {
    /// Does something with the counters of the task's process, if they count.
    #[inline]
    pub(super) fn with_counts(self, act: impl FnOnce(&Counts)) -> bool {
        let own = self.map(|task| &task.watched.own).borrow();
        match &*own {
            // Relaxed: a call more or less.
            Some(watch) if watch.on.load(Ordering::Relaxed) => {
                act(&watch.counts);
                true
            }
            _ => false,
        }
    }
}

/// The running task takes over what is asked of it.
#[cold]
pub(in crate::process) fn refresh(task: Current) {
    task.clear_work(work::WATCH);
    let old = task.map(|task| &task.watched.own).replace(task.watched.asked());
    drop(old);
    watch_for_tracer(task, ptrace::watches_calls(&task));
}

/// The running task's tracer wants to see its calls, or not: they are watched as long as somebody does, and for ever if there
/// is a filter.
pub fn watch_for_tracer(task: Current, wants: bool) {
    let filters = task.seccomp.is_on();
    TASKS.watch_calls(wants || filters || is_counting() || task.with_counts(|_| ()));
}

/// A call found that nobody watches the running task any more.
pub(in crate::process) fn unwatch(task: Current) {
    watch_for_tracer(task, false);
}

/// A child of the running task is in all lists: a thread is counted with its process, and everybody while all are.
#[inline]
pub(in crate::process) fn inherit(parent: Current, child: &Task, is_thread: bool) {
    if is_thread && let Some(watch) = parent.watched.asked() {
        child.watched.asked.lock().get_or_insert(watch);
        child.set_work(work::WATCH);
    }
    // SeqCst: see the flag.
    if COUNTING.load(Ordering::SeqCst) {
        child.set_work(work::WATCH);
    }
}

fn make_look(task: &Task) {
    task.set_work(work::WATCH);
    sched::kick(task);
}

/// Turns the counting of all tasks on, from nothing, or off.
///
/// # Errors
/// `ENOMEM`.
pub fn set_all(on: bool) -> Result<()> {
    if on {
        counts::begin_all()?;
    }
    // SeqCst: see the flag.
    COUNTING.store(on, Ordering::SeqCst);
    for_each_process(&mut |process| {
        process.for_each_thread(&mut |thread| {
            if !thread.is_kernel_thread() {
                make_look(thread);
            }
        });
    });
    Ok(())
}

/// Turns the counting of one process on, from nothing, or off; what was counted stays to be read.
///
/// # Errors
/// `ENOMEM`; `ESRCH` if it has no thread, `EINVAL` for a thread of the kernel.
pub(in crate::process) fn set_process(process: &Process, on: bool) -> Result<()> {
    let leader = process.any_thread().ok_or(Errno::ESRCH)?;
    if leader.is_kernel_thread() {
        return Err(Errno::EINVAL);
    }
    if !on {
        if let Some(watch) = leader.watched.asked() {
            // Relaxed: as where it is read.
            watch.on.store(false, Ordering::Relaxed);
            process.for_each_thread(&mut |thread| make_look(thread));
        }
        return Ok(());
    }
    let watch = try_arc(Watch { counts: Counts::new()?, on: AtomicBool::new(true) })?;
    // Dropped with nothing locked.
    let mut old = Some(watch.clone());
    process.for_each_thread(&mut |thread| {
        let replaced = thread.watched.asked.lock().replace(watch.clone());
        if let Some(replaced) = replaced {
            // All threads have the same one: the last reference is kept.
            old = Some(replaced);
        }
        make_look(thread);
    });
    drop(old);
    Ok(())
}

/// Lines of `name calls errors ns`, for calls that the process has made since it is counted.
pub(in crate::process) fn process_text(process: &Process) -> Result<Vec<u8>> {
    let watch = process.any_thread().and_then(|thread| thread.watched.asked());
    let Some(watch) = watch else { return Ok(Vec::new()) };
    let mut text = TextBuf::default();
    try_writeln!(text, "name calls errors ns")?;
    for (number, line) in watch.counts.lines() {
        let name = name_of(number);
        try_writeln!(text, "{name} {} {} {}", line.calls, line.errors, line.ns)?;
    }
    text.finish()
}
