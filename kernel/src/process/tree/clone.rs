//! fork, vfork, clone, clone3: new tasks.
//!
//! What the child needs is made before it is linked anywhere. A list that does not take it (no memory, or its process ends) has the
//! links before undone, and fork fails; nothing can fail any more once the child can be found by its number.

use super::family::Descent;
use super::table;
use crate::arch::entry::frame::{FLAG_TF, TrapFrame};
use crate::arch::task::fpu::FpuState;
use crate::arch::task::{Machine, switch};
use crate::base::page::USER_END;
use crate::base::{cpu, percpu};
use crate::diag::exec_phases::PhaseTimer;
use crate::diag::phase::Phase;
use crate::mm::fallible::{Room, try_arc};
use crate::mm::user::UserPtr;
use crate::mm::{self, KernelStack};
use crate::process::memory::oom;
use crate::process::perf;
use crate::process::ptrace::{self, CloneKind};
use crate::process::sched;
use crate::process::signal::{self, PartOfActions, ProcessSignals};
use crate::process::sysv::Part;
use crate::process::sysv::sem::Undo;
use crate::process::task::current::{Current, is_trusted_with_memory};
use crate::process::task::limits::{INFINITY, Resource, threads_max};
use crate::process::task::process::{Parts as ProcessParts, Process};
use crate::process::task::task::{Memory, Parts as TaskParts, Task};
use crate::process::task::users;
use crate::process::watch;
use crate::sync::OwnerRef;
use crate::time::TimerRoom;
use crate::trace::{self, Event, Point};
use crate::vfs::{Files, FsContext, OpenFile, Reserved};
use abi::{Errno, Result};
use alloc::sync::Arc;
use bitflags::bitflags;
use core::sync::atomic::Ordering;

bitflags! {
    /// Linux's CLONE_* flags.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CloneFlags: u64 {
        const VM = 0x100;
        const FS = 0x200;
        const FILES = 0x400;
        const SIGHAND = 0x800;
        const PIDFD = 0x1000;
        const PTRACE = 0x2000;
        const VFORK = 0x4000;
        const PARENT = 0x8000;
        const THREAD = 0x1_0000;
        const NEWNS = 0x2_0000;
        const SYSVSEM = 0x4_0000;
        const SETTLS = 0x8_0000;
        const PARENT_SETTID = 0x10_0000;
        const CHILD_CLEARTID = 0x20_0000;
        const DETACHED = 0x40_0000;
        const UNTRACED = 0x80_0000;
        const CHILD_SETTID = 0x100_0000;
        const NEWCGROUP = 0x200_0000;
        const NEWUTS = 0x400_0000;
        const NEWIPC = 0x800_0000;
        const NEWUSER = 0x1000_0000;
        const NEWPID = 0x2000_0000;
        const NEWNET = 0x4000_0000;
        const IO = 0x8000_0000;
        const CLEAR_SIGHAND = 0x1_0000_0000;
        const INTO_CGROUP = 0x2_0000_0000;
        const NEWTIME = 0x80;
    }
}

impl CloneFlags {
    /// Namespaces that this kernel does not have.
    const NAMESPACES: Self = Self::NEWNS
        .union(Self::NEWCGROUP)
        .union(Self::NEWUTS)
        .union(Self::NEWIPC)
        .union(Self::NEWUSER)
        .union(Self::NEWPID)
        .union(Self::NEWNET)
        .union(Self::NEWTIME);
}

/// What a clone call asks for.
#[derive(Clone, Copy, Debug)]
pub struct CloneArgs {
    pub flags: CloneFlags,
    /// Sent to the parent when the child ends; 0 for none.
    pub exit_signal: i32,
    /// The child's stack pointer; 0 for the parent's.
    pub stack: u64,
    pub tls: u64,
    pub parent_tid: u64,
    pub child_tid: u64,
    /// Where CLONE_PIDFD puts its descriptor.
    pub pidfd: u64,
}

impl CloneArgs {
    /// What fork asks for.
    pub const FORK: Self = Self {
        flags: CloneFlags::empty(),
        exit_signal: 17,
        stack: 0,
        tls: 0,
        parent_tid: 0,
        child_tid: 0,
        pidfd: 0,
    };

    /// What a tracer of the parent is told.
    fn kind(&self) -> CloneKind {
        CloneKind {
            vfork: self.flags.contains(CloneFlags::VFORK),
            untraced: self.flags.contains(CloneFlags::UNTRACED),
            traced: self.flags.contains(CloneFlags::PTRACE),
            exit_signal: self.exit_signal,
        }
    }

    /// The combinations that Linux refuses.
    fn check(&self, process: &Process) -> Result<()> {
        let has = |flags| self.flags.contains(flags);
        let wrong = (has(CloneFlags::THREAD) && !has(CloneFlags::SIGHAND))
            || (has(CloneFlags::SIGHAND) && !has(CloneFlags::VM))
            || (has(CloneFlags::PARENT) && process.is_init())
            || (has(CloneFlags::CLEAR_SIGHAND) && has(CloneFlags::SIGHAND))
            || (has(CloneFlags::PIDFD) && has(CloneFlags::DETACHED))
            || self.flags.intersects(CloneFlags::NAMESPACES)
            || (has(CloneFlags::PIDFD | CloneFlags::PARENT_SETTID)
                && self.pidfd == self.parent_tid)
            || has(CloneFlags::INTO_CGROUP);
        if wrong {
            return Err(Errno::EINVAL);
        }
        if has(CloneFlags::SETTLS) && self.tls >= USER_END {
            return Err(Errno::EPERM);
        }
        Ok(())
    }
}

/// What a child has of its parent's, shared or copied.
struct Inherited {
    mm: Memory,
    files: Files,
    fs: Arc<FsContext>,
    undo: Option<Undo>,
}

/// Makes a child of the running task, whose user registers are `frame`: its number.
///
/// # Errors
/// `EINVAL` for an impossible set of flags, `EAGAIN` when there are too many tasks, `ENOMEM`.
pub fn clone(frame: &mut TrapFrame, args: &CloneArgs) -> Result<i32> {
    let mut tries = 0;
    loop {
        match try_clone(frame, args) {
            Err(Errno::ENOMEM) if tries < TRIES && is_trusted_with_memory() => {
                tries += 1;
                if !oom::make_room() {
                    return Err(Errno::ENOMEM);
                }
            }
            result => return result,
        }
    }
}

/// So often memory is made for a child of who may use the reserve.
const TRIES: u32 = 16;

fn try_clone(frame: &mut TrapFrame, args: &CloneArgs) -> Result<i32> {
    let timer = PhaseTimer::start();
    let parent = crate::process::task::current::current();
    args.check(parent.process())?;
    if mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    if signal::pending(&parent) {
        return Err(Errno::ERESTARTNOINTR);
    }
    let tasks = check_limits(parent)?;
    sched::reserve(tasks.saturating_add(2))?;
    let inherited = inherit(parent, args.flags)?;
    let machine = machine_of_child(parent, frame, args)?;
    let tid = table::allocate()?;
    let child =
        build(parent, args, inherited, machine, tid).inspect_err(|_| table::give_back(tid))?;
    let files = parent.files();
    let pidfd = match give_pidfd(parent, &files, args, &child) {
        Ok(pidfd) => pidfd,
        Err(error) => {
            table::give_back(tid);
            return Err(error);
        }
    };
    if args.flags.contains(CloneFlags::PARENT_SETTID) {
        // Linux ignores a bad address here too.
        let _written = UserPtr::<i32>::new(args.parent_tid).write(&tid);
    }
    let vfork = args.flags.contains(CloneFlags::VFORK);
    if vfork {
        // Relaxed: the child does not run yet.
        child.vfork.waiting.store(true, Ordering::Relaxed);
    }
    let told = ptrace::clone_event(&args.kind());
    if let Err(error) = told.adopt(&child).and_then(|()| link(parent, &child, args)) {
        told.undo(&child);
        table::give_back(tid);
        return Err(error);
    }
    if let Some((number, file)) = pidfd {
        number.install(file);
    }
    perf::forked(&parent, &child);
    watch::inherit(parent, &child, args.flags.contains(CloneFlags::THREAD));
    trace::at(Point::Fork, || Event::Fork { tid, pid: child.process().pid() });
    if vfork {
        sched::start(child.clone(), true);
        timer.finish(Phase::Fork, parent.process().pid());
        told.tell(frame, tid);
        wait_for_vfork(&child);
        told.tell_vfork_done(frame, tid);
    } else {
        sched::start(child, false);
        timer.finish(Phase::Fork, parent.process().pid());
        told.tell(frame, tid);
    }
    Ok(tid)
}

/// A number that user memory has been told, and the file that it is to be.
type Told<'a> = (Reserved<'a>, Arc<OpenFile>);

/// CLONE_PIDFD: a descriptor for the child, written to user memory before the child runs.
fn give_pidfd<'a>(
    parent: Current,
    files: &'a OwnerRef<Files>,
    args: &CloneArgs,
    child: &Arc<Task>,
) -> Result<Option<Told<'a>>> {
    if !args.flags.contains(CloneFlags::PIDFD) {
        return Ok(None);
    }
    let file = try_arc(if args.flags.contains(CloneFlags::THREAD) {
        super::pidfd::new_of_thread(child, false)?
    } else {
        super::pidfd::new(child.process(), false)?
    })?;
    let limit = parent.process().nofile_limit();
    let number = files.reserve(true, limit)?;
    UserPtr::<i32>::new(args.pidfd).write(&number.fd().0)?;
    Ok(Some((number, file)))
}

/// kernel.threads-max, and RLIMIT_NPROC, which root and the capable are free of: how many tasks there are.
fn check_limits(parent: Current) -> Result<usize> {
    use crate::vfs::Capability;
    let tasks = table::count();
    if tasks >= threads_max() {
        return Err(Errno::EAGAIN);
    }
    let cred = parent.cred();
    if cred.uid == 0
        || cred.capable(Capability::SYS_ADMIN)
        || cred.capable(Capability::SYS_RESOURCE)
    {
        return Ok(tasks);
    }
    let limit = parent.process().limits().soft(Resource::Processes);
    if users::has_as_many_as(limit, cred.uid) { Err(Errno::EAGAIN) } else { Ok(tasks) }
}

fn inherit(parent: Current, flags: CloneFlags) -> Result<Inherited> {
    let mm = if flags.contains(CloneFlags::VM) {
        parent.share_mm().ok_or(Errno::EINVAL)?
    } else {
        Memory::first(parent.mm().fork()?)
    };
    let files = if flags.contains(CloneFlags::FILES) {
        parent.files().share()
    } else {
        Files::new(parent.files().fork()?)?
    };
    let fs = if flags.contains(CloneFlags::FS) {
        parent.fs().clone()
    } else {
        try_arc(parent.fs().fork())?
    };
    let shares_undo = flags.contains(CloneFlags::SYSVSEM);
    let undo = shares_undo.then(|| parent.map(|task| &task.sysv).share_undo()).transpose()?;
    Ok(Inherited { mm, files, fs, undo })
}

fn machine_of_child(
    parent: Current,
    frame: &TrapFrame,
    args: &CloneArgs,
) -> Result<Machine<KernelStack>> {
    let stack = KernelStack::alloc()?;
    let fpu = FpuState::try_copy(&parent.vectors()).ok_or(Errno::ENOMEM)?;
    let mut registers = *frame;
    registers.set_return(0);
    registers.leave_as_it_stands();
    // The parent's tracer steps the parent only.
    if parent.tracing.is_stepping() {
        registers.rflags &= !FLAG_TF;
    }
    if args.stack != 0 {
        registers.rsp = args.stack;
    }
    let fs_base =
        if args.flags.contains(CloneFlags::SETTLS) { args.tls } else { switch::fs_base() };
    let child_tid = if args.flags.contains(CloneFlags::CHILD_SETTID) { args.child_tid } else { 0 };
    let bases = (fs_base, switch::user_gs_base());
    Ok(Machine::user(stack, fpu, &registers, bases, first_steps, child_tid as usize))
}

/// The first code of a new task: interrupts are off.
extern "C" fn first_steps(child_tid: usize) {
    sched::finish_switch();
    cpu::irq_enable();
    if child_tid != 0 {
        // Linux ignores a bad address here too.
        let tid = crate::process::task::current::current().tid();
        let _written = UserPtr::<i32>::new(child_tid as u64).write(&tid);
    }
}

fn build(
    parent: Current,
    args: &CloneArgs,
    inherited: Inherited,
    machine: Machine<KernelStack>,
    tid: i32,
) -> Result<Arc<Task>> {
    let room = Room::new()?;
    let sleep_room = TimerRoom::new()?;
    let is_thread = args.flags.contains(CloneFlags::THREAD);
    let process =
        if is_thread { parent.process().clone() } else { child_process(parent, args, tid)? };
    let shares_memory =
        args.flags.contains(CloneFlags::VM) && !args.flags.contains(CloneFlags::VFORK);
    let parts = TaskParts {
        tid,
        process,
        machine,
        sched: parent.sched.fork(percpu::cpu_id()),
        signals: parent.signals.fork(shares_memory),
        mm: Some(inherited.mm),
        files: Some(inherited.files),
        fs: Some(inherited.fs),
        cred: parent.cred().clone(),
        comm: parent.comm(),
        sysv: Part::new(inherited.undo),
        sleep_room,
    };
    // Built in place: it is large, and each move would copy it.
    let task = room.arc(Task::new(parts, Some(&parent)));
    if !args.flags.contains(CloneFlags::VM) {
        task.rseq.inherit(&parent.rseq);
    }
    task.tracing.breakpoints.inherit(&task, &parent.tracing.breakpoints);
    if parent.perf.is_used() {
        perf::inherit(&parent, &task, is_thread)?;
    }
    if args.flags.contains(CloneFlags::CHILD_CLEARTID) {
        task.set_clear_child_tid(args.child_tid);
    }
    Ok(task)
}

fn child_process(parent: Current, args: &CloneArgs, pid: i32) -> Result<Arc<Process>> {
    let process = parent.process();
    let actions = if args.flags.contains(CloneFlags::SIGHAND) {
        process.signals.share_actions()?
    } else {
        let own = process.signals.actions().fork();
        if args.flags.contains(CloneFlags::CLEAR_SIGHAND) {
            own.reset_for_exec()?;
        }
        PartOfActions::first(try_arc(own)?)
    };
    // Built in place, as its task is.
    let room = Room::new()?;
    let child = room.arc(Process::new(ProcessParts {
        pid,
        group: process.group(),
        limits: process.limits(),
        program: process.program(),
        signals: ProcessSignals::new(actions),
    }));
    child.inherit_settings(process);
    child.set_maker(parent.tid());
    if child.limits().soft(Resource::Cpu) != INFINITY {
        crate::process::timers::cpu_limit::prepare(&child)?;
    }
    Ok(child)
}

/// Makes the child visible: to its process, its parent, its group and by its number.
fn link(parent: Current, child: &Arc<Task>, args: &CloneArgs) -> Result<()> {
    let process = child.process();
    if args.flags.contains(CloneFlags::THREAD) {
        let mut tree = process.tree().lock();
        if process.is_closing() {
            return Err(Errno::ERESTARTNOINTR);
        }
        child.inherit_seccomp(&parent);
        if !tree.threads.push(child.clone()) {
            return Err(Errno::ENOMEM);
        }
        process.add_live_thread();
        drop(tree);
        table::insert(child);
        return Ok(());
    }
    child.inherit_seccomp(&parent);
    let maker = parent.process();
    let descent = if args.flags.contains(CloneFlags::PARENT) {
        // A sibling: it ends as its maker would.
        maker.descent()
    } else {
        Descent { parent: Some(maker.clone()), exit_signal: args.exit_signal }
    };
    if !process.tree().lock().threads.push(child.clone()) {
        return Err(Errno::ENOMEM);
    }
    if let Err(error) = process.group().add(process) {
        part_from_child(child);
        return Err(error);
    }
    if let Err(error) = maker.settle(process, descent) {
        process.group().remove(process);
        part_from_child(child);
        return Err(error);
    }
    table::insert(child);
    if process.limits().soft(Resource::Cpu) != INFINITY {
        crate::process::timers::cpu_limit::watch(process);
    }
    Ok(())
}

/// The child was not made after all: it and its only thread hold each other.
fn part_from_child(child: &Arc<Task>) {
    let alone = child.process().tree().lock().threads.remove(child);
    drop(alone);
}

/// Sleeps until the child no longer uses our memory: it called exec or ended.
fn wait_for_vfork(child: &Arc<Task>) {
    // Acquire: pairs with the AcqRel in `exit::complete_vfork`.
    let done = || (!child.vfork.waiting.load(Ordering::Acquire)).then_some(());
    // Only death ends the wait early; then nobody will look at the result.
    let _killed = child.vfork.queue.wait_killable(done);
}

/// The signal that a raw clone's low byte names; Linux takes any number.
pub fn exit_signal_of(flags: u64) -> i32 {
    (flags & 0xff) as i32
}
