//! Who sends: the credentials that go with a message (SCM_CREDENTIALS) whose sender has not said them.
//!
//! Owns the slot of what knows the running task, which lives on a higher floor. Never tells the maker of a socket: who
//! writes may be another. Locks: none of its own.

use crate::sync::Once;
use abi::socket::Ucred;

static SENDER: Once<fn() -> Ucred> = Once::new();

/// Gives what tells the running task's process, real user and real group.
pub fn register_sender(sender: fn() -> Ucred) {
    SENDER.call_once(|| sender);
}

/// The running task's.
pub(super) fn current() -> Ucred {
    SENDER.get().map_or(UNKNOWN, |sender| sender())
}

/// What a receiver is told when nobody asked in time: no process, and the user and group that stand for none.
pub const UNKNOWN: Ucred = Ucred { pid: 0, uid: 65_534, gid: 65_534 };
