//! The sessions: who sees what of which tasks.
//!
//! Owns the table of all sessions and the numbers that tasks are marked with, which are never given twice. A task that is
//! marked with a session that is over is traced by nobody. Locks: a mutex, for who begins or ends one.

use super::emit;
use super::record::Kind;
use super::ring::Ring;
use crate::base::percpu;
use crate::mm::fallible::{TryGrow, try_arc};
use crate::process::ptrace;
use crate::process::task::current::Current;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::tree::table::for_each_process;
use crate::process::watch::{self, Reason};
use crate::sync::{Mutex, Slots, WaitQueue};
use crate::trace::{self, Mark, Point, Points, Subscriber};
use crate::vfs::{Capability, Cred};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

/// How many sessions there may be at once.
const SESSIONS: usize = 32;

/// How many of them may be one user's who is not root.
const OF_USER: usize = 4;

static SLOTS: Slots<Session, SESSIONS> = Slots::new();

/// The sessions that see all tasks. Relaxed: who misses one for an instant misses an event.
static SEE_ALL: AtomicU32 = AtomicU32::new(0);

/// Held by who begins or ends a session.
static CHANGES: Mutex<u32> = Mutex::new(0);

/// What somebody asks for.
pub(super) struct Config {
    pub cred: Arc<Cred>,
    pub points: Points,
    /// The system calls, by number; none stands for all.
    pub calls: Option<[u64; 8]>,
    /// Bytes of each CPU's ring.
    pub size: usize,
    /// How much of what an argument points to is copied; with 0 not even paths are.
    pub strings: usize,
    /// Whether children of traced processes are traced.
    pub follow: bool,
}

/// One session.
pub(super) struct Session {
    mark: Mark,
    pub config: Config,
    /// Whether it hears of the end of every call.
    pub wants_each_end: bool,
    /// The process whose own doings a session that sees all does not show: who reads it.
    reader: i32,
    sees_all: bool,
    pub sees_kernel: bool,
    pub rings: Vec<Ring>,
    /// How many tasks are marked with it.
    tasks: AtomicUsize,
    pub readers: WaitQueue,
}

impl Session {
    /// Begins one; it traces nothing until tasks are given to it, unless it `sees_all`.
    pub fn begin(config: Config, reader: i32, sees_all: bool) -> Result<Arc<Self>> {
        let words = config.size / size_of::<u64>();
        let mut rings = Vec::new();
        for _ in 0..percpu::cpus_online() {
            rings.try_push(Ring::new(words)?)?;
        }
        let mut last = CHANGES.lock();
        let free = free_slot(&config.cred)?;
        // One that leaves nothing unmarked: 0 is no mark.
        let mark = next_mark(*last, free);
        *last = mark;
        let sees_kernel = config.cred.capable(Capability::SYSLOG);
        let wants_each_end = config.calls.is_none() && config.points.has(Point::Leave);
        let session = try_arc(Self {
            mark: Mark(mark),
            config,
            wants_each_end,
            reader,
            sees_all,
            sees_kernel,
            rings,
            tasks: AtomicUsize::new(0),
            readers: WaitQueue::new(),
        })?;
        if SLOTS.put(free, session.clone()).is_err() {
            return Err(Errno::EBUSY);
        }
        if sees_all {
            SEE_ALL.fetch_or(1 << free, Ordering::Relaxed);
        }
        subscribe();
        Ok(session)
    }

    /// Ends it: nobody is traced by it any more.
    pub fn end(&self) {
        let _changes = CHANGES.lock();
        let slot = slot_of(self.mark);
        SEE_ALL.fetch_and(!(1 << slot), Ordering::Relaxed);
        drop(SLOTS.take(slot));
        subscribe();
        for_each_process(&mut |process| {
            process.for_each_thread(&mut |thread| {
                if thread.watched.clear_mark(self.mark) {
                    watch::watch_task(thread, Reason::Ring, false);
                }
            });
        });
    }

    /// Gives it all threads of a process: `EPERM` if its owner may not trace that, `EBUSY` if another session does.
    pub fn trace(&self, process: &Process) -> Result<()> {
        let leader = process.any_thread().ok_or(Errno::ESRCH)?;
        if leader.is_kernel_thread() || process.is_init() && !self.is_privileged() {
            return Err(Errno::EPERM);
        }
        if !ptrace::access::cred_may_access(&leader, &self.config.cred) {
            return Err(Errno::EPERM);
        }
        loop {
            let mut added = 0;
            let mut busy = false;
            process.for_each_thread(&mut |thread| match self.add(thread) {
                Added::New => added += 1,
                Added::Own => {}
                Added::Busy => busy = true,
            });
            if busy {
                return Err(Errno::EBUSY);
            }
            // A thread that one made meanwhile that was not traced yet.
            if added == 0 {
                return Ok(());
            }
        }
    }

    fn is_privileged(&self) -> bool {
        self.config.cred.capable(Capability::SYS_PTRACE)
    }

    fn add(&self, task: &Task) -> Added {
        let old = task.watched.mark();
        if old == self.mark || task.is_exiting() {
            return Added::Own;
        }
        if is_alive(old) {
            return Added::Busy;
        }
        // Relaxed: a count, which its readers look at again.
        self.tasks.fetch_add(1, Ordering::Relaxed);
        task.watched.set_mark(self.mark);
        // SeqCst, with the swap in `task_ends`: the task finds the mark when it ends, or it is seen here that it does.
        fence(Ordering::SeqCst);
        if task.is_exiting() && task.watched.clear_mark(self.mark) {
            self.drop_task();
            return Added::Own;
        }
        watch::watch_task(task, Reason::Ring, true);
        Added::New
    }

    fn drop_task(&self) {
        // Relaxed: the queue orders it.
        if self.tasks.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.readers.wake_all();
        }
    }

    /// Whether it hears of `point`.
    #[inline]
    pub fn wants(&self, point: Point) -> bool {
        self.config.points.has(point)
    }

    /// Whether it hears of this system call.
    #[inline]
    pub fn wants_call(&self, number: u32) -> bool {
        match &self.config.calls {
            None => true,
            Some(calls) => {
                calls.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
            }
        }
    }

    /// Whether nothing more will be written.
    pub fn is_over(&self) -> bool {
        // Relaxed: the queue orders it.
        !self.sees_all && self.tasks.load(Ordering::Relaxed) == 0
    }
}

enum Added {
    New,
    Own,
    Busy,
}

fn slot_of(mark: Mark) -> usize {
    mark.0 as usize % SESSIONS
}

/// The next number after `last` that stands for `slot`; never 0.
fn next_mark(last: u32, slot: usize) -> u32 {
    let round = (last / SESSIONS as u32).wrapping_add(1).max(1);
    round.wrapping_mul(SESSIONS as u32) | slot as u32
}

fn free_slot(cred: &Cred) -> Result<usize> {
    let mut own = 0;
    let mut free = None;
    for slot in 0..SESSIONS {
        match SLOTS.look(slot, |session| session.config.cred.uid) {
            Some(uid) => own += usize::from(uid == cred.uid),
            None => free = free.or(Some(slot)),
        }
    }
    if own >= OF_USER && !cred.capable(Capability::SYS_ADMIN) {
        return Err(Errno::EMFILE);
    }
    free.ok_or(Errno::EBUSY)
}

/// Tells the tracepoints what the sessions want together.
fn subscribe() {
    let mut points = Points::none();
    let mut calls_of_all = false;
    for slot in 0..SESSIONS {
        let wanted = SLOTS.look(slot, |session| (session.config.points, session.sees_all));
        let Some((wanted, sees_all)) = wanted else { continue };
        points = points.or(wanted);
        let of_calls = [Point::Enter, Point::Leave, Point::Draw];
        calls_of_all |= sees_all && of_calls.iter().any(|&point| wanted.has(point));
    }
    trace::wants(Subscriber::Ring, points);
    if watch::is_for_all(Reason::Ring) != calls_of_all {
        watch::watch_all(Reason::Ring, calls_of_all);
    }
}

fn is_alive(mark: Mark) -> bool {
    mark != Mark::default() && look(mark, |_| ()).is_some()
}

/// Looks at the session of a mark, if it is not over; interrupts are off.
#[inline]
pub(super) fn look<R>(mark: Mark, act: impl FnOnce(&Session) -> R) -> Option<R> {
    if mark == Mark::default() {
        return None;
    }
    SLOTS.look(slot_of(mark), |session| (session.mark == mark).then(|| act(session))).flatten()
}

/// The same where interrupts are on.
#[inline(always)]
pub(super) fn look_in_task(mark: Mark, act: impl FnOnce(&Session)) {
    let see = |session: &Session| {
        if session.mark == mark {
            act(session);
        }
    };
    // That of no session is not found.
    SLOTS.look_in_task(slot_of(mark), see);
}

/// Whether there are any that see all.
#[inline(always)]
pub(super) fn sees_all() -> bool {
    SEE_ALL.load(Ordering::Relaxed) != 0
}

/// Looks at those that see all, and so the task of process `pid`.
#[inline]
pub(super) fn look_at_all(pid: i32, mut act: impl FnMut(&Session)) {
    let mut left = SEE_ALL.load(Ordering::Relaxed);
    while left != 0 {
        let slot = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        let see = |session: &Session| {
            if session.sees_all && session.reader != pid {
                act(session);
            }
        };
        SLOTS.look(slot, see);
    }
}

/// A child of the running task is in all lists, and does not run yet.
#[inline]
pub(in crate::process) fn inherit(parent: Current, child: &Task, is_thread: bool) {
    let mark = parent.watched.mark();
    if mark != Mark::default() {
        adopt(mark, child, is_thread);
    }
}

#[cold]
fn adopt(mark: Mark, child: &Task, is_thread: bool) {
    let adopted = look(mark, |session| {
        let adopts = is_thread || session.config.follow;
        if adopts && child.watched.mark() != mark {
            // Relaxed: as in `add`.
            session.tasks.fetch_add(1, Ordering::Relaxed);
            child.watched.set_mark(mark);
        }
        adopts
    });
    if adopted == Some(true) {
        watch::watch_task(child, Reason::Ring, true);
    }
}

/// The running task ends, and said so before.
#[inline]
pub(in crate::process) fn task_ends(task: Current) {
    // SeqCst, by being a swap on this machine: see `add`.
    let mark = task.watched.set_mark(Mark::default());
    if mark != Mark::default() {
        look(mark, Session::drop_task);
    }
}

/// The running task has another program: it is not traced any more by who may not look into that.
#[inline]
pub(in crate::process) fn exec_done(task: Current) {
    let mark = task.watched.mark();
    if mark != Mark::default() {
        stay_or_leave(task, mark);
    }
}

#[cold]
fn stay_or_leave(task: Current, mark: Mark) {
    // Outside of the look, which must not take the locks of credentials.
    let Some(cred) = look(mark, |session| session.config.cred.clone()) else { return };
    if ptrace::access::cred_may_access(&task, &cred) {
        return;
    }
    look(mark, |session| emit::write(&session.rings, Kind::Left, task.tid(), &[]));
    if task.watched.clear_mark(mark) {
        watch::watch_task(&task, Reason::Ring, false);
        look(mark, Session::drop_task);
    }
}
