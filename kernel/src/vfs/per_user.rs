//! How much each user has of something that is limited per user: a count for each uid, and what one object adds to it.
//!
//! Owns nothing: each [`PerUser`] is a static of the module whose resource it counts. A user who has nothing has no entry.
//! Locks: `Leaf`, for the counts; never taken with another lock of that level.
#![forbid(unsafe_code)]

use crate::mm::fallible::TryMap;
use crate::sync::{SpinLock, level};
use abi::Result;
use alloc::collections::BTreeMap;

/// How much each user has.
pub struct PerUser(SpinLock<BTreeMap<u32, u64>, level::Leaf>);

impl PerUser {
    /// Nobody has anything.
    pub const fn new() -> Self {
        Self(SpinLock::new(BTreeMap::new()))
    }
}

/// What one object adds to its user's count; subtracted again when dropped.
pub struct Charge {
    of: &'static PerUser,
    uid: u32,
    amount: u64,
}

impl Charge {
    /// Nothing yet.
    pub fn new(of: &'static PerUser, uid: u32) -> Self {
        Self { of, uid, amount: 0 }
    }

    /// Sets the charge to `amount`, and returns the user's new total; ENOMEM.
    pub fn set(&mut self, amount: u64) -> Result<u64> {
        let mut counts = self.of.0.lock();
        let count = counts.try_entry(self.uid, || 0)?;
        *count = count.saturating_sub(self.amount).saturating_add(amount);
        self.amount = amount;
        Ok(*count)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut counts = self.of.0.lock();
        if let Some(count) = counts.get_mut(&self.uid) {
            *count = count.saturating_sub(self.amount);
            if *count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}
