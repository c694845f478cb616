//! Whose an object is and what others may do with it: `struct kern_ipc_perm`.
//!
//! Owns nothing. Never decides about an object that is locked by nobody. Locks: the object's own, which it takes for its callers.

use crate::process::current;
use crate::sync::{Mutex, MutexGuard};
use crate::vfs::{Capability, Cred};
use abi::ipc::IpcPerm;
use abi::{Errno, Result};
use alea_sysv::access::{Relation, refuses};
use alea_sysv::numbers;

/// The permission bits of a mode.
pub const PERMISSIONS: u32 = 0o777;

#[derive(Clone, Copy)]
pub struct Perm {
    pub key: i32,
    pub uid: u32,
    pub gid: u32,
    pub cuid: u32,
    pub cgid: u32,
    pub mode: u32,
}

/// What changes of an object: whose it is, and that it may be removed while somebody still refers to it.
pub trait State {
    fn perm(&self) -> &Perm;
    /// It is out of the table.
    fn is_gone(&self) -> bool;
}

/// An object's state, if `check` lets the caller and it is still there: the error of `check`, `EIDRM`.
pub fn lock_if<S: State>(
    state: &Mutex<S>,
    check: impl FnOnce(&Perm) -> Result<()>,
) -> Result<MutexGuard<'_, S>> {
    let state = state.lock();
    check(state.perm())?;
    if state.is_gone() { Err(Errno::EIDRM) } else { Ok(state) }
}

/// The same, if the caller may do what `wanted` asks for: `EACCES`, `EIDRM`.
pub fn lock_for<S: State>(state: &Mutex<S>, wanted: u32) -> Result<MutexGuard<'_, S>> {
    lock_if(state, |perm| perm.check(&current().cred(), wanted))
}

impl Perm {
    /// Of a new object; `flags` are those of the get call.
    pub fn new(key: i32, flags: u32, cred: &Cred) -> Self {
        let Cred { euid, egid, .. } = *cred;
        Self { key, uid: euid, gid: egid, cuid: euid, cgid: egid, mode: flags & PERMISSIONS }
    }

    /// `EACCES` unless the caller may do what the permission bits of `wanted` ask for.
    pub fn check(&self, cred: &Cred, wanted: u32) -> Result<()> {
        let relation = if self.is_owner(cred) {
            Relation::Owner
        } else if cred.in_group(self.cgid) || cred.in_group(self.gid) {
            Relation::Group
        } else {
            Relation::Other
        };
        if refuses(self.mode, wanted, relation) && !cred.capable(Capability::IPC_OWNER) {
            return Err(Errno::EACCES);
        }
        Ok(())
    }

    /// Whether the caller is the owner or the creator.
    pub fn is_owner(&self, cred: &Cred) -> bool {
        cred.euid == self.cuid || cred.euid == self.uid
    }

    /// `EPERM` unless the caller may change owner and mode, and remove the object.
    pub fn check_change(&self, cred: &Cred) -> Result<()> {
        let may = self.is_owner(cred) || cred.capable(Capability::SYS_ADMIN);
        if may { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// IPC_SET: owner and permission bits become `new`'s; `EINVAL` for identities that nobody can have.
    pub fn update(&mut self, new: &IpcPerm) -> Result<()> {
        if new.uid == u32::MAX || new.gid == u32::MAX {
            return Err(Errno::EINVAL);
        }
        (self.uid, self.gid) = (new.uid, new.gid);
        self.mode = (self.mode & !PERMISSIONS) | (new.mode & PERMISSIONS);
        Ok(())
    }

    /// As the control calls give it.
    pub fn to_abi(self, id: i32) -> IpcPerm {
        let Self { key, uid, gid, cuid, cgid, mode } = self;
        let seq = numbers::sequence_of(id);
        IpcPerm { key, uid, gid, cuid, cgid, mode, seq, ..IpcPerm::default() }
    }
}
