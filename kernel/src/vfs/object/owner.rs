//! [`SignalOwner`]: who gets the signals of an open file, which keeps him in an [`OwnerSlot`]; [`PidRef`], which names him.
//!
//! Owns what was set. Never says whether he may get them: who sends looks at that. Locks: `Leaf`, of each slot.

use crate::mm::fallible::try_box;
use crate::sync::{SpinLock, level};
use abi::Result;
use alloc::boxed::Box;

/// A number of a process, thread or group, and which of those that had it one after the other is meant: nobody who gets the number later is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PidRef {
    /// 0 for nobody.
    pub number: i32,
    /// How many numbers had been given out when this one was.
    pub stamp: u64,
}

/// Whom `F_SETOWN` and `F_SETSIG` name for SIGIO and SIGURG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalOwner {
    /// 0: a thread, 1: a process, 2: a group (`F_OWNER_*`).
    pub kind: i32,
    pub id: PidRef,
    pub signal: i32,
    /// The descriptor at which O_ASYNC was set.
    pub fd: i32,
    /// The uids of the process that set it: they decide whether the signal may be sent.
    pub uid: u32,
    pub euid: u32,
}

impl SignalOwner {
    /// `F_OWNER_PID`.
    pub const PROCESS: i32 = 1;
    /// `F_OWNER_PGRP`.
    pub const GROUP: i32 = 2;

    /// Names another owner; who does has these uids, the real and the effective one. Signal and descriptor stay.
    pub fn name(&mut self, kind: i32, id: PidRef, (uid, euid): (u32, u32)) {
        *self = Self { kind, id, uid, euid, ..*self };
    }

    /// Whether nobody was named yet.
    pub fn is_nobody(&self) -> bool {
        self.id == PidRef::default()
    }
}

/// The owner that one open file has, if one was ever set.
pub struct OwnerSlot(SpinLock<Option<Box<SignalOwner>>, level::Leaf>);

impl OwnerSlot {
    /// Of a new file.
    #[inline]
    pub const fn new() -> Self {
        Self(SpinLock::new(None))
    }

    /// What was set.
    pub fn get(&self) -> SignalOwner {
        self.0.lock().as_deref().copied().unwrap_or_default()
    }

    /// Changes it under the lock: what `change` leaves alone stays as others set it. `ENOMEM`.
    pub fn change(&self, change: impl FnOnce(&mut SignalOwner)) -> Result<()> {
        let is_first = self.0.lock().is_none();
        let fresh = if is_first { Some(try_box(SignalOwner::default())?) } else { None };
        let mut slot = self.0.lock();
        let spare = if slot.is_none() { core::mem::replace(&mut *slot, fresh) } else { fresh };
        if let Some(owner) = slot.as_deref_mut() {
            change(owner);
        }
        drop(slot);
        drop(spare);
        Ok(())
    }
}
