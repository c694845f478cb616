//! Pacing: loops whose length a user chooses give the CPU away, and end early when their task is killed.
//!
//! Kernel code is not preempted (docs/decisions/0001), so the longest stretch between two calls of this file is how
//! long a task of the highest priority waits. Such loops iterate with [`Pace::paced`], or with [`Pace::killable`] where
//! what is left undone may stay undone; loops that are no iterators call [`cond_resched`] or [`killable`] once a round.
//! A round is a page, a page table or an object: a few thousand instructions at most.
//!
//! Owns nothing. Never called with a spinlock held (debug builds panic, whether somebody waits or not) or between
//! `prepare_to_sleep` and the sleep; a sleeping lock may be held, as on Linux. With interrupts off (a context switch
//! drops its last references so) nothing is given away. What is per CPU must not be kept across a call.
//! Locks: none.

use super::{Once, spin};
use crate::base::percpu::{self, WORK_RESCHED, WORK_SIGNAL};
use abi::Errno;
use core::sync::atomic::Ordering;
use x86_64::instructions::interrupts;

/// What the process floor provides.
pub trait Pacer: Sync {
    /// Lets another task run, if one should.
    fn reschedule(&self);
    /// Whether the running task has been told to die.
    fn fatal_signal_pending(&self) -> bool;
    /// Whether a signal waits for the running task.
    fn signal_pending(&self) -> bool;
}

static PACER: Once<&'static dyn Pacer> = Once::new();

/// Fills the slot; called once by the process floor before any user program runs.
pub fn register_pacer(pacer: &'static dyn Pacer) {
    PACER.call_once(|| pacer);
}

/// The running task has been told to die: nobody will see what the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed;

impl From<Killed> for Errno {
    fn from(_: Killed) -> Self {
        Errno::EINTR
    }
}

/// The running task's work flags.
#[inline(always)]
fn work() -> u32 {
    // Relaxed: a flag that is missed now is seen in the next round.
    percpu::work().load(Ordering::Relaxed)
}

/// Gives the CPU away if another task should run.
#[inline(always)]
pub fn cond_resched() {
    spin::assert_may_block();
    if work() & WORK_RESCHED != 0 {
        // SAFETY: `give_away_keeping` is a function without arguments that changes no register but the flags; what
        // it does to memory is what `give_away` may do.
        unsafe { core::arch::asm!("call {}", sym give_away_keeping) }
    }
}

/// As [`give_away`], but no register changes: a loop that calls it once in a million rounds need not save any in each.
#[unsafe(naked)]
extern "C" fn give_away_keeping() {
    extern "C" fn give() {
        give_away();
    }
    // Nine words and the return address: the stack is aligned for the call.
    core::arch::naked_asm!(
        "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
        "call {give}",
        "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
        "ret",
        give = sym give,
    )
}

/// As [`cond_resched`]; an error once the running task has been told to die.
#[inline]
pub fn killable() -> Result<(), Killed> {
    spin::assert_may_block();
    if work() & (WORK_RESCHED | WORK_SIGNAL) == 0 { Ok(()) } else { look_closer() }
}

/// As [`cond_resched`]; whether a signal waits, for calls that any signal ends.
#[inline]
pub fn interrupted() -> bool {
    cond_resched();
    work() & WORK_SIGNAL != 0 && PACER.get().is_some_and(|pacer| pacer.signal_pending())
}

#[cold]
fn give_away() {
    if interrupts::are_enabled()
        && let Some(pacer) = PACER.get()
    {
        pacer.reschedule();
    }
}

#[cold]
fn look_closer() -> Result<(), Killed> {
    if work() & WORK_RESCHED != 0 {
        give_away();
    }
    let killed =
        work() & WORK_SIGNAL != 0 && PACER.get().is_some_and(|pacer| pacer.fatal_signal_pending());
    if killed { Err(Killed) } else { Ok(()) }
}

/// Iterators of lengths that users choose.
pub trait Pace: Iterator + Sized {
    /// The same items; the CPU may be given away before each.
    #[inline]
    fn paced(self) -> Paced<Self> {
        Paced(self)
    }

    /// The same items; in place of one, an error once the running task has been told to die.
    #[inline]
    fn killable(self) -> Killable<Self> {
        Killable(self)
    }
}

impl<I: Iterator> Pace for I {}

/// See [`Pace::paced`].
pub struct Paced<I>(I);

impl<I: Iterator> Iterator for Paced<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        cond_resched();
        self.0.next()
    }
}

/// See [`Pace::killable`].
pub struct Killable<I>(I);

impl<I: Iterator> Iterator for Killable<I> {
    type Item = Result<I::Item, Killed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let item = self.0.next()?;
        Some(killable().map(|()| item))
    }
}
