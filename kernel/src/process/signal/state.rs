//! Signal state of tasks and processes.
//!
//! A task owns its blocked mask, its alternate stack and its restart block: others never write them.
//! Locks: pending queues are written by senders on any CPU, in interrupt
//! handlers too, under [`crate::sync::level::Signal`]; the process's queue is taken before a thread's.

use super::actions::{PartOfActions, SignalActions};
use super::queue::Pending;
use crate::mm::fallible::try_arc;
use crate::process::timers::cpu_limit::CpuLimit;
use crate::process::timers::itimer::Itimers;
use crate::process::timers::posix_timer::PosixTimers;
use crate::sync::{SpinLock, WaitQueue, level};
use abi::signal::{SS_AUTODISARM, SS_DISABLE, SS_ONSTACK, SigAction, SigSet, SigStack, Signal};
use abi::{Errno, Result};
use alea_sigq::Blocked;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// No mask to restore: no mask blocks SIGKILL.
const NONE_SAVED: u64 = u64::MAX;

/// How an interrupted call goes on when `restart_syscall` is called.
pub type Restart = Box<dyn FnOnce() -> Result<i64> + Send>;

/// Signal state of one thread.
pub struct TaskSignals {
    /// Written by the thread itself; senders read it to choose a thread to wake.
    blocked: Blocked,
    /// The mask to restore after `sigsuspend`, `ppoll` and their like; only the thread uses it.
    saved: AtomicU64,
    pub(super) pending: Pending,
    altstack: SpinLock<SigStack, level::Leaf>,
    restart: SpinLock<Option<Restart>, level::Leaf>,
}

impl TaskSignals {
    /// State of a new thread with the given mask.
    pub fn new(blocked: SigSet) -> Self {
        Self::with_stack(blocked, NO_STACK)
    }

    #[inline(always)]
    fn with_stack(blocked: SigSet, altstack: SigStack) -> Self {
        Self {
            blocked: Blocked::new(blocked),
            saved: AtomicU64::new(NONE_SAVED),
            pending: Pending::new(),
            altstack: SpinLock::new(altstack),
            restart: SpinLock::new(None),
        }
    }

    /// Its process was waited for: what is pending counts for no user any longer, whoever still knows it.
    pub fn release(&self) {
        self.pending.lock().discard(SigSet::ALL);
    }

    /// State of a child: the mask is inherited; the alternate stack too, unless the memory is shared.
    #[inline]
    pub fn fork(&self, shares_memory: bool) -> Self {
        let stack = if shares_memory { NO_STACK } else { *self.altstack.lock() };
        Self::with_stack(self.blocked(), stack)
    }

    /// The blocked mask.
    pub fn blocked(&self) -> SigSet {
        self.blocked.get()
    }

    /// Replaces the mask; `SIGKILL` and `SIGSTOP` cannot be in it. The caller is the thread itself and
    /// looks at the pending signals afterwards.
    pub(super) fn set_blocked(&self, set: SigSet) -> SigSet {
        self.blocked.replace(set)
    }

    /// The thread dies of a signal and takes no other, but SIGKILL.
    pub(in crate::process) fn block_all(&self) {
        self.set_blocked(SigSet::ALL);
    }

    /// Remembers the mask that goes back after the next handler, or at the end of the call.
    pub(super) fn save_mask(&self, mask: SigSet) {
        // Relaxed: the thread's own.
        self.saved.store(mask.minus(SigSet::UNBLOCKABLE).0, Ordering::Relaxed);
    }

    /// The remembered mask.
    pub(super) fn saved_mask(&self) -> Option<SigSet> {
        // Relaxed: the thread's own.
        let mask = self.saved.load(Ordering::Relaxed);
        (mask != NONE_SAVED).then_some(SigSet(mask))
    }

    /// The remembered mask has gone back, or into a handler's frame.
    pub(super) fn forget_saved_mask(&self) {
        // Relaxed: the thread's own.
        self.saved.store(NONE_SAVED, Ordering::Relaxed);
    }

    /// The mask as others see it: that which goes back after a call that waits under another one.
    pub fn shown_mask(&self) -> SigSet {
        self.saved_mask().unwrap_or(self.blocked())
    }

    /// Signals pending for this thread alone.
    pub fn pending(&self) -> SigSet {
        self.pending.set()
    }

    /// The alternate stack as `sigaltstack` shows it, seen from stack pointer `sp`.
    pub fn altstack(&self, sp: u64) -> SigStack {
        let mut stack = *self.altstack.lock();
        if stack.size == 0 {
            stack.flags = SS_DISABLE;
        } else if on_stack(&stack, sp) {
            stack.flags |= SS_ONSTACK;
        }
        stack
    }

    /// Whether the thread runs on its alternate stack.
    pub fn on_altstack(&self, sp: u64) -> bool {
        on_stack(&self.altstack.lock(), sp)
    }

    /// Replaces the alternate stack, unchecked, unless the thread runs on it.
    pub(super) fn restore_altstack(&self, sp: u64, stack: SigStack) {
        let mut current = self.altstack.lock();
        if !on_stack(&current, sp) {
            *current = stack;
        }
    }

    /// Replaces the alternate stack, unchecked.
    pub(super) fn set_altstack(&self, stack: SigStack) {
        *self.altstack.lock() = stack;
    }

    /// Where the frame of a handler goes, which asked for the alternate stack or did not. It interrupts at `sp`, below
    /// which `red_zone` bytes are in use.
    pub(super) fn place_of_frame(&self, sp: u64, red_zone: u64, on_alternate: bool) -> FramePlace {
        let stack = self.altstack.lock();
        let below = sp.wrapping_sub(red_zone);
        if on_alternate && stack.size != 0 && !on_stack(&stack, below) {
            return FramePlace { below: stack.sp.wrapping_add(stack.size), within: Some(*stack) };
        }
        FramePlace { below, within: on_stack(&stack, sp).then_some(*stack) }
    }

    /// A handler has been entered, on whichever stack: one that was set with `SS_AUTODISARM` is forgotten.
    pub(super) fn handler_entered(&self) {
        let mut stack = self.altstack.lock();
        if stack.flags & SS_AUTODISARM != 0 {
            *stack = NO_STACK;
        }
    }

    /// Says how the interrupted call goes on; the caller returns `ERESTART_RESTARTBLOCK`.
    pub fn set_restart(&self, restart: Restart) {
        let old = self.restart.lock().replace(restart);
        drop(old);
    }

    /// Takes the continuation of an interrupted call.
    pub fn take_restart(&self) -> Option<Restart> {
        self.restart.lock().take()
    }

    /// exec: no alternate stack, no call to go on with.
    pub(super) fn reset_for_exec(&self) {
        *self.altstack.lock() = NO_STACK;
        drop(self.take_restart());
    }
}

/// Where a handler's frame goes.
pub(super) struct FramePlace {
    /// It is below this address.
    pub below: u64,
    /// It must lie within this stack, if it is the alternate one: below that is memory of others.
    within: Option<SigStack>,
}

impl FramePlace {
    /// Whether a frame may begin at `at`.
    pub fn holds(&self, at: u64) -> bool {
        self.within.is_none_or(|stack| at > stack.sp && at.wrapping_sub(stack.sp) <= stack.size)
    }
}

const NO_STACK: SigStack = SigStack { sp: 0, flags: SS_DISABLE, pad: 0, size: 0 };

/// With `SS_AUTODISARM` the thread never counts as being on the stack.
fn on_stack(stack: &SigStack, sp: u64) -> bool {
    stack.flags & SS_AUTODISARM == 0 && sp > stack.sp && sp.wrapping_sub(stack.sp) <= stack.size
}

/// Job-control state of a process, and what its parent has not yet been told of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct JobState {
    /// The signal that stopped the process; `None` while it runs.
    pub stopped: Option<Signal>,
    /// `wait` with WUNTRACED has not reported the stop.
    pub stop_unreported: bool,
    /// `wait` with WCONTINUED has not reported the continuation.
    pub continue_unreported: bool,
    /// Threads that have still to park before the parent is told.
    pub(super) still_running: usize,
    /// Tells this stop from earlier ones.
    pub(super) number: u32,
}

/// The actions of a process.
struct Actions {
    table: Arc<SignalActions>,
    /// `None` once the process was waited for.
    part: Option<PartOfActions>,
}

impl Actions {
    fn new(part: PartOfActions) -> Self {
        Self { table: part.whole().clone(), part: Some(part) }
    }
}

/// Signal state of a whole process.
pub struct ProcessSignals {
    pub(super) pending: Pending,
    /// Shared by CLONE_SIGHAND; replaced by exec when it is.
    actions: SpinLock<Actions, level::Signal>,
    pub(super) job: SpinLock<JobState, level::Signal>,
    /// Threads parked by a stop.
    pub(super) continued: WaitQueue,
    /// setitimer and alarm.
    pub itimers: Itimers,
    /// timer_create and its kin.
    pub posix_timers: PosixTimers,
    /// RLIMIT_CPU.
    pub cpu_limit: CpuLimit,
    /// Woken when a signal arrives: signalfd and sigtimedwait.
    pub arrived: WaitQueue,
}

impl ProcessSignals {
    /// State of a process with the given actions.
    pub fn new(actions: PartOfActions) -> Self {
        Self {
            pending: Pending::new(),
            actions: SpinLock::new(Actions::new(actions)),
            job: SpinLock::new(JobState::default()),
            continued: WaitQueue::new(),
            itimers: Itimers::new(),
            posix_timers: PosixTimers::new(),
            cpu_limit: CpuLimit::new(),
            arrived: WaitQueue::new(),
        }
    }

    /// The process ends: no timer fires for it any more.
    pub fn cancel_timers(&self) {
        self.itimers.cancel_all();
        self.posix_timers.delete_all();
        self.cpu_limit.end();
    }

    /// The action of one signal.
    pub fn action(&self, signal: Signal) -> SigAction {
        self.actions.lock().table.get(signal)
    }

    /// The action table.
    #[inline]
    pub fn actions(&self) -> Arc<SignalActions> {
        self.actions.lock().table.clone()
    }

    /// A part in the actions for a child that shares them; ESRCH after the end.
    pub fn share_actions(&self) -> Result<PartOfActions> {
        self.actions.lock().part.as_ref().map(PartOfActions::share).ok_or(Errno::ESRCH)
    }

    /// Whether another process has the same actions (CLONE_SIGHAND without CLONE_THREAD).
    pub fn shares_actions(&self) -> bool {
        self.actions.lock().part.as_ref().is_some_and(PartOfActions::is_shared)
    }

    /// The process was waited for: it has no part in its actions any more, and what is pending counts for its user no longer,
    /// whoever still knows it.
    pub fn release(&self) {
        let part = self.actions.lock().part.take();
        drop(part);
        self.pending.lock().discard(SigSet::ALL);
    }

    /// exec: handlers go back to default, in a table that is the process's own.
    pub(super) fn reset_actions(&self) -> Result<()> {
        if self.shares_actions() {
            let own = Actions::new(PartOfActions::first(try_arc(self.actions().fork())?));
            let old = core::mem::replace(&mut *self.actions.lock(), own);
            drop(old);
        }
        self.actions().reset_for_exec()
    }

    /// Makes its parked threads look again whether they are to stay so.
    pub fn wake_stopped(&self) {
        self.continued.wake_all();
    }

    /// Signals pending for the process as a whole.
    pub fn pending(&self) -> SigSet {
        self.pending.set()
    }

    /// Job-control state now.
    pub fn job(&self) -> JobState {
        *self.job.lock()
    }

    /// The signal of a stop that `wait` has not reported; marks it reported if `consume`.
    pub fn take_stop_report(&self, consume: bool) -> Option<Signal> {
        let mut job = self.job.lock();
        let signal = job.stopped.filter(|_| job.stop_unreported)?;
        job.stop_unreported = !consume;
        Some(signal)
    }

    /// Whether a continuation has not been reported; marks it reported if `consume`.
    pub fn take_continue_report(&self, consume: bool) -> bool {
        let mut job = self.job.lock();
        let fresh = job.continue_unreported;
        job.continue_unreported = fresh && !consume;
        fresh
    }
}
