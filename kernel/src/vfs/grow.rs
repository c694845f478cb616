//! Growth of a list that a spinlock guards, with its memory allocated before the lock is taken.
//!
//! Owns nothing. Never allocates or frees while the lock is held. Locks: the caller's.
#![forbid(unsafe_code)]

use crate::sync::SpinLock;
use crate::sync::level::Level;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// Adds `value` at the end.
pub fn push<T, L: Level>(list: &SpinLock<Vec<T>, L>, value: T) -> Result<()> {
    push_if(list, value, || true).map(drop)
}

/// Adds `value` at the end if `decide` says so, which is asked once, with the lock held and room for it; whether it did.
#[expect(clippy::disallowed_methods, reason = "there is room")]
pub fn push_if<T, L: Level>(
    list: &SpinLock<Vec<T>, L>,
    value: T,
    decide: impl FnOnce() -> bool,
) -> Result<bool> {
    let mut bigger = Vec::new();
    loop {
        let mut held = list.lock();
        if held.len() == held.capacity() && bigger.capacity() > held.len() {
            bigger.append(&mut held);
            core::mem::swap(&mut bigger, &mut held);
        }
        if held.len() < held.capacity() {
            let add = decide();
            if add {
                held.push(value);
            }
            // The smaller list that was replaced is empty, and is freed after the lock is released; so is a value that is not added.
            drop(held);
            return Ok(add);
        }
        let wanted = (2 * held.len()).max(1);
        drop(held);
        bigger = Vec::new();
        bigger.try_reserve_exact(wanted).map_err(|_| Errno::ENOMEM)?;
    }
}
