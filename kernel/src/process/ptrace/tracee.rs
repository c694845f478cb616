//! [`Tracee`]: what is between a task and the one that traces it; [`Tracing`], each task's own part of it; [`Tracees`], a
//! process's list of those that its threads trace.
//!
//! Owns the state of a stop. A tracee holds its tracer, and the tracer's process holds its tracees: the circle ends when one
//! of them ends, or with PTRACE_DETACH. Never drops a task under a lock. Locks: see the folder's head; a stopped tracee
//! sleeps in `resumed`, who asks it something in `answered`.

use super::breakpoints::Breakpoints;
use super::order::{Mode, Resume};
use super::told::{Exchange, Stop};
use crate::mm::fallible::{TryGrow, try_arc, try_box};
use crate::process::task::task::Task;
use crate::process::tree::exit::Status;
use crate::sync::{SpinLock, WaitQueue, level};
use abi::ptrace::{Options, Regs};
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// What is between a task and its tracer.
pub(super) struct Tracee {
    /// The thread that traces it: no other one of its process may ask for anything.
    pub(super) tracer: Arc<Task>,
    /// By PTRACE_SEIZE: it stops for events only, and knows PTRACE_INTERRUPT and PTRACE_LISTEN.
    pub(super) seized: bool,
    /// Relaxed: the tracer writes them while the tracee stands, but for those that it begins with.
    options: AtomicU32,
    pub(super) state: SpinLock<State, level::Trace>,
    /// The tracee sleeps here while it is stopped.
    pub(super) resumed: WaitQueue,
    /// The tracer sleeps here until the tracee has answered.
    pub(super) answered: WaitQueue,
}

/// The state of a stop.
#[derive(Default)]
pub(super) struct State {
    /// Where it stands, from the moment on at which its tracer may ask about it until it is told to go on.
    pub(super) stop: Option<Stop>,
    /// The tracer's `wait` has seen this stop.
    pub(super) reported: bool,
    /// PTRACE_LISTEN: it stays where it is, and is told of SIGCONT.
    pub(super) listening: bool,
    /// How it is to go on, from the tracer's request until it does.
    pub(super) order: Option<Resume>,
    /// Its registers, as of the stop or as the tracer has set them.
    pub(super) regs: Regs,
    pub(super) regs_changed: bool,
    pub(super) vectors: Exchange,
    /// The tracer has let it go.
    pub(super) over: bool,
    /// It has ended, and its tracer's `wait` has not seen it.
    pub(super) ended: Option<Status>,
}

impl State {
    /// If it stands, it goes on as if nobody traced it, once `resumed` is woken. Whether it stood.
    pub(super) fn go_on(&mut self) -> bool {
        let stands = self.stop.is_some();
        if stands {
            self.order = Some(Resume::FREE);
        }
        stands
    }
}

impl Tracee {
    pub(super) fn new(tracer: Arc<Task>, seized: bool, options: Options) -> Result<Arc<Self>> {
        try_arc(Self {
            tracer,
            seized,
            options: AtomicU32::new(options.bits()),
            state: SpinLock::new(State::default()),
            resumed: WaitQueue::new(),
            answered: WaitQueue::new(),
        })
    }

    pub(super) fn options(&self) -> Options {
        // Relaxed: see the field.
        Options::from_bits_truncate(self.options.load(Ordering::Relaxed))
    }

    pub(super) fn set_options(&self, options: Options) {
        // Relaxed: see the field.
        self.options.store(options.bits(), Ordering::Relaxed);
    }
}

/// A task's own part.
pub(in crate::process) struct Tracing {
    tracee: SpinLock<Option<Arc<Tracee>>, level::Owned>,
    /// Whether there is one. Relaxed: a hint, which spares the lock; who attaches makes the task look again.
    traced: AtomicBool,
    /// It has ended, or begins to be told of as ended: nobody traces it anew. Set and asked for under the lock of `tracee` by
    /// those who act by it. Relaxed: a hint for who shows it.
    ended: AtomicBool,
    /// It stands for its tracer. Relaxed: a hint for who chooses a thread for a signal, in an interrupt too.
    standing: AtomicBool,
    /// It is to stop by itself, for PTRACE_INTERRUPT or a SIGCONT.
    trap: AtomicBool,
    /// How it goes on since its last stop. Relaxed here and below: the task's own.
    mode: AtomicU8,
    /// The last stop of its process in which it took part.
    stop_seen: AtomicU32,
    /// The single-step flag in its registers is the tracer's.
    stepping: AtomicBool,
    /// It stopped for an event of the call that it is in: what its tracer said there acts at the call's end.
    leaves: AtomicBool,
    pub(in crate::process) breakpoints: Breakpoints,
}

impl Tracing {
    pub(in crate::process) const fn new() -> Self {
        Self {
            tracee: SpinLock::new(None),
            traced: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            standing: AtomicBool::new(false),
            trap: AtomicBool::new(false),
            mode: AtomicU8::new(Mode::Run as u8),
            stop_seen: AtomicU32::new(0),
            stepping: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            breakpoints: Breakpoints::new(),
        }
    }

    /// Whether somebody traces it.
    #[inline]
    pub(in crate::process) fn is_traced(&self) -> bool {
        // Relaxed: see the field.
        self.traced.load(Ordering::Relaxed)
    }

    /// What is between it and its tracer.
    pub(super) fn tracee(&self) -> Option<Arc<Tracee>> {
        if self.is_traced() { self.tracee.lock().clone() } else { None }
    }

    /// Its tracer.
    pub(in crate::process) fn tracer(&self) -> Option<Arc<Task>> {
        self.tracee().map(|tracee| tracee.tracer.clone())
    }

    /// Whether it stands for its tracer.
    pub(in crate::process) fn is_stopped(&self) -> bool {
        self.tracee().is_some_and(|tracee| tracee.state.lock().stop.is_some())
    }

    /// As [`is_stopped`](Self::is_stopped), without its lock: it may tell so a little late.
    pub(in crate::process) fn may_stand(&self) -> bool {
        // Relaxed: see the field.
        self.standing.load(Ordering::Relaxed)
    }

    pub(super) fn set_standing(&self, stands: bool) {
        // Relaxed: see the field.
        self.standing.store(stands, Ordering::Relaxed);
    }

    /// Makes it traced, unless it is already, or has ended. `taken` is called under the lock if it is: before the end, that is.
    pub(super) fn begin(&self, tracee: &Arc<Tracee>, taken: impl FnOnce()) -> bool {
        let mut place = self.tracee.lock();
        // Relaxed: under the lock.
        if place.is_some() || self.ended.load(Ordering::Relaxed) {
            return false;
        }
        *place = Some(tracee.clone());
        // Relaxed: see the field.
        self.traced.store(true, Ordering::Relaxed);
        taken();
        true
    }

    /// Who traces it now is the last one: it has ended.
    pub(super) fn close(&self) -> Option<Arc<Tracee>> {
        let place = self.tracee.lock();
        // Relaxed: under the lock.
        self.ended.store(true, Ordering::Relaxed);
        place.clone()
    }

    /// Whether it has ended, as its tracer and others are told.
    pub(in crate::process) fn has_ended(&self) -> bool {
        // Relaxed: see the field.
        self.ended.load(Ordering::Relaxed)
    }

    /// It is traced no more.
    pub(super) fn end(&self) -> Option<Arc<Tracee>> {
        let mut place = self.tracee.lock();
        // Relaxed: see the field.
        self.traced.store(false, Ordering::Relaxed);
        self.trap.store(false, Ordering::Relaxed);
        place.take()
    }

    /// Makes it stop by itself on its next way to user mode; the caller makes it look.
    pub(super) fn set_trap(&self) {
        // Release: pairs with the Acquire in `takes_trap`.
        self.trap.store(true, Ordering::Release);
    }

    /// Whether it is to stop by itself.
    #[inline]
    pub(in crate::process) fn has_trap(&self) -> bool {
        // Relaxed: `takes_trap` orders.
        self.trap.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn takes_trap(&self) -> bool {
        // Acquire: pairs with the Release in `set_trap`. The first look spares the others a locked instruction.
        self.has_trap() && self.trap.swap(false, Ordering::Acquire)
    }

    pub(super) fn mode(&self) -> Mode {
        Mode::of(self.mode.load(Ordering::Relaxed))
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    #[inline]
    pub(in crate::process) fn is_stepping(&self) -> bool {
        self.stepping.load(Ordering::Relaxed)
    }

    pub(super) fn set_stepping(&self, stepping: bool) {
        self.stepping.store(stepping, Ordering::Relaxed);
    }

    /// The end of the call that it is in is to be looked at.
    pub(super) fn set_leaves(&self) {
        self.leaves.store(true, Ordering::Relaxed);
    }

    /// Whether the end of a call is to be looked at, which it then is.
    #[inline]
    pub(super) fn takes_leaves(&self) -> bool {
        // Only the task itself sets and takes it.
        self.leaves.load(Ordering::Relaxed) && self.leaves.swap(false, Ordering::Relaxed)
    }

    /// Whether it took part in the stop of its process with this number, which it does from now on.
    pub(in crate::process) fn takes_part(&self, stop: u32) -> bool {
        self.stop_seen.swap(stop, Ordering::Relaxed) != stop
    }
}

/// Those whom the threads of a process trace: nothing for nearly every process.
#[expect(clippy::box_collection, reason = "one word in every process, most of which trace nobody")]
pub(in crate::process) struct Tracees(SpinLock<Option<Box<Vec<Arc<Task>>>>, level::Leaf>);

impl Tracees {
    pub(in crate::process) const fn new() -> Self {
        Self(SpinLock::new(None))
    }

    /// Whether there is none.
    #[inline]
    pub(in crate::process) fn is_empty(&self) -> bool {
        self.0.lock().as_ref().is_none_or(|list| list.is_empty())
    }

    /// Does something with the list, if there is one, under its lock: nothing may be dropped there.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Vec<Arc<Task>>) -> Option<R>) -> Option<R> {
        self.0.lock().as_mut().and_then(|list| f(list))
    }

    /// Adds one, if `check` lets it, which is called under the lock and when nothing else can fail.
    ///
    /// # Errors
    /// `ENOMEM`, or what `check` says.
    pub(super) fn add(&self, task: &Arc<Task>, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let new = if self.0.lock().is_none() { Some(try_box(Vec::new())?) } else { None };
        let mut place = self.0.lock();
        if place.is_none() {
            *place = new;
        }
        let list = place.as_mut().ok_or(Errno::ENOMEM)?;
        list.try_room(1)?;
        check()?;
        list.try_push(task.clone())
    }
}
