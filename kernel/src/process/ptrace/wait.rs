//! What a tracer's `wait` finds: stops, and the ends of threads and of processes that are others' children.

use super::attach;
use crate::process::task::current::current;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::tree::exit::Status;
use crate::process::tree::table;
use crate::process::tree::wait::{Options, Report, Which};
use abi::signal::code;
use alloc::sync::Arc;

/// What a look at the tracees gave.
pub enum Found {
    /// There is none of those that were asked for.
    None,
    /// There is one, with nothing to tell.
    Quiet,
    Told(Report),
}

enum News {
    Stopped(i32),
    Ended(Status),
    /// Its end is being told: it can be waited for within an instant.
    Ending,
}

/// One look at those whom the threads of `process` trace.
#[inline]
pub fn look(process: &Process, which: &Which, options: &Options) -> Found {
    if process.tracees.is_empty() {
        return Found::None;
    }
    look_at_all(process, which, options)
}

#[cold]
fn look_at_all(process: &Process, which: &Which, options: &Options) -> Found {
    let mut any = false;
    let news = process.tracees.with(|list| {
        list.iter().find_map(|task| {
            if !is_meant(task, which) || (options.own && !is_own(task)) {
                return None;
            }
            any = true;
            news(task, options).map(|news| (task.clone(), news))
        })
    });
    match news {
        None if any => Found::Quiet,
        None => Found::None,
        Some((task, News::Ending)) => {
            // Its SIGCHLD may have arrived: a handler that waits must find it.
            task.process().is_zombie_by_now();
            look_at_all(process, which, options)
        }
        Some((task, News::Stopped(status))) => Found::Told(stopped(&task, status)),
        Some((task, News::Ended(status))) => Found::Told(ended(&task, status, options)),
    }
}

fn is_own(task: &Task) -> bool {
    task.tracing.tracer().is_some_and(|tracer| core::ptr::eq(&*tracer, &*current()))
}

fn is_meant(task: &Task, which: &Which) -> bool {
    match which {
        Which::Any => true,
        Which::Pid(pid) => task.tid() == *pid,
        Which::Group(pgid) => task.process().pgid() == *pgid,
        Which::Process(process) => task.is_leader() && Arc::ptr_eq(task.process(), process),
    }
}

/// Takes what there is to tell, or looks at it only. A stop is told whatever `wait` asks for.
fn news(task: &Arc<Task>, options: &Options) -> Option<News> {
    let tracee = task.tracing.tracee()?;
    let mut state = tracee.state.lock();
    if let Some(status) = state.ended {
        if options.exited && task.is_leader() && task.process().is_ending() {
            return Some(News::Ending);
        }
        // A leader is told of with its process. Taken under the locks: one `wait` of several finds it.
        let is_over = options.exited && (!task.is_leader() || task.process().is_zombie());
        if is_over && !options.no_wait {
            state.ended = None;
        }
        return is_over.then_some(News::Ended(status));
    }
    let is_news = !state.reported && !state.listening && state.order.is_none();
    let status = state.stop.filter(|_| is_news)?.status;
    state.reported = !options.no_wait;
    Some(News::Stopped(status))
}

fn stopped(task: &Task, status: i32) -> Report {
    report(task, status << 8 | 0x7f, code::CLD_TRAPPED, status)
}

fn ended(task: &Arc<Task>, status: Status, options: &Options) -> Report {
    let (code, number) = status.to_child_info();
    let report = report(task, status.raw().into(), code, number);
    if !options.no_wait {
        attach::detach(task, 0);
        attach::settle(task);
    }
    report
}

fn report(task: &Task, status: i32, code: i32, info_status: i32) -> Report {
    let (pid, uid, usage) = (task.tid(), task.cred_arc().uid, task.times.usage());
    Report { pid, uid, status, code, info_status, usage }
}

/// A process goes for good: nobody traces its leader any more.
#[inline]
pub fn reaped(process: &Process) {
    if process.has_traced_leader()
        && let Some(leader) = table::lookup_task(process.pid())
    {
        attach::detach(&leader, 0);
    }
}
