//! [`SignalOwner`]: who gets the signals of an open file; [`PidRef`], which names him.
//!
//! Owns nothing. Never says whether he may get them: who sends looks at that. Locks: none.

use crate::vfs::cred::Cred;

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

    /// The same, set by a process with `cred`.
    pub fn set_by(self, cred: &Cred) -> Self {
        Self { uid: cred.uid, euid: cred.euid, ..self }
    }
}
