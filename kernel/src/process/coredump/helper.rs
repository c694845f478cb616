//! A program that the kernel starts, as root: it takes a core as its input.
//!
//! Owns what those that have not called exec yet are to do. Such a process has no parent, no environment and no descriptor but
//! its input, begins in the first root directory, and never has a program started for a core of its own (RLIMIT_CORE is 1). Locks: `Leaf`.

use crate::arch::entry::frame::TrapFrame;
use crate::arch::task::Machine;
use crate::arch::task::fpu::FpuState;
use crate::base::{cpu, percpu};
use crate::mm::KernelStack;
use crate::mm::fallible::{TryCollect, try_arc};
use crate::process::exec::{self, ExecRequest};
use crate::process::sched::{self, Entity};
use crate::process::signal::{PartOfActions, ProcessSignals, SignalActions, TaskSignals};
use crate::process::sysv::Part;
use crate::process::task::current::TASKS;
use crate::process::task::limits::{Limit, Resource, initial_limits};
use crate::process::task::process::{Parts as ProcessParts, Process, root_cred};
use crate::process::task::task::{Parts as TaskParts, Task, comm_of};
use crate::process::tree::exit::{self, Status};
use crate::process::tree::group::{Group, Session};
use crate::process::tree::table;
use crate::sync::{SpinLock, WaitQueue, level};
use crate::time::TimerRoom;
use crate::vfs::namei::LookupFlags;
use crate::vfs::object::mount;
use crate::vfs::{Fd, FdTable, Files, FsContext, OpenFile, grow};
use abi::fs::AT_FDCWD;
use abi::signal::SigSet;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What is to be executed, and how that went.
struct Job {
    tid: i32,
    words: Vec<Vec<u8>>,
    outcome: SpinLock<Option<Result<()>>, level::Leaf>,
    done: WaitQueue,
}

/// Those whose task has not begun.
static JOBS: SpinLock<Vec<Arc<Job>>, level::Leaf> = SpinLock::new(Vec::new());

/// Starts a program with `input` as descriptor 0, and waits until it is executed.
///
/// # Errors
/// Those of exec, of making a process, and `EINTR` if the running task is told to die meanwhile.
pub(super) fn start(words: Vec<Vec<u8>>, input: Arc<OpenFile>) -> Result<()> {
    sched::reserve(table::count().saturating_add(2))?;
    let tid = table::allocate()?;
    let built = try_arc(Job { tid, words, outcome: SpinLock::new(None), done: WaitQueue::new() })
        .and_then(|job| build(tid, input).map(|task| (job, task)))
        .and_then(|(job, task)| grow::push(&JOBS, job.clone()).map(|()| (job, task)));
    let (job, task) = match built {
        Ok(built) => built,
        Err(error) => {
            table::give_back(tid);
            return Err(error);
        }
    };
    if !task.process().tree().lock().threads.push(task.clone()) {
        drop(take(tid));
        table::give_back(tid);
        return Err(Errno::ENOMEM);
    }
    table::insert(&task);
    sched::start(task, false);
    job.done.wait_killable(|| *job.outcome.lock()).map_err(|_| Errno::EINTR)?
}

fn take(tid: i32) -> Option<Arc<Job>> {
    let mut jobs = JOBS.lock();
    let at = jobs.iter().position(|job| job.tid == tid);
    at.map(|at| jobs.swap_remove(at))
}

fn build(tid: i32, input: Arc<OpenFile>) -> Result<Arc<Task>> {
    let process = try_arc(Process::new(ProcessParts {
        pid: tid,
        group: Group::new(0, Session::new(0)?)?,
        limits: initial_limits(),
        program: None,
        signals: ProcessSignals::new(PartOfActions::first(try_arc(SignalActions::new())?)),
    }))?;
    process.replace_limit(Resource::Core, |_| Ok(Limit { soft: 1, hard: 1 }))?;
    let files = Files::new(FdTable::with(input)?)?;
    let fpu = FpuState::try_new().ok_or(Errno::ENOMEM)?;
    try_arc(Task::new(
        TaskParts {
            tid,
            process,
            machine: Machine::kernel(KernelStack::alloc()?, Some(fpu), begin, tid as usize),
            sched: Entity::new(percpu::cpu_id()),
            signals: TaskSignals::new(SigSet::EMPTY),
            mm: None,
            files: Some(files),
            fs: Some(try_arc(FsContext::new(mount::root().ok_or(Errno::ENOENT)?))?),
            cred: root_cred(),
            comm: comm_of(b"core-helper"),
            sysv: Part::new(None),
            sleep_room: TimerRoom::new()?,
        },
        None,
    ))
}

extern "C" fn begin(tid: usize) -> ! {
    sched::finish_switch();
    cpu::irq_enable();
    match execute(tid as i32) {
        Some(frame) => TASKS.enter_user(&frame),
        None => exit::do_exit(Status::exited(0)),
    }
}

fn execute(tid: i32) -> Option<TrapFrame> {
    let job = take(tid)?;
    let mut frame = TrapFrame::new_user(0, 0);
    let executed = enter(&job.words, &mut frame);
    *job.outcome.lock() = Some(executed);
    job.done.wake_all();
    executed.is_ok().then_some(frame)
}

fn enter(words: &[Vec<u8>], frame: &mut TrapFrame) -> Result<()> {
    let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).try_to_vec()?;
    let envp: [&[u8]; 0] = [];
    let request = ExecRequest {
        at: Fd(AT_FDCWD),
        path: argv.first().ok_or(Errno::EINVAL)?,
        lookup: LookupFlags::FOLLOW,
        argv: &argv.as_slice(),
        envp: &envp.as_slice(),
    };
    exec::execve(frame, &request)
}
