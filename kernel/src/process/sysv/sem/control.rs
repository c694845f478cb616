//! semctl: what there is to know and to change of sets.

use super::set::{Telling, all};
use crate::mm::fallible::TryVec;
use crate::process::current;
use crate::process::sysv::limits::{SEM_MNI, SEM_MNS, SEM_MSL, SEM_OPM};
use crate::process::sysv::table::Object;
use crate::process::sysv::{Named, now};
use crate::sync::cond_resched;
use abi::ipc::{IpcPerm, SemidDs, Seminfo};
use abi::{Errno, Result};
use alea_sysv::semaphore::MOST;
use alloc::vec::Vec;

/// What Linux tells of limits that it has not.
const TOLD_OF_UNDO: (i32, i32, i32) = (1_024_000_000, 500, 20);

/// What there is to know of a set, and its identifier.
pub fn stat(named: Named) -> Result<(SemidDs, i32)> {
    let set = match named {
        Named::Id(id) => all().table.get(id)?,
        Named::Index(index) | Named::AnyIndex(index) => all().table.at(index)?,
    };
    let told = set.told(|perm| match named {
        Named::AnyIndex(_) => Ok(()),
        _ => perm.check(&current().cred(), 0o444),
    })?;
    Ok((told, set.id()))
}

/// Most operations of a call: the limit is signed for those who set it, not here, as on Linux.
pub fn most_ops() -> u32 {
    SEM_OPM.get() as u32
}

/// IPC_INFO, and the highest index in use.
pub fn limits() -> (Seminfo, i32) {
    let (semmnu, semume, semusz) = TOLD_OF_UNDO;
    let told = Seminfo {
        semmap: semmnu,
        semmni: SEM_MNI.get(),
        semmns: SEM_MNS.get(),
        semmnu,
        semmsl: SEM_MSL.get(),
        semopm: SEM_OPM.get(),
        semume,
        semusz,
        semvmx: MOST,
        semaem: MOST,
    };
    (told, all().table.highest())
}

/// SEM_INFO: as `limits`, with the numbers of sets and semaphores in two places.
pub fn info() -> (Seminfo, i32) {
    let (told, _) = limits();
    let sets = all();
    let told = Seminfo { semusz: sets.table.len() as i32, semaem: sets.used, ..told };
    (told, sets.table.highest())
}

/// IPC_SET.
pub fn set_owner(id: i32, new: &IpcPerm) -> Result<()> {
    let set = all().table.get(id)?;
    let mut state = set.lock();
    state.perm.check_change(&current().cred())?;
    if state.gone {
        return Err(Errno::EIDRM);
    }
    state.perm.update(new)?;
    state.ctime = now();
    Ok(())
}

/// IPC_RMID.
pub fn remove(id: i32) -> Result<()> {
    let set = all().table.get(id)?;
    let mut state = set.lock();
    state.perm.check_change(&current().cred())?;
    if state.gone {
        return Err(Errno::EIDRM);
    }
    state.gone = true;
    let removed = {
        let mut sets = all();
        sets.used = sets.used.saturating_sub(set.count as i32);
        sets.table.remove(state.perm.key, &set)
    };
    state.set.remove(&mut Telling, |_, visited| visited.forget(id));
    drop(state);
    drop(removed);
    Ok(())
}

/// SETVAL.
pub fn set_value(id: i32, number: i32, value: i32) -> Result<()> {
    let value = u16::try_from(value).ok().filter(|&value| i32::from(value) <= MOST);
    let value = value.ok_or(Errno::ERANGE)?;
    let set = all().table.get(id)?;
    let number = usize::try_from(number).ok().filter(|&number| number < set.count);
    let number = number.ok_or(Errno::EINVAL)?;
    let mut state = set.lock_for(0o222)?;
    state.set.set(number, value, current().process().pid());
    state.ctime = now();
    if state.set.settle_all(&mut Telling) {
        state.otime = now();
    }
    Ok(())
}

/// How many values SETALL takes; `EACCES`.
pub fn count(id: i32) -> Result<usize> {
    let set = all().table.get(id)?;
    set.lock().perm.check(&current().cred(), 0o222)?;
    Ok(set.count)
}

/// SETALL.
pub fn set_all(id: i32, values: &[u16]) -> Result<()> {
    if values.iter().any(|&value| i32::from(value) > MOST) {
        return Err(Errno::ERANGE);
    }
    let set = all().table.get(id)?;
    let mut state = set.lock_for(0o222)?;
    state.set.set_all(values, current().process().pid(), cond_resched);
    state.ctime = now();
    if state.set.settle_all(&mut Telling) {
        state.otime = now();
    }
    Ok(())
}

/// GETALL.
pub fn all_values(id: i32) -> Result<Vec<u16>> {
    let set = all().table.get(id)?;
    let mut values = Vec::with_room(set.count)?;
    values.try_resize(set.count, 0)?;
    let state = set.lock_for(0o444)?;
    for (value, semaphore) in values.iter_mut().zip(state.set.semaphores()) {
        *value = semaphore.value;
    }
    Ok(values)
}

/// GETVAL.
pub fn value(id: i32, number: i32) -> Result<i32> {
    look(id, number, |state, number| i32::from(state.set.semaphores()[number].value))
}

/// GETPID.
pub fn pid_of(id: i32, number: i32) -> Result<i32> {
    look(id, number, |state, number| state.set.semaphores()[number].pid)
}

/// GETNCNT and GETZCNT.
pub fn waiting(id: i32, number: i32, for_zero: bool) -> Result<i32> {
    look(id, number, |state, number| state.set.waiting_at(number, for_zero, cond_resched))
}

fn look(id: i32, number: i32, look: impl FnOnce(&super::set::State, usize) -> i32) -> Result<i32> {
    let set = all().table.get(id)?;
    let state = set.lock_for(0o444)?;
    let number = usize::try_from(number).ok().filter(|&number| number < set.count);
    Ok(look(&state, number.ok_or(Errno::EINVAL)?))
}
