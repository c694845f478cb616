//! Sending: who gets a signal, and the flag and wake-up that make it act.
//!
//! Works in any context. Never looks at user memory, never sleeps.

use super::charge::{self, Charge, Counted};
use super::pending::dies;
use crate::process::sched::{self, State};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::tree::table::{self, Who};
use abi::signal::{SaFlags, SigInfo, SigSet, Signal, code};
use abi::{Errno, Result};
use alea_sigq::Pushed;
use alloc::sync::Arc;

/// Where a signal is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    /// The one thread.
    Thread,
    /// Any thread of the process.
    Process,
}

/// Sends a signal to a process: any of its threads may take it.
///
/// # Errors
/// `EAGAIN` when a real-time signal exceeds the receiver's RLIMIT_SIGPENDING, or memory.
pub fn send_to_process(process: &Arc<Process>, signal: Signal, info: SigInfo) -> Result<()> {
    let Some(thread) = process.any_thread() else { return Ok(()) };
    send(process, &thread, Target::Process, signal, info, None)
}

/// Sends a signal to one thread.
///
/// # Errors
/// As [`send_to_process`].
pub fn send_to_task(task: &Arc<Task>, signal: Signal, info: SigInfo) -> Result<()> {
    send(task.process(), task, Target::Thread, signal, info, None)
}

/// Sends a signal to every process of a group; true if there was one.
pub fn send_to_group(who: impl Into<Who>, signal: Signal, info: SigInfo) -> bool {
    let mut found = false;
    table::for_each_in_group(who, &mut |process| {
        found = true;
        // A full queue of one member must not keep the signal from the others.
        if let Err(Errno::EAGAIN) = send_to_process(process, signal, info) {}
    });
    found
}

/// Sends a POSIX timer's signal, to one thread or to the process. It has been counted since the timer was made, and is
/// queued once. False if there is no memory to queue it in, or nobody who will take it.
pub fn send_timer(
    process: &Arc<Process>,
    thread: Option<&Arc<Task>>,
    signal: Signal,
    info: SigInfo,
    counted: &Arc<Counted>,
) -> bool {
    let target = if thread.is_some() { Target::Thread } else { Target::Process };
    let Some(thread) = thread.cloned().or_else(|| process.any_thread()) else { return false };
    let charge = Some(counted.clone());
    send(process, &thread, target, signal, info, charge).is_ok()
}

fn send(
    process: &Arc<Process>,
    thread: &Arc<Task>,
    target: Target,
    signal: Signal,
    info: SigInfo,
    timer: Option<Arc<Counted>>,
) -> Result<()> {
    if process.is_exiting() && signal != Signal::SIGKILL {
        return Ok(());
    }
    prepare(process, signal);
    if is_dropped(process, thread, signal, &info) {
        return Ok(());
    }
    let queue = match target {
        Target::Thread => &thread.signals.pending,
        Target::Process => &process.signals.pending,
    };
    let pushed = match timer {
        Some(counted) => queue.lock().push_timer(signal, info, Charge::Timer(counted)),
        None => {
            let (uid, most) = charge::terms(process, thread, signal, &info);
            let charge = || Counted::try_new(uid, most).map(Charge::Signal);
            queue.lock().push(signal, info, charge)
        }
    };
    match pushed {
        Pushed::Pending => act(process, thread, target, signal),
        Pushed::Merged => {}
        Pushed::Refused => return Err(Errno::EAGAIN),
    }
    process.signals.arrived.wake_all();
    Ok(())
}

/// A stop signal and SIGCONT cancel each other; SIGCONT resumes even if it is blocked or ignored.
fn prepare(process: &Arc<Process>, signal: Signal) {
    if signal == Signal::SIGCONT {
        discard(process, SigSet::STOPS);
        super::stop::resume(process);
    } else if SigSet::STOPS.contains(signal) {
        discard(process, SigSet::of(&[Signal::SIGCONT]));
    }
}

fn discard(process: &Process, set: SigSet) {
    process.signals.pending.lock().discard(set);
    process.for_each_thread(&mut |thread| thread.signals.pending.lock().discard(set));
}

/// Whether sending has no effect: ignored and not blocked, or init without a handler. `thread` is the target, or
/// the process's first.
fn is_dropped(process: &Process, thread: &Task, signal: Signal, info: &SigInfo) -> bool {
    let is_shown = thread.tracing.is_traced() && signal != Signal::SIGKILL;
    if is_shown || thread.signals.blocked().contains(signal) {
        // It may be waited for, or be caught by the time it is let through; a tracer wants to see it.
        return false;
    }
    let actions = process.signals.actions();
    if process.is_init() && !(signal == Signal::SIGKILL && info.code == code::SI_KERNEL) {
        let (ignored, caught) = actions.sets();
        return !caught.contains(signal) || ignored.contains(signal);
    }
    actions.ignores(signal)
}

/// Flags and wakes a thread that will take the signal.
fn act(process: &Arc<Process>, thread: &Arc<Task>, target: Target, signal: Signal) {
    // To a thread that has ended it comes too late.
    if signal == Signal::SIGKILL && !(target == Target::Thread && thread.is_exiting()) {
        terminate_threads(process, None);
        return;
    }
    let wants = |t: &Task| !t.signals.blocked().contains(signal) && !t.is_exiting();
    // Of a process, `thread` is the first.
    let first_wants = wants(thread);
    if first_wants && (target == Target::Thread || !thread.tracing.may_stand()) {
        make_look(thread);
        return;
    }
    if target == Target::Thread {
        return;
    }
    let mut chosen = None;
    process.for_each_thread(&mut |t| {
        if chosen.is_none() && wants(t) && !t.tracing.may_stand() {
            chosen = Some(t.clone());
        }
    });
    // Who stands for its tracer takes nothing for a while; if nobody else wants it, it looks when it goes on.
    if let Some(chosen) = chosen.as_ref().or(first_wants.then_some(thread)) {
        make_look(chosen);
    }
}

/// Makes the thread look at its signals: it wakes up, or leaves user mode on its CPU for a moment.
#[inline]
pub fn make_look(thread: &Arc<Task>) {
    thread.set_work(work::SIGNAL);
    // One that ends its process ends a wait that only death ends, too, where that one looks.
    if thread.sched.state() == State::Killable && dies(thread) {
        thread.wake_killable();
    } else if !thread.wake_interruptible() {
        sched::kick(thread);
    }
}

/// A new thread that is traced begins with SIGSTOP. It does not run yet.
pub fn stop_at_start(thread: &Arc<Task>) {
    let info = SigInfo::new(Signal::SIGSTOP, code::SI_KERNEL);
    // Without details: nothing counts it, and nothing can refuse it.
    thread.signals.pending.lock().push(Signal::SIGSTOP, info, || None);
    thread.set_work(work::SIGNAL);
}

/// The details of the signal at place `at` of a thread's own queue, or of its process's.
pub fn peek(thread: &Task, shared: bool, at: usize) -> Option<SigInfo> {
    let queue = if shared { &thread.process().signals.pending } else { &thread.signals.pending };
    queue.lock().peek(at).copied()
}

/// The running thread takes the signals of `set` no more, because it blocks them or ends. One of them that was sent
/// to the process may have been left to it: another thread is woken for it (as `retarget_shared_pending` in Linux).
pub fn retarget(task: &Task, set: SigSet) {
    let process = task.process();
    if process.thread_count() == 1 {
        return;
    }
    let mut waiting = set.minus(set.minus(process.signals.pending()));
    if waiting == SigSet::EMPTY {
        return;
    }
    process.for_each_thread(&mut |thread| {
        let takes = waiting.minus(thread.signals.blocked());
        let is_other = !core::ptr::eq(task, Arc::as_ptr(thread)) && !thread.is_exiting();
        if is_other && takes.intersects(waiting) {
            make_look(thread);
            waiting = waiting.minus(takes);
        }
    });
}

/// Makes every thread but `except` die as soon as it can: SIGKILL, exit_group, exec.
pub fn terminate_threads(process: &Arc<Process>, except: Option<&Task>) {
    process.for_each_thread(&mut |thread| {
        if except.is_some_and(|e| core::ptr::eq(e, Arc::as_ptr(thread))) {
            return;
        }
        let info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
        // A kill has no entry, so nothing counts it.
        thread.signals.pending.lock().push(Signal::SIGKILL, info, || None);
        thread.set_work(work::SIGNAL);
        if !thread.wake_killable() {
            sched::kick(thread);
        }
    });
    process.signals.continued.wake_all();
}

/// Notifies the parent that the process stopped or went on: SIGCHLD, and a wake-up for `wait`.
pub fn notify_parent(parent: &Arc<Process>, info: SigInfo) {
    send_sigchld(parent, info);
    parent.children_changed.wake_all();
}

/// Sends SIGCHLD, as the parent's action asks for it. Returns whether the parent wants its children reaped without
/// `wait` (SIGCHLD ignored or SA_NOCLDWAIT); only meaningful for an exit.
pub fn send_sigchld(parent: &Arc<Process>, info: SigInfo) -> bool {
    let action = parent.signals.actions().get(Signal::SIGCHLD);
    let flags = action.known_flags();
    let is_exit = matches!(info.code, code::CLD_EXITED | code::CLD_KILLED | code::CLD_DUMPED);
    let ignored = action.handler == abi::signal::SIG_IGN;
    let quiet = !is_exit && flags.contains(SaFlags::NOCLDSTOP);
    if !ignored && !quiet {
        // SIGCHLD is no real-time signal: it cannot exceed a limit.
        if let Err(error) = send_to_process(parent, Signal::SIGCHLD, info) {
            unreachable!("SIGCHLD refused: {error}");
        }
    }
    is_exit && (ignored || flags.contains(SaFlags::NOCLDWAIT))
}
