//! Setting and clearing a task's work flags, and what that proves: [`LeavesByIret`].
//!
//! Owns nothing: the flags are the machine's. Never lets anybody but `exit_to_user` clear the flag of signals. Locks: none.

use super::task::Task;
use super::work::SIGNAL;
use core::sync::atomic::Ordering;

/// Shows that the running task passes `deliver::exit_to_user` before it is in user mode again, and so leaves by IRET, which restores
/// every register. SYSRET takes rip and flags from rcx and r11: who writes to any of these in a task's frame has one of these.
/// What makes it: [`SIGNAL`] is set, and only `exit_to_user` clears it.
#[derive(Debug)]
pub struct LeavesByIret(());

impl Task {
    /// Sets work flags.
    #[inline]
    pub fn set_work(&self, flags: u32) {
        // SeqCst: pairs with the Acquire in `has_work`, so that what the flag announces is seen; and the sender
        // of a signal sets the flag before it looks whether the task sleeps, which the task says before it
        // looks at the flag.
        self.machine.work().fetch_or(flags, Ordering::SeqCst);
    }

    /// Clears work flags, but for that of signals; the task itself does it, before it looks at what they announce.
    #[inline]
    pub fn clear_work(&self, flags: u32) {
        debug_assert!(flags & SIGNAL == 0, "who was to leave by IRET leaves as he likes");
        self.clear(flags);
    }

    #[inline]
    fn clear(&self, flags: u32) {
        // AcqRel: pairs with the Release in `set_work`.
        self.machine.work().fetch_and(!flags, Ordering::AcqRel);
    }

    /// Whether any of the flags is set.
    #[inline]
    pub fn has_work(&self, flags: u32) -> bool {
        // Acquire: pairs with the Release in `set_work`.
        self.machine.work().load(Ordering::Acquire) & flags != 0
    }

    /// Makes the running task, whose own this is, leave by IRET.
    pub(in crate::process) fn leave_by_iret(&self) -> LeavesByIret {
        self.set_work(SIGNAL);
        LeavesByIret(())
    }

    /// The running task passes `exit_to_user`; it comes again for what is announced from now on.
    pub(in crate::process) fn begin_exit_to_user(&self) -> LeavesByIret {
        self.clear(SIGNAL);
        LeavesByIret(())
    }
}
