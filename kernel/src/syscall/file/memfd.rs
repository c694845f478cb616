//! `memfd_create`, `memfd_secret`, and `vm.memfd_noexec`, which says what a memfd may be.
//!
//! Owns that setting. Never changes a memfd that is there. Locks: none.

use super::install::install_shared;
use crate::mm::fallible::TryVec;
use crate::mm::user;
use crate::process;
use crate::vfs::{Owner, open as opening};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::vec::Vec;

crate::setting! {
    /// `vm.memfd_noexec`: 1 takes the right to execute from a memfd whose maker did not say, 2 refuses one that is to have it.
    pub static MEMFD_NOEXEC = 0, 0..=2;
}

pub fn memfd_create(name: u64, flags: u32) -> Result<i32> {
    const CLOEXEC: u32 = 1;
    const ALLOW_SEALING: u32 = 2;
    const NOEXEC_SEAL: u32 = 8;
    const EXEC: u32 = 16;
    /// `NAME_MAX` less what is put in front.
    const NAME_LIMIT: usize = 249;
    let known = CLOEXEC | ALLOW_SEALING | NOEXEC_SEAL | EXEC;
    if flags & !known != 0 || flags & (NOEXEC_SEAL | EXEC) == NOEXEC_SEAL | EXEC {
        return Err(Errno::EINVAL);
    }
    let flags = if flags & (NOEXEC_SEAL | EXEC) == 0 && MEMFD_NOEXEC.get() != 0 {
        flags | NOEXEC_SEAL
    } else {
        flags
    };
    if flags & NOEXEC_SEAL == 0 && MEMFD_NOEXEC.get() == 2 {
        return Err(Errno::EACCES);
    }
    let name = user::read_cstr(name, NAME_LIMIT + 1)
        .map_err(|errno| if errno == Errno::ENAMETOOLONG { Errno::EINVAL } else { errno })?;
    let mut label = Vec::with_room(name.len() + 6)?;
    label.try_extend_from_slice(b"memfd:")?;
    label.try_extend_from_slice(&name)?;
    let sealable = flags & (ALLOW_SEALING | NOEXEC_SEAL) != 0;
    let cred = process::current().cred_arc();
    let place = crate::fs::tmpfs::new_memfd(&label, &cred, sealable, flags & NOEXEC_SEAL != 0)?;
    let file = opening::open_memfd(place)?;
    let cloexec = flags & CLOEXEC != 0;
    install_shared(file, cloexec).map(|fd| fd.0)
}

pub fn memfd_secret(flags: u32) -> Result<i32> {
    if flags & !OpenFlags::CLOEXEC.bits() != 0 {
        return Err(Errno::EINVAL);
    }
    let cred = process::current().cred_arc();
    let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
    install_shared(crate::fs::secretmem::open(owner)?, flags != 0).map(|fd| fd.0)
}
