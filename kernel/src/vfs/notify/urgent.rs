//! SIGURG: who owns a file (F_SETOWN) is told that a byte came out of band.
//!
//! Owns the slot of what sends signals, which lives on a higher floor. Never tells with a lock held. Locks: none of its own.

use crate::sync::Once;
use crate::vfs::OpenFile;
use alloc::sync::Weak;

static URGENT: Once<fn(&OpenFile)> = Once::new();

/// Gives what sends SIGURG to the owner of a file.
pub fn register_urgent(send: fn(&OpenFile)) {
    URGENT.call_once(|| send);
}

/// A byte has come for the socket that has this file, if it has one.
pub fn tell(file: Option<&Weak<OpenFile>>) {
    if let Some(file) = file.and_then(Weak::upgrade)
        && let Some(send) = URGENT.get()
    {
        send(&file);
    }
}
