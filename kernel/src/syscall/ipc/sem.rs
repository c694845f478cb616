//! Semaphores: semget, semop, semtimedop, semctl.

use super::shm::give;
use crate::mm::fallible::{TryCollect, TryVec};
use crate::mm::user::{self, UserPtr};
use crate::process::sysv::Named;
use crate::process::sysv::sem;
use crate::time;
use abi::ipc::{Sembuf, SemidDs, cmd, sem_flag};
use abi::time::Timespec;
use abi::{Errno, Result};
use alea_sysv::semaphore::Op;
use alloc::vec::Vec;
use zerocopy::IntoBytes;

pub fn semget(key: i32, count: i32, flags: u32) -> Result<i32> {
    sem::get(key, count, flags)
}

pub fn semop(id: i32, ops: u64, count: u32) -> Result<()> {
    semtimedop(id, ops, count, UserPtr::new(0))
}

pub fn semtimedop(id: i32, ops: u64, count: u32, timeout: UserPtr<Timespec>) -> Result<()> {
    let timeout = timeout.non_null().map(UserPtr::read).transpose()?;
    if count > sem::most_ops() {
        return Err(Errno::E2BIG);
    }
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    let ops = read_ops(ops, count as usize)?;
    if id < 0 {
        return Err(Errno::EINVAL);
    }
    let deadline = match timeout {
        None => None,
        Some(limit) => {
            let nanos = limit.to_nanos().ok_or(Errno::EINVAL)?;
            Some(time::monotonic().0.saturating_add(nanos))
        }
    };
    sem::operate(id, ops, deadline)
}

fn read_ops(addr: u64, count: usize) -> Result<Vec<Op>> {
    let mut raw: Vec<Sembuf> = Vec::with_room(count)?;
    raw.try_resize(count, Sembuf::default())?;
    user::read_bytes(addr, raw.as_mut_slice().as_mut_bytes())?;
    raw.iter()
        .map(|one| Op {
            number: one.num,
            delta: one.op,
            no_wait: one.flg & sem_flag::NOWAIT != 0,
            undo: one.flg & sem_flag::UNDO != 0,
        })
        .try_to_vec()
}

pub fn semctl(id: i32, number: i32, command: i32, arg: u64) -> Result<i32> {
    if id < 0 {
        return Err(Errno::EINVAL);
    }
    let buffer = UserPtr::<SemidDs>::new(arg);
    match command {
        cmd::INFO => give(buffer, sem::limits()),
        cmd::SEM_INFO => give(buffer, sem::info()),
        cmd::STAT => give(buffer, sem::stat(Named::Id(id))?).map(|_| 0),
        cmd::SEM_STAT => give(buffer, sem::stat(Named::Index(id))?),
        cmd::SEM_STAT_ANY => give(buffer, sem::stat(Named::AnyIndex(id))?),
        cmd::SET => sem::set_owner(id, &buffer.read()?.perm).map(|()| 0),
        cmd::RMID => sem::remove(id).map(|()| 0),
        cmd::SETVAL => sem::set_value(id, number, arg as i32).map(|()| 0),
        cmd::GETALL => user::write_bytes(arg, sem::all_values(id)?.as_bytes()).map(|()| 0),
        cmd::SETALL => {
            let count = sem::count(id)?;
            let mut values: Vec<u16> = Vec::with_room(count)?;
            values.try_resize(count, 0)?;
            user::read_bytes(arg, values.as_mut_slice().as_mut_bytes())?;
            sem::set_all(id, &values).map(|()| 0)
        }
        cmd::GETVAL => sem::value(id, number),
        cmd::GETPID => sem::pid_of(id, number),
        cmd::GETNCNT => sem::waiting(id, number, false),
        cmd::GETZCNT => sem::waiting(id, number, true),
        _ => Err(Errno::EINVAL),
    }
}
