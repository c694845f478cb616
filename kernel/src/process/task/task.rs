//! [`Task`]: one thread.
//!
//! Fields fall into three kinds: set at creation; owned by the thread itself ([`OwnerCell`], which takes a [`Current`]
//! to borrow, and atomics that only it writes); and scheduler state, which changes under the run queue lock of the
//! task's CPU. Others never change what the thread owns: they set work flags. Locks: `Owned` in each cell, `Leaf` for
//! the name.

use super::chosen::Chosen;
use super::current::Current;
use super::members::Member;
use super::process::Process;
use super::registered::Registered;
use super::rseq::Rseq;
use super::users;
use crate::arch::entry::frame::TrapFrame;
use crate::arch::task::fpu::FpuState;
use crate::arch::task::{Machine, Running};
use crate::base::current;
use crate::mm::{AddressSpace, KernelStack};
use crate::process::futex::Waits;
use crate::process::memory::fault::LastTrap;
use crate::process::perf::Watcher;
use crate::process::ptrace::Tracing;
use crate::process::sched::Entity;
use crate::process::signal::TaskSignals;
use crate::process::sysv::Part;
use crate::process::timers::times::Times;
use crate::process::watch::{Dispatch, Watched};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{OwnerCell, OwnerRef, SpinLock, WaitQueue, level};
use crate::time::TimerRoom;
use crate::vfs::{Cred, FdTable, Files, FsContext};
use alloc::sync::Arc;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// Bytes of a thread's name, the final NUL included.
pub const COMM_LEN: usize = 16;

/// A task's part in an address space.
pub(in crate::process) type Memory = crate::sync::Part<AddressSpace>;

/// One thread.
pub struct Task {
    _counted: Counted,
    tid: AtomicI32,
    process: Arc<Process>,
    /// Its index among the threads of its process.
    place: AtomicUsize,
    pub(super) machine: Machine<KernelStack>,
    pub sched: Entity,
    pub signals: TaskSignals,
    pub(super) mm: OwnerCell<Option<Memory>>,
    files: OwnerCell<Option<Files>>,
    fs: OwnerCell<Option<Arc<FsContext>>>,
    cred: OwnerCell<Arc<Cred>>,
    pub registered: Registered,
    comm: SpinLock<[u8; COMM_LEN], level::Leaf>,
    pub times: Times,
    exiting: AtomicBool,
    /// User address that is cleared and woken when the thread ends; 0 for none.
    clear_child_tid: AtomicU64,
    robust_list: AtomicU64,
    /// How far the thread is with leaving its locks; see `futex::pi`.
    futex_state: AtomicU8,
    pub(in crate::process) futex: Waits,
    pub rseq: Rseq,
    /// Who traces it, and how it goes on.
    pub(in crate::process) tracing: Tracing,
    pub(in crate::process) seccomp: crate::process::seccomp::Part,
    /// Who counts its calls.
    pub(in crate::process) watched: Watched,
    /// Which of its calls become signals.
    pub(in crate::process) dispatch: Dispatch,
    /// The events that are counted of it.
    pub(in crate::process) perf: Watcher,
    /// What it keeps of System V IPC.
    pub(in crate::process) sysv: Part,
    trap: [AtomicU64; 3],
    /// prctl's per-thread settings.
    pub settings: Settings,
    /// Set and woken when the child of a vfork no longer uses its parent's memory.
    pub(in crate::process) vfork: Vfork,
    /// For the timer of a sleep with a deadline.
    pub(in crate::process) sleep_room: TimerRoom,
}

impl Member for Task {
    fn place(&self) -> &AtomicUsize {
        &self.place
    }
}

/// The hand-over of a vfork.
pub(in crate::process) struct Vfork {
    pub(in crate::process) waiting: AtomicBool,
    pub(in crate::process) queue: WaitQueue,
}

/// prctl's per-thread settings. Relaxed everywhere: the thread itself writes and reads them.
#[derive(Default)]
pub struct Settings {
    pub no_new_privs: AtomicBool,
    pub parent_death_signal: AtomicI32,
    pub timer_slack: AtomicU64,
    pub personality: AtomicU32,
    /// What it wants of broken memory, of which nothing is told: see `prctl`.
    pub mce_kill: AtomicU32,
    /// For tests: how many allocations it asks for until one fails; 0 for never.
    pub fail_nth: AtomicU32,
    pub speculation: Chosen,
    pub login: Login,
}

/// Who logged in, and in which session: what pam_loginuid writes. [`Login::NOBODY`] until then.
pub struct Login {
    pub uid: AtomicU32,
    pub session: AtomicU32,
}

impl Login {
    pub const NOBODY: u32 = u32::MAX;
}

impl Default for Login {
    fn default() -> Self {
        Self { uid: AtomicU32::new(Self::NOBODY), session: AtomicU32::new(Self::NOBODY) }
    }
}

impl Settings {
    fn fork(&self) -> Self {
        // Relaxed: see the type.
        let order = Ordering::Relaxed;
        Self {
            no_new_privs: AtomicBool::new(self.no_new_privs.load(order)),
            parent_death_signal: AtomicI32::new(0),
            timer_slack: AtomicU64::new(self.timer_slack.load(order)),
            personality: AtomicU32::new(self.personality.load(order)),
            mce_kill: AtomicU32::new(self.mce_kill.load(order)),
            fail_nth: AtomicU32::new(0),
            speculation: self.speculation.fork(),
            login: Login {
                uid: AtomicU32::new(self.login.uid.load(order)),
                session: AtomicU32::new(self.login.session.load(order)),
            },
        }
    }
}

/// What a new task is made of.
pub(in crate::process) struct Parts {
    pub(in crate::process) tid: i32,
    pub(in crate::process) process: Arc<Process>,
    pub(in crate::process) machine: Machine<KernelStack>,
    pub(in crate::process) sched: Entity,
    pub(in crate::process) signals: TaskSignals,
    pub(in crate::process) mm: Option<Memory>,
    pub(in crate::process) files: Option<Files>,
    pub(in crate::process) fs: Option<Arc<FsContext>>,
    pub(in crate::process) cred: Arc<Cred>,
    pub(in crate::process) comm: [u8; COMM_LEN],
    pub(in crate::process) sysv: Part,
    pub(in crate::process) sleep_room: TimerRoom,
}

impl Task {
    #[inline(always)]
    pub(in crate::process) fn new(parts: Parts, parent: Option<&Task>) -> Self {
        users::join(parts.cred.uid);
        Self {
            _counted: Counted::new(Kind::Task),
            tid: AtomicI32::new(parts.tid),
            process: parts.process,
            place: AtomicUsize::new(0),
            machine: parts.machine,
            sched: parts.sched,
            signals: parts.signals,
            mm: OwnerCell::new(parts.mm),
            files: OwnerCell::new(parts.files),
            fs: OwnerCell::new(parts.fs),
            cred: OwnerCell::new(parts.cred),
            registered: Registered::new(),
            comm: SpinLock::new(parts.comm),
            times: Times::new(),
            exiting: AtomicBool::new(false),
            clear_child_tid: AtomicU64::new(0),
            robust_list: AtomicU64::new(0),
            futex_state: AtomicU8::new(0),
            futex: Waits::new(),
            rseq: Rseq::new(),
            tracing: Tracing::new(),
            seccomp: crate::process::seccomp::Part::new(),
            watched: Watched::new(),
            dispatch: Dispatch::new(),
            perf: Watcher::new(),
            sysv: parts.sysv,
            trap: [const { AtomicU64::new(0) }; 3],
            settings: parent.map_or_else(Settings::default, |p| p.settings.fork()),
            sleep_room: parts.sleep_room,
            vfork: Vfork { waiting: AtomicBool::new(false), queue: WaitQueue::new() },
        }
    }

    /// Its number. Relaxed: it changes only when exec gives a thread its leader's.
    #[inline]
    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    pub(in crate::process) fn set_tid(&self, tid: i32) {
        // Relaxed: see `tid`.
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// The process it belongs to.
    #[inline]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Whether it is the process's first thread, whose number is the process's.
    pub fn is_leader(&self) -> bool {
        self.tid() == self.process.pid()
    }

    /// Whether it never runs user code.
    pub fn is_kernel_thread(&self) -> bool {
        !self.machine.is_of_user()
    }

    /// A counted reference to the address space of any task; `None` for kernel threads and zombies.
    pub fn mm_arc(&self) -> Option<Arc<AddressSpace>> {
        self.mm.read(|mm| mm.as_ref().map(|mm| mm.whole().clone()))
    }

    /// Whether it shares its address space with another task.
    pub fn shares_mm(&self) -> bool {
        self.mm.read(|mm| mm.as_ref().is_some_and(Memory::is_shared))
    }

    /// The descriptors of any task, to look at: they are closed when the task is done with them all the same. `None` for
    /// kernel threads and zombies.
    pub fn files_arc(&self) -> Option<Arc<FdTable>> {
        self.files.read(|files| files.as_ref().map(|files| files.whole().clone()))
    }

    /// A counted reference to root and working directory of any task; `None` for zombies.
    pub fn fs_arc(&self) -> Option<Arc<FsContext>> {
        self.fs.read(Clone::clone)
    }

    /// Whether it shares root and working directory with another task.
    pub fn shares_fs_with(&self, other: &FsContext) -> bool {
        self.fs.read(|fs| fs.as_ref().is_some_and(|fs| core::ptr::eq(&**fs, other)))
    }

    /// What semaphores take back when any task ends, if that is anything.
    pub fn undo_list_of(&self) -> Option<Arc<crate::process::sysv::sem::UndoList>> {
        self.sysv.undo_of()
    }

    /// A counted reference to the credentials of any task.
    pub fn cred_arc(&self) -> Arc<Cred> {
        self.cred.read(Clone::clone)
    }

    /// Whom any task runs as.
    #[inline]
    pub fn uid(&self) -> u32 {
        self.cred.read(|cred| cred.uid)
    }

    /// The name, for a panic: nothing when it is being changed.
    pub fn comm_now(&self) -> Option<[u8; COMM_LEN]> {
        self.comm.try_lock().map(|comm| *comm)
    }

    /// The thread's name, NUL-padded.
    pub fn comm(&self) -> [u8; COMM_LEN] {
        *self.comm.lock()
    }

    /// Sets the name; cut at 15 bytes.
    pub fn set_comm(&self, name: &[u8]) {
        *self.comm.lock() = comm_of(name);
    }

    /// Whether a CPU runs on its kernel stack, be it only to leave it.
    #[inline]
    pub(in crate::process) fn is_on_cpu(&self) -> bool {
        self.machine.is_on_cpu()
    }

    /// Whether the thread has begun to exit: it takes no more signals.
    pub fn is_exiting(&self) -> bool {
        // Relaxed: a hint for senders; the thread itself decides.
        self.exiting.load(Ordering::Relaxed)
    }

    pub(in crate::process) fn set_exiting(&self) {
        // Relaxed: see `is_exiting`.
        self.exiting.store(true, Ordering::Relaxed);
    }

    /// The user address of set_tid_address. Relaxed here and below: the thread's own words.
    pub fn clear_child_tid(&self) -> u64 {
        self.clear_child_tid.load(Ordering::Relaxed)
    }

    pub fn set_clear_child_tid(&self, addr: u64) {
        self.clear_child_tid.store(addr, Ordering::Relaxed);
    }

    /// The head of the robust futex list.
    pub fn robust_list(&self) -> u64 {
        self.robust_list.load(Ordering::Relaxed)
    }

    pub fn set_robust_list(&self, head: u64) {
        self.robust_list.store(head, Ordering::Relaxed);
    }

    /// How far the thread is with leaving its locks.
    pub fn futex_state(&self) -> u8 {
        // SeqCst: pairs with the store in `set_futex_state`; see `futex::pi`.
        self.futex_state.load(Ordering::SeqCst)
    }

    pub fn set_futex_state(&self, state: u8) {
        // SeqCst: see `futex_state`.
        self.futex_state.store(state, Ordering::SeqCst);
    }

    /// What the last exception in user mode was.
    pub fn last_trap(&self) -> LastTrap {
        let [vector, error, address] = &self.trap;
        LastTrap {
            vector: vector.load(Ordering::Relaxed),
            error: error.load(Ordering::Relaxed),
            address: address.load(Ordering::Relaxed),
        }
    }

    pub fn set_last_trap(&self, info: LastTrap) {
        for (to, from) in self.trap.iter().zip([info.vector, info.error, info.address]) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// It is switched away from: what the CPU has in hand for its user mode counts no more. Interrupts are off.
    #[inline]
    pub(in crate::process) fn leave_cpu(&self) {
        self.rseq.switched_out(self);
        self.tracing.breakpoints.switched_out(self);
    }

    /// Whether it is in a system call, not in an interrupt or a fault of its program.
    #[inline]
    pub fn is_in_call(&self) -> bool {
        self.machine.is_in_call()
    }

    /// The system call that it is in, with the arguments.
    pub fn user_call(&self) -> Option<(u64, [u64; 6])> {
        self.machine.user_call()
    }

    /// Its user registers, when it is in the kernel.
    pub(in crate::process) fn user_frame(&self) -> Option<TrapFrame> {
        self.machine.user_frame()
    }

    /// Its user program counter and stack pointer, when it is in the kernel.
    pub fn user_pc_sp(&self) -> (u64, u64) {
        self.machine.user_pc_sp()
    }
}

/// What only the task itself may do.
impl Current {
    /// Its address space, if it is a user task.
    #[inline]
    pub fn mm(self) -> OwnerRef<AddressSpace> {
        OwnerRef::map(self.map(|task| &task.mm).borrow(), |mm| match mm {
            Some(mm) => &**mm,
            None => panic!("a task without user memory asks for it"),
        })
    }

    /// Replaces the address space (exec, exit).
    pub(in crate::process) fn set_mm(self, mm: Option<Memory>) -> Option<Memory> {
        self.map(|task| &task.mm).replace(mm)
    }

    /// A part in its address space for another task; `None` for kernel threads.
    pub(in crate::process) fn share_mm(self) -> Option<Memory> {
        self.map(|task| &task.mm).borrow().as_ref().map(Memory::share)
    }

    /// Its descriptors, if it is a user task.
    #[inline]
    pub fn files(self) -> OwnerRef<Files> {
        OwnerRef::map(self.map(|task| &task.files).borrow(), |files| match files {
            Some(files) => files,
            None => panic!("a task without descriptors asks for them"),
        })
    }

    /// Replaces the descriptors (unshare, exec, exit).
    pub fn set_files(self, files: Option<Files>) -> Option<Files> {
        self.map(|task| &task.files).replace(files)
    }

    /// Its root and working directory, if it is a user task.
    #[inline]
    pub fn fs(self) -> OwnerRef<Arc<FsContext>> {
        OwnerRef::map(self.map(|task| &task.fs).borrow(), |fs| match fs {
            Some(fs) => fs,
            None => panic!("a task without directories asks for them"),
        })
    }

    /// Replaces root and working directory (unshare, exit).
    pub fn set_fs(self, fs: Option<Arc<FsContext>>) -> Option<Arc<FsContext>> {
        self.map(|task| &task.fs).replace(fs)
    }

    /// unshare(CLONE_SYSVSEM): what its end would take back of semaphores is taken back now, unless others share it.
    pub fn leave_undo(self) {
        self.map(|task| &task.sysv).leave_undo();
    }

    /// Its credentials.
    #[inline]
    pub fn cred(self) -> OwnerRef<Arc<Cred>> {
        self.map(|task| &task.cred).borrow()
    }

    /// Changes its identity.
    pub fn set_cred(self, cred: Arc<Cred>) {
        let new = cred.uid;
        let old = self.map(|task| &task.cred).replace(cred).uid;
        if new != old {
            users::join(new);
            users::leave(old);
        }
    }

    /// The vector state of a user task.
    #[inline]
    pub fn vectors(self) -> current::Current<FpuState> {
        match self.fpu() {
            Some(fpu) => fpu,
            None => panic!("a kernel thread has no vector state"),
        }
    }
}

impl Running for Task {
    type Stack = KernelStack;
    #[inline]
    fn machine(&self) -> &Machine<KernelStack> {
        &self.machine
    }
}

/// A name cut and padded to the size of a thread's.
pub(in crate::process) fn comm_of(name: &[u8]) -> [u8; COMM_LEN] {
    let mut comm = [0; COMM_LEN];
    let len = name.iter().take(COMM_LEN - 1).take_while(|&&b| b != 0).count();
    comm[..len].copy_from_slice(&name[..len]);
    comm
}

impl Task {
    /// Loads the task's address space on this CPU; a kernel thread keeps what is there. Interrupts are off.
    #[inline]
    pub(in crate::process) fn activate_mm(&self) {
        self.mm.read_irqs_off(|mm| match mm {
            Some(mm) => mm.activate(),
            None => AddressSpace::leave_lazily(),
        });
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        users::leave(self.cred.read(|cred| cred.uid));
    }
}
