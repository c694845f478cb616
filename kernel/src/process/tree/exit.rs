//! The end of threads and processes.
//!
//! A thread gives up its memory, files and directories first, with no lock held; the last one of a process
//! gives the children away, becomes the zombie that `wait` finds, and tells the parent. The task itself is
//! freed by whoever runs after it.

use super::family::Descent;
use super::{group, table};
use crate::diag::exec_phases::PhaseTimer;
use crate::diag::phase::Phase;
use crate::mm::user;
use crate::process::perf;
use crate::process::ptrace::{self, Told};
use crate::process::rings;
use crate::process::task::current::Current;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::{coredump, futex, sched, signal};
use crate::trace::{self, Event, Point};
use abi::signal::{SigInfo, SigSet, Signal, code};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// What `wait` reports of a process that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

impl Status {
    /// Ended by `exit`.
    pub const fn exited(code: i32) -> Self {
        Self((code as u16 & 0xff) << 8)
    }

    /// Ended by a signal.
    pub fn signalled(signal: Signal) -> Self {
        Self(signal.number() as u16 & 0x7f)
    }

    pub(in crate::process) const fn from_raw(raw: u16) -> Self {
        Self(raw)
    }

    /// As `wait4` stores it.
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// Code and status of the siginfo that `waitid` and SIGCHLD carry.
    pub fn to_child_info(self) -> (i32, i32) {
        match self.0 & 0x7f {
            0 => (code::CLD_EXITED, i32::from(self.0 >> 8)),
            signal if self.0 & 0x80 != 0 => (code::CLD_DUMPED, i32::from(signal)),
            signal => (code::CLD_KILLED, i32::from(signal)),
        }
    }
}

/// Ends all threads of the running process; the first to call decides the status.
pub fn do_group_exit(status: Status) -> ! {
    let task = crate::process::task::current::current();
    let process = task.process();
    if process.is_execing_elsewhere(&task) {
        // Another thread became the only one: this one goes, the process stays.
        do_exit(status);
    }
    if process.begin_exit(status) && process.thread_count() > 1 {
        signal::terminate_threads(process, Some(&task));
    }
    do_exit(process.exit_status());
}

/// Ends the running thread, and the process if it is the last one.
pub fn do_exit(status: Status) -> ! {
    let timer = PhaseTimer::start();
    let task = crate::process::task::current::current();
    let process = task.process();
    if process.is_init() && process.thread_count() == 1 {
        let status = if process.is_exiting() { process.exit_status() } else { status };
        panic!("Attempted to kill init! exitcode=0x{:08x}", status.raw());
    }
    ptrace::exiting(task, status);
    trace::at(Point::Exit, || Event::Exit { status: status.raw() });
    if process.is_dumping() {
        coredump::join();
    }
    task.set_exiting();
    rings::task_ends(task);
    perf::leave(task);
    ptrace::tracer_ends(&task);
    signal::retarget(&task, SigSet::ALL);
    release_memory(task);
    task.leave_seccomp();
    task.map(|task| &task.sysv).leave();
    task.map(|task| &task.registered).clear();
    let files = task.set_files(None);
    drop(files);
    drop(task.set_fs(None));
    if task.is_leader() {
        process.note_leader_left(true);
    }
    if process.drop_live_thread() {
        process.signals.cancel_timers();
        process.account.close(task.cred().uid);
        end_process(process, status);
    } else {
        end_thread(&task, process, status);
    }
    timer.finish(Phase::Exit, process.pid());
    sched::die()
}

/// What is written to user memory at the end of a thread is written, then the memory goes.
pub(super) fn release_memory(task: Current) {
    leave_user_memory(task);
    let mm = task.set_mm(None);
    drop(mm);
}

/// Robust futexes, clear_child_tid and a waiting vfork parent: for exit and exec.
pub(in crate::process) fn leave_user_memory(task: Current) {
    if task.is_kernel_thread() {
        return;
    }
    futex::leave_locks(task);
    let tid_address = task.clear_child_tid();
    if tid_address != 0 {
        task.set_clear_child_tid(0);
        // Nobody else can look at memory that has no other user.
        if task.shares_mm() && user::write_bytes(tid_address, &[0; 4]).is_ok() {
            // As on Linux, those who wait for a private futex are not meant. A bad address has no waiters.
            let _woken = futex::wake(&task.mm(), tid_address, true, 1, futex::BITSET_MATCH_ANY);
        }
    }
    complete_vfork(&task);
}

/// The child of a vfork no longer uses its parent's memory.
pub(super) fn complete_vfork(task: &Task) {
    // AcqRel: pairs with the Acquire of the waiting parent.
    if task.vfork.waiting.swap(false, Ordering::AcqRel) {
        task.vfork.queue.wake_all();
    }
}

/// A thread that is not the last one leaves its process.
fn end_thread(task: &Task, process: &Arc<Process>, status: Status) {
    drop(process.part_with(|threads| threads.remove(task)));
    // A tracer that has not heard of it finds it by its number; and a leader is a zombie until its process is gone.
    if !ptrace::thread_ended(task, status) && !task.is_leader() {
        table::remove_task(task.tid());
    }
    process.has_left();
    process.threads_changed.wake_all();
}

/// The last thread ends its process.
fn end_process(process: &Arc<Process>, status: Status) {
    process.begin_exit(status);
    process.set_program(None);
    give_children_away(process);
    leave_session(process);
    hang_up_if_orphaned(&process.group(), Some(process), process.parent().as_deref());
    process.set_ending();
    // Only now: a parent that gave it away before is another by now, and one that does so after waits for the zombie.
    let parent = process.parent();
    // Claimed before anybody can see a zombie: `wait` must not find one that its caller does not want.
    let told = ptrace::process_ended(process);
    let unwanted = match &told {
        Told::Parent => send_exit_signal(process) && process.claim_reap(),
        Told::TracingParent => {
            send_exit_signal(process);
            false
        }
        Told::Tracer(tracer) => {
            signal::send_sigchld(tracer, exit_info(process));
            false
        }
    };
    // Only now: who waits for a child must find its signal sent.
    process.set_zombie();
    process.ended.wake_all();
    // And only now, so that a parent on another CPU need not wait for the zombie.
    match told {
        _ if unwanted => autoreap(parent.as_deref(), process),
        Told::Tracer(tracer) => tracer.children_changed.wake_all(),
        Told::Parent | Told::TracingParent => {
            if let Some(parent) = parent {
                parent.children_changed.wake_all();
            }
        }
    }
}

/// A process that had ended is no longer its tracer's: its parent hears of it now.
pub(in crate::process) fn tell_parent(process: &Arc<Process>) {
    let parent = process.parent();
    if send_exit_signal(process) && process.claim_reap() {
        autoreap(parent.as_deref(), process);
    } else if let Some(parent) = parent {
        parent.children_changed.wake_all();
    }
}

/// A claimed zombie whose parent does not wait for its children goes at once.
fn autoreap(parent: Option<&Process>, process: &Arc<Process>) {
    if let Some(parent) = parent {
        parent.disown(process);
    }
    super::wait::release(process);
    if let Some(parent) = parent {
        // A `wait` that finds no child left ends with ECHILD.
        parent.children_changed.wake_all();
    }
}

/// Sends the parent the signal that it asked for; true if it does not want to wait for its children. The caller wakes
/// it if it waits.
fn send_exit_signal(process: &Arc<Process>) -> bool {
    let Some(parent) = process.parent() else { return true };
    let info = exit_info(process);
    // Relaxed: changed with the parent, under its lock.
    match process.exit_signal.load(Ordering::Relaxed) {
        number if number == Signal::SIGCHLD.number() => signal::send_sigchld(&parent, info),
        number => {
            if let Some(signal) = Signal::new(number) {
                let mut info = info;
                info.signo = number;
                // A full queue of a real-time signal loses it, as on Linux.
                let _sent = signal::send_to_process(&parent, signal, info);
            }
            false
        }
    }
}

/// How long to wait for memory at a time, in nanoseconds.
const MEMORY_WAIT: u64 = 20_000_000;

/// The siginfo of SIGCHLD for a process that ended.
fn exit_info(process: &Process) -> SigInfo {
    let (code, status) = process.exit_status().to_child_info();
    let (utime, stime) = process.cpu_times_ticks();
    SigInfo::child(code, process.pid(), process.uid(), status, utime, stime)
}

fn give_children_away(process: &Arc<Process>) {
    let children = process.give_children_up();
    for child in children.iter() {
        let heir = find_heir(process, child);
        parent_died(child);
        hang_up_if_orphaned(&child.group(), None, Some(process));
        if child.is_zombie_by_now() && send_exit_signal(child) && child.claim_reap() {
            autoreap(Some(&heir), child);
        } else if child.is_reaped() {
            // It was reaped automatically just now, by a thread that looked for it in the old parent's list only.
            heir.disown(child);
        }
        heir.children_changed.wake_all();
    }
}

/// Gives a child to who inherits from `process`. Somebody who exits cannot fail: it waits until others have given
/// back memory.
fn find_heir(process: &Process, child: &Arc<Process>) -> Arc<Process> {
    loop {
        // As on Linux the exit signal is set back, so that a new parent always gets SIGCHLD.
        let unasked = Descent { parent: None, exit_signal: Signal::SIGCHLD.number() };
        if let Ok(heir) = process.settle(child, unasked) {
            return heir;
        }
        crate::process::sched::schedule_timeout(MEMORY_WAIT);
    }
}

/// PR_SET_PDEATHSIG.
fn parent_died(child: &Arc<Process>) {
    let mut wanted = None;
    child.for_each_thread(&mut |thread| {
        // Relaxed: the thread's own setting.
        wanted =
            Signal::new(thread.settings.parent_death_signal.load(Ordering::Relaxed)).or(wanted);
    });
    if let Some(signal) = wanted {
        let info = SigInfo::new(signal, code::SI_KERNEL);
        // A full queue of a real-time signal loses it, as on Linux.
        let _sent = signal::send_to_process(child, signal, info);
    }
}

/// A group that becomes orphaned with a stopped member is hung up and continued. `exiting` counts as gone;
/// nothing happens unless `parent` stands in another group of the same session.
fn hang_up_if_orphaned(
    group: &Arc<super::group::Group>,
    exiting: Option<&Process>,
    parent: Option<&Process>,
) {
    let Some(parent) = parent else { return };
    let other = parent.group();
    let kept_it = other.pgid() != group.pgid() && Arc::ptr_eq(other.session(), group.session());
    if !kept_it || !group.has_stopped_member() || !group.is_orphaned(exiting) {
        return;
    }
    for signal in [Signal::SIGHUP, Signal::SIGCONT] {
        signal::send_to_group(group.pgid(), signal, SigInfo::new(signal, code::SI_KERNEL));
    }
}

/// A session leader takes its terminal with it.
fn leave_session(process: &Arc<Process>) {
    super::terminal::leader_exits(process);
    let session = process.session();
    if session.sid() == process.pid() {
        group::lose_terminal(&session);
    }
}

/// exec: threads that have ended but are still listed go; the caller is the only one left.
pub(in crate::process) fn complete_threads(process: &Process, task: &Task) {
    while let Some(gone) = process.part_with(|threads| threads.remove_other(task)) {
        drop(gone);
    }
}
