//! What turns counting on and off, and how each task hears of it.
//!
//! Owns the switch of all tasks; what is asked of one process stands in its threads. Never changes what a task has in use: who
//! asks sets a work flag, and the task takes over what is asked on its way to user mode. So a call that is under way when
//! counting begins is not counted. Locks: `Leaf`, for what is asked.

use super::counts::{self, Counts};
use super::names::name_of;
use crate::arch::task::Calls;
use crate::fs::procfs::TextBuf;
use crate::mm::fallible::try_arc;
use crate::process::ptrace;
use crate::process::rings;
use crate::process::sched;
use crate::process::seccomp;
use crate::process::task::current::{Current, TASKS};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::tree::table::for_each_process;
use crate::sync::{OwnerCell, SpinLock, level};
use crate::trace::Mark;
use crate::try_writeln;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Why calls are watched, beside by a tracer, by a filter and by the counters of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::process) enum Reason {
    /// All tasks are counted, or the task's process is.
    Count = 1 << 0,
    /// A session of /proc/alea/trace.
    Ring = 1 << 1,
    /// Events of perf_event_open(2).
    Perf = 1 << 2,
    /// Its calls may become signals. Never all tasks'.
    Dispatch = 1 << 3,
}

/// The reasons that are all tasks'. SeqCst where it is set and where a task is born: one of the two sees the other.
static ALL: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(super) fn is_counting() -> bool {
    // Relaxed: a task that misses it now sees it by its work flag.
    ALL.load(Ordering::Relaxed) & Reason::Count as u32 != 0
}

/// Why the calls of a task are watched.
#[derive(Clone, Copy)]
pub(super) struct Reasons {
    all: u32,
    own: u32,
}

impl Reasons {
    #[inline(always)]
    pub fn of(task: &Task) -> Self {
        // Relaxed: as in `is_counting`.
        let order = Ordering::Relaxed;
        Self { all: ALL.load(order), own: task.watched.reasons.load(order) }
    }

    #[inline(always)]
    pub fn is_any(self) -> bool {
        self.all | self.own != 0
    }

    /// Whether it is this reason and no other.
    #[inline(always)]
    pub fn is_only(self, reason: Reason) -> bool {
        self.all | self.own == reason as u32
    }

    /// Whether this reason is among the task's own.
    #[inline(always)]
    pub fn is_own(self, reason: Reason) -> bool {
        self.own & reason as u32 != 0
    }

    /// Whether it is for one that is all tasks'.
    #[inline(always)]
    pub fn is_for_all(self) -> bool {
        self.all != 0
    }
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
    /// Reasons of its own.
    reasons: AtomicU32,
    /// The session that traces it; 0 for none.
    session: AtomicU32,
}

impl Watched {
    pub(in crate::process) const fn new() -> Self {
        Self {
            asked: SpinLock::new(None),
            own: OwnerCell::new(None),
            reasons: AtomicU32::new(0),
            session: AtomicU32::new(0),
        }
    }

    /// The session that traces it. Relaxed: who is told of one that is over finds it no more.
    #[inline]
    pub(in crate::process) fn mark(&self) -> Mark {
        Mark(self.session.load(Ordering::Relaxed))
    }

    /// Gives it to a session, or to none; what it was given to before.
    pub(in crate::process) fn set_mark(&self, mark: Mark) -> Mark {
        // Relaxed: see `mark`.
        Mark(self.session.swap(mark.0, Ordering::Relaxed))
    }

    /// Takes it from a session, if it is given to that.
    pub(in crate::process) fn clear_mark(&self, mark: Mark) -> bool {
        // Relaxed: see `mark`.
        let order = Ordering::Relaxed;
        self.session.compare_exchange(mark.0, 0, order, order).is_ok()
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
    let asked = task.watched.asked();
    // Relaxed: who turns it off makes the task look again.
    let counts = asked.as_ref().is_some_and(|watch| watch.on.load(Ordering::Relaxed));
    change(&task.watched.reasons, Reason::Count, counts);
    let old = task.map(|task| &task.watched.own).replace(asked);
    drop(old);
    watch_for_tracer(task, ptrace::watches_calls(&task));
}

/// The running task's tracer wants to see its calls, or not: they are watched as long as somebody does; after that they go where
/// its filters want them.
pub fn watch_for_tracer(task: Current, wants: bool) {
    let watched = wants || Reasons::of(&task).is_any() || task.with_counts(|_| ());
    TASKS.call_through(match watched {
        true => Calls::Watched,
        false => seccomp::calls(task),
    });
}

/// A call found that nobody watches the running task any more.
pub(in crate::process) fn unwatch(task: Current) {
    watch_for_tracer(task, false);
}

/// A child of the running task is in all lists: a thread is counted with its process, and everybody while all are.
#[inline]
pub(in crate::process) fn inherit(parent: Current, child: &Task, is_thread: bool) {
    rings::inherit(parent, child, is_thread);
    if is_thread && let Some(watch) = parent.watched.asked() {
        child.watched.asked.lock().get_or_insert(watch);
        child.set_work(work::WATCH);
    }
    // SeqCst: see the flag.
    if ALL.load(Ordering::SeqCst) != 0 {
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
    watch_all(Reason::Count, on);
    Ok(())
}

/// From now on the calls of all tasks are watched for this reason, or not. A call that is under way is not.
pub(in crate::process) fn watch_all(reason: Reason, on: bool) {
    change(&ALL, reason, on);
    for_each_process(&mut |process| {
        process.for_each_thread(&mut |thread| {
            if !thread.is_kernel_thread() {
                make_look(thread);
            }
        });
    });
}

/// Whether the calls of all tasks are watched for this reason.
pub(in crate::process) fn is_for_all(reason: Reason) -> bool {
    // Relaxed: who asks is who changes it.
    ALL.load(Ordering::Relaxed) & reason as u32 != 0
}

/// From now on the calls of one task, which is of user space, are watched for this reason, or not. A child does not inherit it.
pub(in crate::process) fn watch_task(task: &Task, reason: Reason, on: bool) {
    change(&task.watched.reasons, reason, on);
    make_look(task);
}

/// The same of a child that has not run.
pub(in crate::process) fn watch_new(task: &Task, reason: Reason) {
    change(&task.watched.reasons, reason, true);
    task.set_work(work::WATCH);
}

fn change(reasons: &AtomicU32, reason: Reason, on: bool) {
    // SeqCst: see `ALL`; for a task's own its work flag orders it.
    if on {
        reasons.fetch_or(reason as u32, Ordering::SeqCst);
    } else {
        reasons.fetch_and(!(reason as u32), Ordering::SeqCst);
    }
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
