//! The stop: a tracee tells its tracer, and stands until it is told how to go on.
//!
//! Runs in the tracee itself, with interrupts on and no lock held; only death ends a stop that the tracer does not end, and
//! the last stop of who was killed not even that.
//! A stop is told by SIGCHLD and to `wait`, after its state is whole: a tracer that has heard of it may ask at once.

use super::order::{Mode, Resume};
use super::told::Stop;
use super::tracee::{State, Tracee};
use super::{regs, vectors};
use crate::arch::entry::frame::{FLAG_TF, TrapFrame};
use crate::process::signal;
use crate::process::task::current::{Current, TASKS};
use crate::process::task::flags::LeavesByIret;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::watch;
use abi::ptrace::Event;
use abi::signal::{SigInfo, Signal, code};
use alloc::sync::Arc;

/// How a stop ended.
pub(super) struct Ended {
    /// The signal that the tracer gives, 0 for none.
    pub(super) signal: i32,
    /// The details of the signal, as the tracer has left them.
    pub(super) info: Option<SigInfo>,
}

/// What ends a stop beside the tracer's word and the tracer's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// SIGKILL.
    Killed,
    /// Nothing: the kill is why it stops. [`hurry`] ends it if memory runs out.
    LetGo,
}

/// Stops the running task, whose user registers are `frame`, until its tracer lets it go on or it is killed.
pub(super) fn stop(task: Current, tracee: &Tracee, frame: &mut TrapFrame, stop: Stop) -> Ended {
    stop_until(task, tracee, frame, stop, Until::Killed)
}

/// The stop of the running task before it ends. One that was killed, or whose process ends, stops here too, as on Linux:
/// then no further kill ends the stop.
pub(super) fn last_stop(task: Current, tracee: &Tracee, frame: &mut TrapFrame, stop: Stop) {
    let dies_with_others = task.process().is_exiting() || signal::killed(&task);
    let until = if dies_with_others { Until::LetGo } else { Until::Killed };
    // What the tracer makes of the registers, and a signal, are of no use to anybody.
    let _ended = stop_until(task, tracee, frame, stop, until);
}

fn stop_until(
    task: Current,
    tracee: &Tracee,
    frame: &mut TrapFrame,
    stop: Stop,
    until: Until,
) -> Ended {
    let way = task.leave_by_iret();
    // The flag is the tracer's, which does not want to see it.
    pause_stepping(task, frame, &way);
    {
        let mut state = tracee.state.lock();
        if state.over || (until == Until::Killed && signal::killed(&task)) {
            return Ended { signal: stop.own, info: stop.info };
        }
        state.regs = regs::take(frame);
        state.regs_changed = false;
        state.stop = Some(stop);
        (state.reported, state.listening, state.order) = (false, false, None);
    }
    task.tracing.set_standing(true);
    tell(&task, tracee, stop.why, stop.status & 0x7f);
    let info = stand(task, tracee, until);
    task.tracing.set_standing(false);
    go_on(task, tracee, (frame, &way), info.or(stop.info))
}

/// Tells the tracer's process by SIGCHLD, with this code and status, and by waking its `wait`.
pub(super) fn tell(task: &Task, tracee: &Tracee, code: i32, status: i32) {
    let (utime, stime) = task.times.usage().ticks();
    let (tid, uid) = (task.tid(), task.cred_arc().uid);
    let info = SigInfo::child(code, tid, uid, status, utime, stime);
    signal::notify_parent(tracee.tracer.process(), info);
}

/// Sleeps until the tracee may go on, and answers its tracer meanwhile. The details of its signal, if they were changed.
fn stand(task: Current, tracee: &Tracee, until: Until) -> Option<SigInfo> {
    enum Woken {
        Goes,
        Answers,
    }
    let look = |state: &mut State| match () {
        () if state.over || state.order.is_some() => Some(Woken::Goes),
        () if state.vectors.is_asked() => Some(Woken::Answers),
        () => None,
    };
    let look = || look(&mut tracee.state.lock());
    let wait = || match until {
        Until::Killed => tracee.resumed.wait_killable(look),
        Until::LetGo => Ok(tracee.resumed.wait(look)),
    };
    while let Ok(Woken::Answers) = wait() {
        vectors::answer(task, tracee);
    }
    let mut state = tracee.state.lock();
    // Until here, by who was killed or let go: from here on its tracer finds nobody standing.
    let stop = state.stop.take();
    state.listening = false;
    drop(state);
    // Who asked for an answer meanwhile has to hear that there is none.
    tracee.answered.wake_all();
    stop.and_then(|stop| stop.info)
}

fn go_on(
    task: Current,
    tracee: &Tracee,
    (frame, way): (&mut TrapFrame, &LeavesByIret),
    info: Option<SigInfo>,
) -> Ended {
    let (order, changed) = {
        let mut state = tracee.state.lock();
        let order = state.order.take();
        let changed = core::mem::take(&mut state.regs_changed);
        (order.unwrap_or(Resume::FREE), changed.then_some(state.regs))
    };
    if let Some(regs) = changed {
        regs::put(frame, &regs, way);
    }
    task.tracing.set_mode(order.mode);
    set_mode(task, frame, order.mode, way);
    Ended { signal: order.signal, info }
}

/// Makes the running task's registers and calls do what `mode` says.
fn set_mode(task: Current, frame: &mut TrapFrame, mode: Mode, _way: &LeavesByIret) {
    watch::watch_for_tracer(task, mode.watches_calls());
    if mode.steps() && frame.rflags & FLAG_TF == 0 {
        frame.rflags |= FLAG_TF;
        task.tracing.set_stepping(true);
    }
    task.tracing.breakpoints.step_blocks(task, mode == Mode::Block);
}

/// The running task is about to enter a handler: if it was stepped, that step ends there, and the handler's frame is not
/// to have the flag. Whether it was.
#[inline]
pub fn pause_stepping(task: Current, frame: &mut TrapFrame, _way: &LeavesByIret) -> bool {
    let steps = task.tracing.is_stepping();
    if steps {
        frame.rflags &= !FLAG_TF;
        task.tracing.set_stepping(false);
    }
    steps
}

/// The running task was stepped to the first instruction of a handler.
#[cold]
pub fn handler_stop(task: Current, frame: &mut TrapFrame) {
    if let Some(tracee) = task.tracing.tracee() {
        stop(task, &tracee, frame, Stop::trap(Signal::SIGTRAP.number(), 0, &task));
    }
}

/// Nobody traces the running task any more: its calls are its own.
pub(super) fn be_free(task: Current) {
    task.tracing.set_mode(Mode::Run);
    watch::unwatch(task);
}

/// A traced task is about to get a signal: which one it does get, `info` with it.
#[cold]
pub fn signal_stop(
    task: Current,
    frame: &mut TrapFrame,
    signal: Signal,
    info: &mut SigInfo,
) -> Option<Signal> {
    let Some(tracee) = task.tracing.tracee() else { return Some(signal) };
    if signal == Signal::SIGKILL {
        return Some(signal);
    }
    let ended = stop(task, &tracee, frame, Stop::signal(signal, *info));
    let given = Signal::new(ended.signal)?;
    *info = match ended.info {
        Some(info) if info.signo == given.number() => info,
        _ => {
            let tracer = &tracee.tracer;
            SigInfo::sent_by(given, code::SI_USER, tracer.process().pid(), tracer.uid())
        }
    };
    if task.signals.blocked().contains(given) {
        // It waits until it is let through. A full queue loses it, as on Linux.
        let _queued = signal::send_to_task(&TASKS.current_arc(), given, *info);
        return None;
    }
    Some(given)
}

/// A traced task takes part in the stop of its process.
#[cold]
pub fn group_stop(task: Current, frame: &mut TrapFrame, signal: Signal) {
    let Some(tracee) = task.tracing.tracee() else { return };
    // It is one stop, whoever asked for it. What comes from here on asks for another one; what came before is seen now: a
    // tracer must not listen for a SIGCONT that has passed.
    task.tracing.takes_trap();
    let still_stopped = task.process().signals.job().stopped.is_some();
    if !still_stopped && !tracee.seized {
        return;
    }
    let signal = if still_stopped { signal } else { Signal::SIGTRAP };
    let mut group = Stop::group(signal);
    if tracee.seized {
        group = Stop::trap(signal.number() | (Event::Stop as i32) << 8, 0, &task);
        group.why = if still_stopped { code::CLD_STOPPED } else { code::CLD_TRAPPED };
    }
    stop(task, &tracee, frame, group);
}

/// Stops by itself if it is to: PTRACE_INTERRUPT, or a SIGCONT to who was seized.
#[inline]
pub fn trap(task: Current, frame: &mut TrapFrame) {
    if task.tracing.takes_trap() {
        trap_stop(task, frame);
    }
}

#[cold]
fn trap_stop(task: Current, frame: &mut TrapFrame) {
    let Some(tracee) = task.tracing.tracee() else { return };
    let stopped = task.process().signals.job().stopped;
    let signal = stopped.unwrap_or(Signal::SIGTRAP);
    let status = signal.number() | (Event::Stop as i32) << 8;
    stop(task, &tracee, frame, Stop::trap(status, 0, &task));
}

/// The process goes on after a stop: those of its threads that were seized tell their tracers.
pub fn continued(process: &Process) {
    process.for_each_thread(&mut |thread| {
        let Some(tracee) = thread.tracing.tracee().filter(|tracee| tracee.seized) else { return };
        thread.tracing.set_trap();
        thread.set_work(work::SIGNAL);
        let listens = {
            let mut state = tracee.state.lock();
            if state.listening {
                state.order = Some(Resume::FREE);
            }
            core::mem::take(&mut state.listening)
        };
        if listens {
            tracee.resumed.wake_all();
        } else if !thread.wake_interruptible() {
            crate::process::sched::kick(thread);
        }
    });
}

/// The memory of a process that ends is needed: none of its threads stands at its end for a tracer any longer.
pub fn hurry(process: &Process) {
    process.for_each_thread(&mut |thread| {
        if let Some(tracee) = thread.tracing.tracee()
            && tracee.state.lock().go_on()
        {
            tracee.resumed.wake_all();
        }
    });
}

/// Lets a tracee go that is traced no more, wherever it is.
pub(super) fn release(task: &Arc<Task>, tracee: &Tracee, signal: i32) {
    {
        let mut state = tracee.state.lock();
        state.over = true;
        state.order = Some(Resume { mode: Mode::Run, signal });
    }
    tracee.resumed.wake_all();
    // Its process may be stopped: it takes part in that from now on like any other.
    task.set_work(work::SIGNAL);
    task.process().signals.wake_stopped();
    crate::process::sched::kick(task);
}
