//! Job control: who may use a terminal, as the process floor answers it.
//!
//! Owns the slot that the process floor fills, and the checks on read, write and settings. Never called with a
//! terminal's lock held: the answers take locks of lower rank.
//!
//! Locks: none of its own.

use super::tty::Tty;
use crate::sync::Once;
use crate::vfs::object::owner::{PidRef, SignalOwner};
use crate::vfs::{OpenFile, Owner};
use abi::signal::Signal;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// Where the calling process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub pid: i32,
    /// Whose signals it may send: its real and its effective uid.
    pub uids: (u32, u32),
    pub group: PidRef,
    pub session: i32,
    pub is_session_leader: bool,
    /// CAP_SYS_ADMIN.
    pub is_admin: bool,
    /// Who will own a pseudo-terminal it makes.
    pub owner: Owner,
}

/// What terminals ask of processes.
pub trait JobControl: Sync {
    /// The calling process.
    fn caller(&self) -> Caller;
    /// Its controlling terminal.
    fn terminal(&self) -> Option<Arc<Tty>>;
    /// Makes `terminal` the controlling terminal of a session, or takes it away.
    fn set_terminal(&self, session: i32, terminal: Option<Arc<Tty>>);
    /// Gives up the terminal for the calling process alone (TIOCNOTTY by one that leads no session).
    fn detach_caller(&self);
    /// Names whoever has this number now.
    fn reference(&self, number: i32) -> Option<PidRef>;
    /// The session of a process group; `None` if there is no such group.
    fn session_of_group(&self, group: PidRef) -> Option<i32>;
    /// Whether nobody is left who could continue the caller's group.
    fn caller_is_orphaned(&self) -> bool;
    /// Whether the caller blocks or ignores a signal.
    fn caller_ignores(&self, signal: Signal) -> bool;
    /// Sends a signal to every process of a group.
    fn signal_group(&self, group: PidRef, signal: Signal);
    /// Sends a signal to the leader of a session.
    fn signal_leader(&self, session: i32, signal: Signal);
}

static JOB_CONTROL: Once<&'static dyn JobControl> = Once::new();

/// Fills the slot; called once by the process floor at boot.
pub fn register_job_control(job_control: &'static dyn JobControl) {
    JOB_CONTROL.call_once(|| job_control);
}

/// The process floor, once it is there.
pub fn control() -> Option<&'static dyn JobControl> {
    JOB_CONTROL.get().copied()
}

/// The process floor, for calls that only a process can make.
pub fn control_of_caller() -> Result<&'static dyn JobControl> {
    control().ok_or(Errno::ENXIO)
}

/// Who owns what the caller makes.
pub fn owner_of_caller() -> Owner {
    control().map_or_else(Owner::default, |control| control.caller().owner)
}

/// `O_ASYNC` of a terminal that has no owner yet gives it one: its foreground group, or without one the caller.
pub fn give_owner(file: &OpenFile, foreground: Option<PidRef>) -> Result<()> {
    let is_unowned = file.signal_owner().is_nobody();
    let Some(control) = control().filter(|_| is_unowned) else { return Ok(()) };
    let caller = control.caller();
    let (kind, id) = match foreground {
        None => (SignalOwner::PROCESS, control.reference(caller.pid).unwrap_or_default()),
        Some(group) => (SignalOwner::GROUP, group),
    };
    file.change_signal_owner(|owner| {
        if owner.is_nobody() {
            owner.name(kind, id, caller.uids);
        }
    })
}

/// Whether `tty` is the caller's controlling terminal.
pub fn is_terminal_of_caller(tty: &Tty) -> bool {
    control()
        .and_then(|control| control.terminal())
        .is_some_and(|terminal| core::ptr::eq(Arc::as_ptr(&terminal), tty))
}

/// A process of a background group may not use its terminal: it is stopped by `signal` (SIGTTIN for a
/// read, SIGTTOU for a write or a change), unless it ignores that or nobody could continue it.
///
/// # Errors
/// `ERESTARTSYS` after the signal was sent, `EIO`.
pub fn check(tty: &Tty, signal: Signal) -> Result<()> {
    let Some(control) = control() else { return Ok(()) };
    let Some(foreground) = tty.foreground_group() else { return Ok(()) };
    let group = control.caller().group;
    if group == foreground || !is_terminal_of_caller(tty) {
        return Ok(());
    }
    if control.caller_ignores(signal) {
        return if signal == Signal::SIGTTIN { Err(Errno::EIO) } else { Ok(()) };
    }
    if control.caller_is_orphaned() {
        return Err(Errno::EIO);
    }
    control.signal_group(group, signal);
    Err(Errno::ERESTARTSYS)
}
