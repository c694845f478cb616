//! The names of system calls, which the floor above knows.
//!
//! Owns the slot. Never filled twice. Locks: none.

use crate::arch::entry::frame::SYSCALLS;
use crate::sync::Once;

static CALL_NAMES: Once<fn(usize) -> Option<&'static str>> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_names(name: fn(usize) -> Option<&'static str>) {
    CALL_NAMES.call_once(|| name);
}

/// The number of a call.
pub(in crate::process) fn number_of(name: &str) -> Option<usize> {
    let names = CALL_NAMES.get()?;
    (0..SYSCALLS).find(|&number| names(number) == Some(name))
}

/// The name of a call; `-` for a number that is none.
pub(in crate::process) fn name_of(number: usize) -> &'static str {
    CALL_NAMES.get().and_then(|name| name(number)).unwrap_or("-")
}
