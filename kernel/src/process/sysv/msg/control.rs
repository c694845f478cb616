//! msgctl: what there is to know and to change of queues.

use super::queue::{BYTES, MESSAGES, Told, all};
use crate::process::current;
use crate::process::sysv::limits::{MSG_MAX, MSG_MNB, MSG_MNI};
use crate::process::sysv::table::Object;
use crate::process::sysv::{Named, now};
use crate::sync::Pace;
use crate::vfs::Capability;
use abi::ipc::{Msginfo, MsqidDs};
use abi::{Errno, Result};
use core::sync::atomic::Ordering;

/// What there is to know of a queue, and its identifier.
pub fn stat(named: Named) -> Result<(MsqidDs, i32)> {
    let queue = match named {
        Named::Id(id) => all().get(id)?,
        Named::Index(index) | Named::AnyIndex(index) => all().at(index)?,
    };
    let told = queue.told(|perm| match named {
        Named::AnyIndex(_) => Ok(()),
        _ => perm.check(&current().cred(), 0o444),
    })?;
    Ok((told, queue.id()))
}

/// IPC_INFO, and the highest index in use.
pub fn limits() -> (Msginfo, i32) {
    // What Linux tells of limits that it has not.
    let told = Msginfo {
        msgpool: 512_000,
        msgmap: 16384,
        msgmax: MSG_MAX.get(),
        msgmnb: MSG_MNB.get(),
        msgmni: MSG_MNI.get(),
        msgssz: 16,
        msgtql: 16384,
        msgseg: u16::MAX,
        pad: 0,
    };
    (told, all().highest())
}

/// MSG_INFO: as `limits`, with the numbers of queues, messages and bytes in three places.
pub fn info() -> (Msginfo, i32) {
    let (told, highest) = limits();
    // Relaxed: figures.
    let figure = |of: &core::sync::atomic::AtomicI64| of.load(Ordering::Relaxed) as i32;
    let msgpool = all().len() as i32;
    (Msginfo { msgpool, msgmap: figure(&MESSAGES), msgtql: figure(&BYTES), ..told }, highest)
}

/// IPC_SET.
pub fn set(id: i32, new: &MsqidDs) -> Result<()> {
    let queue = all().get(id)?;
    let mut state = queue.lock();
    let cred = current().cred_arc();
    state.perm.check_change(&cred)?;
    if state.gone {
        return Err(Errno::EIDRM);
    }
    if new.qbytes > MSG_MNB.get() as u64 && !cred.capable(Capability::SYS_RESOURCE) {
        return Err(Errno::EPERM);
    }
    state.perm.update(&new.perm)?;
    state.most = new.qbytes;
    state.ctime = now();
    // Who may not any longer is to find out, and there may be room.
    state.tell_receivers(|| Told::Again);
    state.call_senders();
    Ok(())
}

/// IPC_RMID.
pub fn remove(id: i32) -> Result<()> {
    let queue = all().get(id)?;
    let mut state = queue.lock();
    state.perm.check_change(&current().cred())?;
    if state.gone {
        return Err(Errno::EIDRM);
    }
    state.gone = true;
    let removed = all().remove(state.perm.key, &queue);
    state.tell_receivers(|| Told::Failed(Errno::EIDRM));
    for sender in core::mem::take(&mut state.senders).into_iter().paced() {
        sender.call();
    }
    let (messages, bytes) = (core::mem::take(&mut state.messages), state.bytes);
    state.count(-(messages.len() as i64), -(bytes as i64));
    drop(state);
    messages.into_iter().paced().for_each(drop);
    drop(removed);
    Ok(())
}
