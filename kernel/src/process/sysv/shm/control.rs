//! shmctl: what there is to know and to change of segments.

use super::segment::{self, Segment, all};
use crate::base::PAGE_SIZE;
use crate::process::current;
use crate::process::sysv::limits::{SHM_ALL, SHM_MAX, SHM_MNI};
use crate::process::sysv::table::Object;
use crate::process::sysv::{Named, now};
use crate::process::task::limits::{INFINITY, Resource};
use crate::vfs::Capability;
use abi::ipc::{IPC_PRIVATE, IpcPerm, ShmInfo, ShmidDs, Shminfo, shm_mode};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What there is to know of a segment, and its identifier.
pub fn stat(named: Named) -> Result<(ShmidDs, i32)> {
    let segment = match named {
        Named::Id(id) => all().table.get(id)?,
        Named::Index(index) | Named::AnyIndex(index) => all().table.at(index)?,
    };
    let state = segment.state();
    if !matches!(named, Named::AnyIndex(_)) {
        state.perm.check(&current().cred(), 0o444)?;
    }
    state.check()?;
    Ok((state.told(&segment), segment.id()))
}

/// IPC_INFO, and the highest index in use.
pub fn limits() -> (Shminfo, i32) {
    let told = Shminfo {
        shmmax: SHM_MAX.get(),
        shmmin: 1,
        shmmni: SHM_MNI.get() as u64,
        shmseg: SHM_MNI.get() as u64,
        shmall: SHM_ALL.get(),
        unused: [0; 4],
    };
    (told, all().table.highest())
}

/// SHM_INFO, and the highest index in use.
pub fn info() -> Result<(ShmInfo, i32)> {
    let mut rss = 0;
    segment::for_each(|segment| {
        rss += segment.cache.resident();
        Ok(())
    })?;
    let segments = all();
    let (used_ids, tot) = (segments.table.len() as i32, segments.pages);
    Ok((ShmInfo { used_ids, tot, rss, ..ShmInfo::default() }, segments.table.highest()))
}

/// IPC_SET.
pub fn set(id: i32, new: &IpcPerm) -> Result<()> {
    let segment = all().table.get(id)?;
    let mut state = segment.state();
    state.perm.check_change(&current().cred())?;
    state.check()?;
    state.perm.update(new)?;
    state.ctime = now();
    Ok(())
}

/// IPC_RMID: it goes at once, or when it is attached no more; its key is free now.
pub fn remove(id: i32) -> Result<()> {
    let segment = {
        let mut segments = all();
        let segment = segments.table.get(id)?;
        let mut state = segment.state();
        state.perm.check_change(&current().cred())?;
        state.check()?;
        state.perm.mode |= shm_mode::DEST;
        let key = core::mem::replace(&mut state.perm.key, IPC_PRIVATE);
        drop(state);
        segments.table.forget_key(key, &segment);
        segment
    };
    segment.end_if_unused();
    Ok(())
}

/// The segment, if the caller may lock or unlock it: the owner, or who has CAP_IPC_LOCK.
fn to_lock(id: i32) -> Result<Arc<Segment>> {
    let segment = all().table.get(id)?;
    let cred = current().cred_arc();
    let may = cred.capable(Capability::IPC_LOCK) || segment.state().perm.is_owner(&cred);
    if may { Ok(segment) } else { Err(Errno::EPERM) }
}

/// SHM_LOCK: nothing is ever paged out, but the pages count.
pub fn lock(id: i32) -> Result<()> {
    let segment = to_lock(id)?;
    let task = current();
    let (uid, free) = (task.cred().uid, task.cred().capable(Capability::IPC_LOCK));
    let limit = match task.process().limits().soft(Resource::MemLock) {
        _ if free => u64::MAX,
        0 => return Err(Errno::EPERM),
        INFINITY => u64::MAX,
        bytes => bytes / PAGE_SIZE as u64,
    };
    segment::charge_lock(&segment, uid, limit)
}

/// SHM_UNLOCK.
pub fn unlock(id: i32) -> Result<()> {
    segment::uncharge_lock(&*to_lock(id)?)
}
