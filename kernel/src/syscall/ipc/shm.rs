//! Shared memory segments: shmget, shmat, shmdt, shmctl.

use crate::base::PAGE_SIZE;
use crate::mm::space::request::Prot;
use crate::mm::user::UserPtr;
use crate::process;
use crate::process::sysv::Named;
use crate::process::sysv::shm::{self, Attach};
use crate::syscall::mm::{implies_exec, may_map_low};
use abi::ipc::{ShmidDs, at, cmd};
use abi::{Errno, Result};
use zerocopy::{Immutable, IntoBytes};

const PAGE: u64 = PAGE_SIZE as u64;

pub fn shmget(key: i32, size: u64, flags: u32) -> Result<i32> {
    shm::get(key, size, flags)
}

pub fn shmat(id: i32, addr: u64, flags: u32) -> Result<u64> {
    let replaces = flags & at::REMAP != 0;
    if id < 0 || (addr == 0 && replaces) {
        return Err(Errno::EINVAL);
    }
    let place = match addr % PAGE {
        0 => addr,
        _ if flags & at::RND == 0 => return Err(Errno::EINVAL),
        beyond if addr == beyond && replaces => return Err(Errno::EINVAL),
        beyond => addr - beyond,
    };
    let (mut prot, mut wanted) = (Prot::READ, 0o444);
    if flags & at::RDONLY == 0 {
        prot |= Prot::WRITE;
        wanted |= 0o222;
    }
    if flags & at::EXEC != 0 {
        wanted |= 0o111;
    }
    if flags & at::EXEC != 0 || implies_exec(prot) {
        prot |= Prot::EXEC;
    }
    let addr = (addr != 0).then_some(place);
    shm::attach(id, Attach { addr, replaces, may_be_low: may_map_low(), prot, wanted })
}

pub fn shmdt(addr: u64) -> Result<()> {
    process::current().mm().detach(addr)
}

pub fn shmctl(id: i32, command: i32, buffer: UserPtr<ShmidDs>) -> Result<i32> {
    if id < 0 || command < 0 {
        return Err(Errno::EINVAL);
    }
    match command {
        cmd::INFO => give(buffer, shm::limits()),
        cmd::SHM_INFO => give(buffer, shm::info()?),
        cmd::STAT => give(buffer, shm::stat(Named::Id(id))?).map(|_| 0),
        cmd::SHM_STAT => give(buffer, shm::stat(Named::Index(id))?),
        cmd::SHM_STAT_ANY => give(buffer, shm::stat(Named::AnyIndex(id))?),
        cmd::SET => shm::set(id, &buffer.read()?.perm).map(|()| 0),
        cmd::RMID => shm::remove(id).map(|()| 0),
        cmd::SHM_LOCK => shm::lock(id).map(|()| 0),
        cmd::SHM_UNLOCK => shm::unlock(id).map(|()| 0),
        _ => Err(Errno::EINVAL),
    }
}

/// Writes what was told to the caller's buffer: the number that goes with it.
pub(super) fn give<T, U: IntoBytes + Immutable>(
    buffer: UserPtr<T>,
    (told, number): (U, i32),
) -> Result<i32> {
    buffer.cast::<U>().write(&told)?;
    Ok(number)
}
