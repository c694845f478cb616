//! `wait4` and `waitid`: what became of the children.
//!
//! The parent's tree lock is held for one look at the children; a zombie is claimed by one waiter, taken
//! out of every list, and its usage is added to the parent's.

use super::{group, table};
use crate::diag::exec_phases::PhaseTimer;
use crate::diag::phase::Phase;
use crate::process::ptrace;
use crate::process::task::current::current;
use crate::process::task::process::Process;
use crate::process::timers::times::Usage;
use abi::signal::{Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Which children.
#[derive(Clone)]
pub enum Which {
    Any,
    Pid(i32),
    Group(i32),
    /// The one that a pidfd means.
    Process(Arc<Process>),
}

/// What to wait for, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub exited: bool,
    pub stopped: bool,
    pub continued: bool,
    pub no_hang: bool,
    /// Leave the child to be waited for again.
    pub no_wait: bool,
    /// Children of any kind.
    pub all: bool,
    /// Only children that do not send SIGCHLD.
    pub clones: bool,
    /// Only those of the calling thread: children that it made, tasks that it traces.
    pub own: bool,
}

/// What became of a child.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub pid: i32,
    pub uid: u32,
    /// As `wait4` stores it.
    pub status: i32,
    /// CLD_* and the matching si_status.
    pub code: i32,
    pub info_status: i32,
    pub usage: Usage,
}

/// Waits for a child; `None` if `no_hang` and nothing is there.
///
/// # Errors
/// `ECHILD` if there is no such child, `ERESTARTSYS` on a signal.
pub fn wait(which: Which, options: &Options) -> Result<Option<Report>> {
    let task = current();
    let process = task.process();
    let look = || match look(process, &which, options) {
        Ok(None) if options.no_hang => Some(Ok(None)),
        Ok(None) => None,
        found => Some(found),
    };
    match options.no_hang {
        true => process.children_changed.wait_interruptible(look)?,
        false => process.children_changed.sleep_interruptible(look)?,
    }
}

enum Found {
    Zombie(Arc<Process>),
    Other(Report),
}

/// One look at the children: at the one that is named, or at all.
fn look(process: &Arc<Process>, which: &Which, options: &Options) -> Result<Option<Report>> {
    let timer = PhaseTimer::start();
    let named = named(process, which)?;
    let mut any = false;
    let mut found = None;
    let mut ending = None;
    let gone = {
        let mut tree = process.tree().lock();
        let mut ask = |child: &Arc<Process>| {
            if matches(child, which, options) {
                any = true;
                if child.is_ending() {
                    ending = Some(child.clone());
                }
                found = state(child, process, options);
            }
            found.is_some()
        };
        match &named {
            Some(child) if tree.children.contains(child) => drop(ask(child)),
            Some(_) => {}
            None if matches!(which, Which::Pid(_)) => {}
            None => drop(tree.children.iter().any(ask)),
        }
        match &found {
            Some(Found::Zombie(child)) if !options.no_wait => tree.children.remove(child),
            _ => None,
        }
    };
    drop(gone);
    if found.is_none()
        && let Some(child) = ending
    {
        // Its SIGCHLD may have arrived: a handler that waits must find it.
        child.is_zombie_by_now();
        return look(process, which, options);
    }
    if found.is_none() {
        match ptrace::look(process, which, options) {
            ptrace::Found::Told(report) => return Ok(Some(report)),
            ptrace::Found::Quiet => any = true,
            ptrace::Found::None => {}
        }
    }
    match found {
        None if any => Ok(None),
        None => Err(Errno::ECHILD),
        Some(Found::Other(report)) => Ok(Some(report)),
        Some(Found::Zombie(child)) => {
            let report = bury(process, &child, options);
            drop(child);
            timer.finish(Phase::Wait, process.pid());
            Ok(Some(report))
        }
    }
}

/// What became of a zombie that was claimed, or that is left to be waited for again.
fn bury(process: &Process, child: &Arc<Process>, options: &Options) -> Report {
    let report = exit_report(child);
    if !options.no_wait {
        let mut spent = process.spent.lock();
        spent.children.add(&report.usage);
        spent.children.add(&child.children_usage());
        drop(spent);
        release(child);
    }
    report
}

/// The one process that is meant, if it is one.
fn named(process: &Process, which: &Which) -> Result<Option<Arc<Process>>> {
    Ok(match which {
        Which::Pid(pid) => match table::lookup(*pid) {
            // A thread that somebody traces has a number that is no process's.
            None if process.tracees.is_empty() => return Err(Errno::ECHILD),
            found => found,
        },
        Which::Process(process) => Some(process.clone()),
        Which::Any | Which::Group(_) => None,
    })
}

fn matches(child: &Arc<Process>, which: &Which, options: &Options) -> bool {
    let chosen = match which {
        Which::Any => true,
        Which::Pid(pid) => child.pid() == *pid,
        Which::Group(pgid) => child.pgid() == *pgid,
        Which::Process(process) => Arc::ptr_eq(child, process),
    };
    // Relaxed: changed with the parent, whose lock is held.
    let is_clone = child.exit_signal.load(Ordering::Relaxed) != Signal::SIGCHLD.number();
    if options.own && child.maker() != current().tid() {
        return false;
    }
    chosen && (options.all || is_clone == options.clones)
}

fn state(child: &Arc<Process>, parent: &Process, options: &Options) -> Option<Found> {
    let traced_by_us = child.is_led_by_tracee_of(parent);
    if child.is_zombie() {
        if traced_by_us == Some(false) {
            // It waits first.
            return None;
        }
        let is_free = || if options.no_wait { !child.is_reaped() } else { child.claim_reap() };
        let taken = options.exited && is_free();
        return taken.then(|| Found::Zombie(child.clone()));
    }
    let consume = !options.no_wait;
    if options.stopped
        // As its tracer it hears of the stops of its threads, one by one.
        && traced_by_us != Some(true)
        && let Some(signal) = child.signals.take_stop_report(consume)
    {
        let status = signal.number() << 8 | 0x7f;
        return Some(Found::Other(report(child, status, code::CLD_STOPPED, signal.number())));
    }
    if options.continued && child.signals.take_continue_report(consume) {
        let signal = Signal::SIGCONT.number();
        return Some(Found::Other(report(child, 0xffff, code::CLD_CONTINUED, signal)));
    }
    None
}

fn report(child: &Process, status: i32, code: i32, info_status: i32) -> Report {
    Report { pid: child.pid(), uid: child.uid(), status, code, info_status, usage: child.usage() }
}

fn exit_report(child: &Process) -> Report {
    let status = child.exit_status();
    let (code, info_status) = status.to_child_info();
    report(child, i32::from(status.raw()), code, info_status)
}

/// The end of a zombie that was claimed: its numbers, its group and its last thread go.
pub(super) fn release(process: &Arc<Process>) {
    let (threads, parent) = {
        let mut tree = process.tree().lock();
        (core::mem::take(&mut tree.threads), tree.parent.take())
    };
    group::leave(process);
    process.signals.release();
    threads.iter().for_each(|thread| thread.signals.release());
    ptrace::reaped(process);
    for thread in threads.iter() {
        table::remove_task(thread.tid());
    }
    if threads.iter().all(|thread| !thread.is_leader()) {
        // It left before the last thread, and has kept its number.
        table::remove_task(process.pid());
    }
    table::remove_process(process.pid());
    drop((threads, parent));
}
