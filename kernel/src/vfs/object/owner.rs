//! [`SignalOwner`]: who gets the signals of an open file.
//!
//! Owns nothing. Never says whether he may get them: who sends looks at that. Locks: none.

use crate::vfs::cred::Cred;

/// Whom `F_SETOWN` and `F_SETSIG` name for SIGIO and SIGURG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalOwner {
    /// 0: a thread, 1: a process, 2: a group (`F_OWNER_*`).
    pub kind: i32,
    pub id: i32,
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
