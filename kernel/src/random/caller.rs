//! The slot through which this floor learns about the running task.
//!
//! Owns the slot. Until the process floor fills it there is no task: nobody is privileged and nothing
//! interrupts.
//!
//! Never asks before it is filled. Locks: none.

use crate::sync::Once;

/// What the process floor says about the running task.
pub trait Caller: Sync {
    /// Whether it holds `CAP_SYS_ADMIN`.
    fn is_admin(&self) -> bool;
    /// Its name, as `ps` shows it, padded with zeros.
    fn name(&self) -> [u8; 16];
    /// Gives other tasks a turn if one is due, then says whether a signal waits.
    fn pause(&self) -> bool;
}

static CALLER: Once<&'static dyn Caller> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_caller(caller: &'static dyn Caller) {
    CALLER.call_once(|| caller);
}

pub(super) fn is_admin() -> bool {
    CALLER.get().is_some_and(|caller| caller.is_admin())
}

pub(super) fn name() -> [u8; 16] {
    CALLER.get().map_or(*b"the kernel\0\0\0\0\0\0", |caller| caller.name())
}

pub(super) fn pause() -> bool {
    CALLER.get().is_some_and(|caller| caller.pause())
}
