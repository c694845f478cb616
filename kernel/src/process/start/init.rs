//! The first tasks: each CPU's idle task, and process 1.
//!
//! Owns what waits for process 1: the words of the command line, how unpacking went. Never returns from its last step.
//! Locks: none of its own.

use super::init_words::InitWords;
use super::kthread;
use crate::arch::entry::frame::TrapFrame;
use crate::arch::task::Machine;
use crate::arch::task::fpu::FpuState;
use crate::base::{cpu, percpu};
use crate::cmdline::{self, words};
use crate::mm::KernelStack;
use crate::mm::fallible::{TryCollect, TryGrow, try_arc};
use crate::process::exec::{self, ExecRequest};
use crate::process::proc;
use crate::process::ptrace;
use crate::process::sched::{self, Entity, Sleeper};
use crate::process::signal::{self, PartOfActions, ProcessSignals, SignalActions, TaskSignals};
use crate::process::sysv::Part;
use crate::process::task::caller::RunningTask;
use crate::process::task::current::{Current, TASKS};
use crate::process::task::limits::initial_limits;
use crate::process::task::process::{Parts as ProcessParts, Process, root_cred};
use crate::process::task::task::{Parts as TaskParts, Task, comm_of};
use crate::process::task::work;
use crate::process::tree::group::{Group, Session};
use crate::process::tree::table;
use crate::process::watch;
use crate::sync::{Once, pace, wait};
use crate::vfs::namei::{LookupCtx, LookupFlags};
use crate::vfs::open::{OpenHow, open};
use crate::vfs::{Fd, FdTable, Files, FsContext};
use abi::fs::{AT_FDCWD, OpenFlags};
use abi::signal::SigSet;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Makes the boot code the idle task of its CPU and lets threads sleep. Once, before any other task.
pub fn init() {
    static SLEEPER: Sleeper = Sleeper;
    let cpu = percpu::cpu_id();
    let idle = kthread::build("swapper/0", 0, Machine::running(), Entity::new(cpu));
    idle.times.resume(crate::time::since_boot_ns());
    TASKS.adopt(idle.clone());
    if let Err(error) = sched::prepare_cpu(cpu, idle) {
        panic!("no memory for the run queue: {error}");
    }
    wait::register_scheduler(&SLEEPER);
    pace::register_pacer(&SLEEPER);
    crate::random::register_caller(&RunningTask);
    crate::vfs::cred::register_running(|| crate::process::task::current::current().cred().clone());
    crate::mm::frames::register_trusted(crate::process::task::current::is_trusted_with_memory);
    crate::mm::frames::register_payer(crate::process::task::current::payer);
    crate::mm::space::register_limits(crate::process::task::limits::for_running);
    proc::register();
    crate::process::sysv::register().expect("no memory for the files of System V IPC");
    crate::process::mqueue::register().expect("no memory for message queues");
    crate::vfs::notify::urgent::register_urgent(crate::process::signal::sigurg);
    crate::vfs::notify::listeners::register_send(|owner, reason, band| {
        crate::process::signal::tell(owner, owner.fd, reason, band);
    });
    crate::process::coredump::register().expect("no memory for the files of cores");
    crate::process::seccomp::register().expect("no memory for the files of seccomp");
    crate::process::rings::register().expect("no memory for the file of traces");
    crate::process::perf::register().expect("no memory for the files of perf events");
    crate::process::tree::terminal::init();
    crate::diag::panic::set_describe(describe);
}

/// The running task, for a panic.
#[expect(clippy::disallowed_methods, reason = "to the port, at once")]
fn describe(out: &mut dyn core::fmt::Write) -> core::fmt::Result {
    let task = crate::process::task::current::current();
    let comm = task.comm_now().unwrap_or_default();
    let name = comm.split(|&byte| byte == 0).next().unwrap_or_default();
    write!(out, "{} ({})", name.escape_ascii(), task.tid())
}

/// The boot code's last step: from here on it only runs when nothing else does.
pub fn run_idle() -> ! {
    cpu::irq_enable();
    sched::schedule();
    sched::run_idle()
}

/// Work on the way to user mode; called with interrupts on until no flag is set.
pub fn exit_to_user(frame: &mut TrapFrame) {
    let task = crate::process::task::current::current();
    // One look for all that is rare.
    if task.has_work(!work::SIGNAL) {
        do_other_work(task, frame);
    }
    if task.has_work(work::SIGNAL) {
        signal::exit_to_user(frame);
    }
}

/// All work but that of signals.
#[inline(never)]
fn do_other_work(task: Current, frame: &mut TrapFrame) {
    if task.has_work(work::RESCHED) {
        sched::schedule();
    }
    if task.has_work(work::MEMORY) {
        task.clear_work(work::MEMORY);
        crate::process::memory::oom::relieve();
    }
    if task.has_work(work::SLICE) {
        task.clear_work(work::SLICE);
        sched::begin_slice();
    }
    if task.has_work(work::DEBUG) {
        ptrace::load_breakpoints(task);
    }
    if task.has_work(work::PERF) {
        crate::process::perf::pay(task);
    }
    if task.has_work(work::SECCOMP) {
        crate::process::seccomp::be_watched(task);
    }
    if task.has_work(work::RSEQ) {
        crate::process::task::rseq::resume(&task, frame);
    }
    if task.has_work(work::WATCH) {
        watch::refresh(task);
    }
    if task.has_work(work::LATER) {
        crate::process::task::later::act(task);
    }
}

/// Makes process 1, which executes init. The file system stands.
pub fn start_init(unpacked: String) {
    UNPACKED.call_once(|| unpacked);
    match build_init() {
        Ok(task) => sched::start(task, true),
        Err(error) => panic!("process 1 cannot be made: {error}"),
    }
}

/// How unpacking the initramfs went, for the panic when nothing in it can be executed.
static UNPACKED: Once<String> = Once::new();

fn build_init() -> Result<Arc<Task>> {
    sched::reserve(64)?;
    let root = crate::vfs::object::mount::root().ok_or(Errno::ENOENT)?;
    let pid = table::allocate()?;
    let session = Session::new(0)?;
    let group = Group::new(0, session)?;
    let process = try_arc(Process::new(ProcessParts {
        pid,
        group: group.clone(),
        limits: initial_limits(),
        program: None,
        signals: ProcessSignals::new(PartOfActions::first(try_arc(SignalActions::new())?)),
    }))?;
    let fpu = FpuState::try_new().ok_or(Errno::ENOMEM)?;
    let machine = Machine::kernel(KernelStack::alloc()?, Some(fpu), first_program, 0);
    let task = try_arc(Task::new(
        TaskParts {
            tid: pid,
            process: process.clone(),
            machine,
            sched: Entity::new(percpu::cpu_id()),
            signals: TaskSignals::new(SigSet::EMPTY),
            mm: None,
            files: Some(Files::new(FdTable::new())?),
            fs: Some(try_arc(FsContext::new(root))?),
            cred: root_cred(),
            comm: comm_of(b"swapper/0"),
            sysv: Part::new(None),
            sleep_room: crate::time::TimerRoom::new()?,
        },
        None,
    ))?;
    if !process.tree().lock().threads.push(task.clone()) {
        return Err(Errno::ENOMEM);
    }
    group.add(&process)?;
    table::insert(&task);
    Ok(task)
}

extern "C" fn first_program(_: usize) -> ! {
    sched::finish_switch();
    cpu::irq_enable();
    let task = crate::process::task::current::current();
    open_console(task);
    let frame = find_init();
    TASKS.enter_user(&frame)
}

/// What of the command line is for init.
static WORDS: Once<InitWords> = Once::new();

/// Descriptors 0, 1 and 2.
fn open_console(task: Current) {
    let opened = || -> Result<()> {
        let (fs, files, cred) = (task.fs(), task.files(), task.cred());
        let ctx = LookupCtx { fs: &fs, files: &files, cred: &cred };
        let how = OpenHow::classic(OpenFlags::RDWR.bits(), 0)?;
        let file = open(&ctx, Fd(AT_FDCWD), b"/dev/console", &how)?;
        for _ in 0..3 {
            files.add(0, file.clone(), false, 3)?;
        }
        Ok(())
    };
    if let Err(error) = opened() {
        log::warn!("Warning: unable to open an initial console: {error}");
    }
}

/// Executes the first init that works, in Linux's order. One that was asked for by name must work:
/// on Linux, too, nothing comes after it when there is no other root file system to mount.
fn find_init() -> TrapFrame {
    if let Some(path) = cmdline::value(words::RDINIT) {
        return requested_init(path);
    }
    match try_init("/init") {
        Ok(frame) => return frame,
        Err(Errno::ENOENT) => {}
        Err(error) => log::warn!("Failed to execute /init (error {})", -error.number()),
    }
    if let Some(path) = cmdline::value(words::INIT) {
        return requested_init(path);
    }
    for path in ["/sbin/init", "/etc/init", "/bin/init", "/bin/sh"] {
        match try_init(path) {
            Ok(frame) => return frame,
            Err(Errno::ENOENT) => {}
            Err(error) => log::warn!(
                "Starting init: {path} exists but couldn't execute it (error {})",
                -error.number()
            ),
        }
    }
    panic!("No working init found. Try passing init= option to kernel. {}", unpacked())
}

fn requested_init(path: &'static str) -> TrapFrame {
    match try_init(path) {
        Ok(frame) => frame,
        Err(error) => {
            panic!("Requested init {path} failed (error {}). {}", -error.number(), unpacked())
        }
    }
}

fn unpacked() -> &'static str {
    UNPACKED.get().map_or("", String::as_str)
}

fn try_init(path: &'static str) -> Result<TrapFrame> {
    let mut frame = TrapFrame::new_user(0, 0);
    let words = WORDS.call_once(InitWords::gather);
    let mut argv: Vec<&[u8]> = Vec::new();
    argv.try_push(path.as_bytes())?;
    argv.try_extend(words.arguments.iter().map(String::as_bytes))?;
    let envp = words.environment.iter().map(String::as_bytes).try_to_vec()?;
    let request = ExecRequest {
        at: Fd(AT_FDCWD),
        path: path.as_bytes(),
        lookup: LookupFlags::FOLLOW,
        argv: &argv.as_slice(),
        envp: &envp.as_slice(),
    };
    exec::execve(&mut frame, &request)?;
    log::info!("Run {path} as init process");
    Ok(frame)
}
