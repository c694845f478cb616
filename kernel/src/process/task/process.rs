//! [`Process`]: what the threads of a program share, and its place in the tree.
//!
//! Owns these. A child
//! holds its parent and a parent its children: the circle ends when the parent exits and gives its children
//! away, or reaps them. Never holds an address space or descriptors: its threads do.
//!
//! Locks: parent, children and threads ([`Family`]) are under the `tree` lock (`ProcessTree`, parent before child);
//! group, limits and program under `ProcessState`. Outside all of them, and of an address space's, is that of [`Steady`].

use super::limits::{Limit, Limits, Resource};
use super::members::{Member, Members};
use super::task::Task;
use crate::base::cpu;
use crate::mm::AddressSpace;
use crate::mm::fallible::try_arc;
use crate::mm::frames::Account;
use crate::process::memory::oom::Adjustment;
use crate::process::ptrace::Tracees;
use crate::process::signal::ProcessSignals;
use crate::process::timers::times::{Moved, Spent, Usage};
use crate::process::tree::family::Family;
use crate::process::tree::group::{Group, Session};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Mutex, MutexGuard, Once, SpinLock, WaitQueue, level};
use crate::vfs::{Cred, Path};
use abi::Result;
use abi::signal::Signal;
use alloc::sync::Arc;
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

pub use crate::process::exec::Program;

/// What the threads of a program share.
/// Anonymous memory, private and shared, ELF headers, and private huge pages.
const DEFAULT_COREDUMP_FILTER: u32 = 0x33;

pub struct Process {
    _counted: Counted,
    pid: i32,
    tree: SpinLock<Family, level::ProcessTree>,
    group: SpinLock<Arc<Group>, level::ProcessState>,
    limits: SpinLock<Arc<Limits>, level::ProcessState>,
    /// The soft limit of descriptors, which every `open` asks for. Relaxed: one number.
    nofile: AtomicU32,
    program: SpinLock<Option<Arc<Program>>, level::ProcessState>,
    /// See [`Steady`].
    executes: Mutex<()>,
    /// Exit status and the flags of `ending`.
    pub(super) exit: AtomicU32,
    /// The leader has ended.
    pub(super) leader_left: AtomicBool,
    /// The thread number that makes itself the only one.
    pub(super) exec_tid: AtomicI32,
    live_threads: AtomicU32,
    /// Threads that were counted out, or are about to be, and are not out of the lists yet.
    leaving_threads: AtomicU32,
    pub signals: ProcessSignals,
    /// Those whom its threads trace.
    pub(in crate::process) tracees: Tracees,
    /// The process whose thread traces its leader, by its number, which it keeps so long; 0 for none. Relaxed: each change
    /// is under a lock that those who must be exact take, too.
    leader_tracer: AtomicI32,
    /// The number of the thread that made it. Relaxed: set before it runs.
    maker: AtomicI32,
    /// How many forks lie between process 1 and it. Relaxed: set before it runs.
    generation: AtomicU32,
    /// Woken when a child exits, stops or goes on.
    pub children_changed: WaitQueue,
    /// Woken when the process has ended: for pidfds.
    pub(in crate::process) ended: WaitQueue,
    /// Woken when a thread ends: for exec, which waits for its siblings.
    pub(in crate::process) threads_changed: WaitQueue,
    /// What threads that are gone and children that were waited for have used.
    pub(in crate::process) spent: SpinLock<Spent, level::ProcessState>,
    pub(in crate::process) oom_adjustment: Adjustment,
    /// What the kernel's own memory is charged to that it makes the kernel take.
    pub(in crate::process) account: Account,
    /// PR_SET_DUMPABLE. Relaxed here and below: single settings.
    pub dumpable: AtomicU32,
    /// `MMF_DUMP_FILTER`: which mappings a core is to have.
    pub(in crate::process) coredump_filter: AtomicU32,
    pub child_subreaper: AtomicBool,
    /// TIOCNOTTY by one that leads no session: the session's terminal is not its own any more.
    pub(in crate::process) gave_up_terminal: AtomicBool,
    pub(in crate::process) has_execed: AtomicBool,
    /// Set with the parent, by [`take_in`](Self::take_in); by exec.
    pub(in crate::process) exit_signal: AtomicI32,
    /// Its index among the parent's children. Relaxed: only used under the parent's `tree` lock.
    place: AtomicUsize,
}

impl Member for Process {
    fn place(&self) -> &AtomicUsize {
        &self.place
    }
}

/// That a process keeps its program and what exec makes of its identity. Exec has it from its look at the tracers until the new
/// program can be seen, and who looks into the process from the question whether he may until he has what he wants: so nobody
/// gets into a program with the rights that the one before it left him.
pub struct Steady<'a> {
    _held: MutexGuard<'a, ()>,
}

/// What a new process is made of.
pub(in crate::process) struct Parts {
    pub(in crate::process) pid: i32,
    pub(in crate::process) group: Arc<Group>,
    pub(in crate::process) limits: Arc<Limits>,
    pub(in crate::process) program: Option<Arc<Program>>,
    pub(in crate::process) signals: ProcessSignals,
}

/// Root's credentials, which process 1 and the kernel's threads begin with.
pub(in crate::process) fn root_cred() -> Arc<Cred> {
    static ROOT: Once<Arc<Cred>> = Once::new();
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    ROOT.call_once(|| Arc::new(Cred::root())).clone()
}

impl Process {
    #[inline(always)]
    pub(in crate::process) fn new(parts: Parts) -> Self {
        let nofile = parts.limits.soft(Resource::NoFile);
        Self {
            _counted: Counted::new(Kind::Process),
            pid: parts.pid,
            tree: SpinLock::new(Family::default()),
            group: SpinLock::new(parts.group),
            nofile: AtomicU32::new(u32::try_from(nofile).unwrap_or(u32::MAX)),
            limits: SpinLock::new(parts.limits),
            program: SpinLock::new(parts.program),
            executes: Mutex::new(()),
            exit: AtomicU32::new(0),
            leader_left: AtomicBool::new(false),
            exec_tid: AtomicI32::new(0),
            live_threads: AtomicU32::new(1),
            leaving_threads: AtomicU32::new(0),
            signals: parts.signals,
            tracees: Tracees::new(),
            leader_tracer: AtomicI32::new(0),
            maker: AtomicI32::new(0),
            generation: AtomicU32::new(0),
            children_changed: WaitQueue::new(),
            ended: WaitQueue::new(),
            threads_changed: WaitQueue::new(),
            spent: SpinLock::new(Spent::default()),
            oom_adjustment: Adjustment::default(),
            account: Account::default(),
            coredump_filter: AtomicU32::new(DEFAULT_COREDUMP_FILTER),
            dumpable: AtomicU32::new(1),
            child_subreaper: AtomicBool::new(false),
            gave_up_terminal: AtomicBool::new(false),
            has_execed: AtomicBool::new(false),
            exit_signal: AtomicI32::new(Signal::SIGCHLD.number()),
            place: AtomicUsize::new(0),
        }
    }

    /// What a child takes over beside its parts.
    pub(in crate::process) fn inherit_settings(&self, parent: &Self) {
        // Relaxed: settings of two processes that no other thread changes now.
        let order = Ordering::Relaxed;
        self.dumpable.store(parent.dumpable.load(order), order);
        self.oom_adjustment.inherit(&parent.oom_adjustment);
        self.coredump_filter.store(parent.coredump_filter.load(order), order);
        self.gave_up_terminal.store(parent.gave_up_terminal.load(order), order);
        self.generation.store(parent.generation().saturating_add(1), order);
    }

    /// Its number.
    #[inline]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it is the first process.
    #[inline]
    pub fn is_init(&self) -> bool {
        self.pid == 1
    }

    pub(in crate::process) fn tree(&self) -> &SpinLock<Family, level::ProcessTree> {
        &self.tree
    }

    /// Its parent; `None` for the first process and kernel threads.
    #[inline]
    pub fn parent(&self) -> Option<Arc<Process>> {
        self.tree.lock().parent.clone()
    }

    /// Its parent's number, 0 for none.
    pub fn ppid(&self) -> i32 {
        self.tree.lock().parent.as_ref().map_or(0, |p| p.pid)
    }

    /// Whether a thread of `other` traces its leader; `None` if nobody does.
    pub(in crate::process) fn is_led_by_tracee_of(&self, other: &Process) -> Option<bool> {
        match self.leader_tracer.load(Ordering::Relaxed) {
            0 => None,
            tracer => Some(tracer == other.pid),
        }
    }

    /// Whether somebody traces its leader.
    pub(in crate::process) fn has_traced_leader(&self) -> bool {
        self.leader_tracer.load(Ordering::Relaxed) != 0
    }

    pub(in crate::process) fn set_leader_tracer(&self, tracer: Option<&Process>) {
        self.leader_tracer.store(tracer.map_or(0, |tracer| tracer.pid), Ordering::Relaxed);
    }

    /// How many forks lie between process 1 and it, whoever its parent is now.
    pub(in crate::process) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The number of the thread that made it.
    pub(in crate::process) fn maker(&self) -> i32 {
        self.maker.load(Ordering::Relaxed)
    }

    pub(in crate::process) fn set_maker(&self, tid: i32) {
        self.maker.store(tid, Ordering::Relaxed);
    }

    /// Its group.
    #[inline]
    pub fn group(&self) -> Arc<Group> {
        self.group.lock().clone()
    }

    pub(in crate::process) fn swap_group(&self, group: Arc<Group>) -> Arc<Group> {
        core::mem::replace(&mut self.group.lock(), group)
    }

    /// The number of its group.
    pub fn pgid(&self) -> i32 {
        self.group.lock().pgid()
    }

    /// Its session.
    pub fn session(&self) -> Arc<Session> {
        self.group.lock().session().clone()
    }

    /// Whether nobody in its session could continue its group.
    pub fn is_orphaned_group(&self) -> bool {
        self.group().is_orphaned(None)
    }

    /// Waits for an exec, and keeps others off. Nobody has two of them.
    pub fn steady(&self) -> Steady<'_> {
        Steady { _held: self.executes.lock() }
    }

    /// Its resource limits.
    pub fn limits(&self) -> Arc<Limits> {
        self.limits.lock().clone()
    }

    /// What `look` sees in them.
    #[inline]
    pub fn with_limits<T>(&self, look: impl FnOnce(&Limits) -> T) -> T {
        look(&self.limits.lock())
    }

    /// Replaces one limit by what `change` makes of it, or passes on why it does not: the old one. Of changes at the same moment
    /// each sees what the one before it made.
    pub(in crate::process) fn replace_limit(
        &self,
        which: Resource,
        change: impl Fn(Limit) -> Result<Limit>,
    ) -> Result<Limit> {
        loop {
            let seen = self.limits();
            let old = seen.get(which);
            let new = try_arc(seen.with(which, change(old)?))?;
            let nofile = u32::try_from(new.soft(Resource::NoFile)).unwrap_or(u32::MAX);
            let mut limits = self.limits.lock();
            if !Arc::ptr_eq(&limits, &seen) {
                continue;
            }
            // Relaxed: see the field.
            self.nofile.store(nofile, Ordering::Relaxed);
            // Not the last reference: that is `seen`.
            *limits = new;
            return Ok(old);
        }
    }

    /// The soft limit of open descriptors.
    #[inline]
    pub fn nofile_limit(&self) -> usize {
        // Relaxed: see the field.
        self.nofile.load(Ordering::Relaxed) as usize
    }

    /// The program it runs; `None` for kernel threads.
    pub fn program(&self) -> Option<Arc<Program>> {
        self.program.lock().clone()
    }

    pub(in crate::process) fn set_program(&self, program: Option<Arc<Program>>) {
        let old = core::mem::replace(&mut *self.program.lock(), program);
        drop(old);
    }

    /// Where its executable lies.
    pub fn exe(&self) -> Option<Path> {
        self.program().map(|p| p.exe().clone())
    }

    /// Visits its threads, under the tree lock: the visitor must not take it.
    pub fn for_each_thread(&self, visit: &mut dyn FnMut(&Arc<Task>)) {
        self.tree.lock().threads.iter().for_each(visit);
    }

    /// The leader, or the thread that stands for it.
    pub fn any_thread(&self) -> Option<Arc<Task>> {
        self.tree.lock().threads.first().cloned()
    }

    /// Whether the thread is one of its own that has not ended.
    pub fn has_thread(&self, task: &Task) -> bool {
        self.tree.lock().threads.contains(task)
    }

    /// How many threads have not ended.
    pub fn thread_count(&self) -> usize {
        // Relaxed: a number to show; who must be exact holds the tree lock.
        self.live_threads.load(Ordering::Relaxed) as usize
    }

    pub(in crate::process) fn add_live_thread(&self) {
        // Relaxed: see `thread_count`; the thread is published by the tree lock.
        self.live_threads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a thread out; true for the last, which goes on when the others are out of all lists. Any other one
    /// calls [`has_left`](Self::has_left) in the end, and must not block until then.
    pub(in crate::process) fn drop_live_thread(&self) -> bool {
        // Acquire: pairs with the AcqRel below.
        let mut is_last = self.live_threads.load(Ordering::Acquire) == 1;
        if is_last {
            // Only a thread of the process could make another one. Relaxed: nobody else writes it now.
            self.live_threads.store(0, Ordering::Relaxed);
        } else {
            // Relaxed: published by the next step.
            self.leaving_threads.fetch_add(1, Ordering::Relaxed);
            // AcqRel: pairs with itself, so that the last thread sees what the others did before.
            is_last = self.live_threads.fetch_sub(1, Ordering::AcqRel) == 1;
            if is_last {
                self.has_left();
            }
        }
        while is_last && self.has_leaving_threads() {
            cpu::relax();
        }
        is_last
    }

    /// The thread that was counted out is out of all lists.
    pub(in crate::process) fn has_left(&self) {
        // Release: pairs with the Acquire in `has_leaving_threads`.
        self.leaving_threads.fetch_sub(1, Ordering::Release);
    }

    fn has_leaving_threads(&self) -> bool {
        // Acquire: pairs with the Release in `has_left`.
        self.leaving_threads.load(Ordering::Acquire) != 0
    }

    /// Whether the caller, one of its threads, is the only one, and all others are out of all lists.
    pub(in crate::process) fn is_single_threaded(&self) -> bool {
        // Acquire: pairs with the AcqRel in `drop_live_thread`: who was counted out is seen to be leaving.
        self.live_threads.load(Ordering::Acquire) == 1 && !self.has_leaving_threads()
    }

    /// Whether so many of its threads have not ended, and all others are out of all lists.
    pub(in crate::process) fn has_live_threads(&self, count: usize) -> bool {
        // Acquire: as in `is_single_threaded`.
        self.live_threads.load(Ordering::Acquire) as usize == count && !self.has_leaving_threads()
    }

    /// Credentials of its leader.
    pub fn cred(&self) -> Arc<Cred> {
        let leader = self.any_thread();
        leader.map_or_else(root_cred, |leader| leader.cred_arc())
    }

    /// The real user.
    pub fn uid(&self) -> u32 {
        self.any_thread().map_or(0, |leader| leader.cred_arc().uid)
    }

    /// User and system time in clock ticks (1/100 s), for SIGCHLD.
    pub fn cpu_times_ticks(&self) -> (i64, i64) {
        self.usage().ticks()
    }

    /// The name of its leader.
    pub fn name(&self) -> ArrayVec<u8, 16> {
        let comm = self.any_thread().map(|leader| leader.comm()).unwrap_or_default();
        let mut name = ArrayVec::from(comm);
        name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
        name
    }

    /// Its address space, while one of its threads has it.
    pub fn mm(&self) -> Option<Arc<AddressSpace>> {
        let tree = self.tree.lock();
        tree.threads.iter().find_map(|thread| thread.mm_arc())
    }

    /// Whether it has not given its memory back yet.
    pub fn has_memory(&self) -> bool {
        self.mm().is_some()
    }

    /// What all its threads have used, those that are gone included.
    pub fn usage(&self) -> Usage {
        let tree = self.tree.lock();
        let mut usage = self.spent.lock().threads;
        tree.threads.iter().for_each(|thread| usage.add(&thread.times.usage()));
        usage
    }

    /// What calls of all its threads have read and written, those that are gone included.
    pub fn moved(&self) -> Moved {
        let tree = self.tree.lock();
        let mut moved = self.spent.lock().moved;
        tree.threads.iter().for_each(|thread| moved.add(&thread.times.moved()));
        moved
    }

    /// Takes a thread that has ended out of its list, which `take` does, and keeps what it used: at once, so that a sum never
    /// lacks a thread nor has it twice.
    pub(in crate::process) fn part_with(
        &self,
        take: impl FnOnce(&mut Members<Task>) -> Option<Arc<Task>>,
    ) -> Option<Arc<Task>> {
        let mut tree = self.tree.lock();
        let gone = take(&mut tree.threads)?;
        let mut spent = self.spent.lock();
        spent.threads.add(&gone.times.usage());
        spent.moved.add(&gone.times.moved());
        Some(gone)
    }

    /// What its children that were waited for have used.
    pub fn children_usage(&self) -> Usage {
        self.spent.lock().children
    }
}
