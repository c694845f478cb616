//! Identities: user and group ids, supplementary groups, capabilities.

use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::mm::user::UserPtr;
use crate::process;
use crate::process::coredump::SUID_DUMPABLE;
use crate::sync::Pace;
use crate::vfs::{CapSet, Capability, Cred};
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// "Leave it as it is", and never a valid id.
const KEEP: u32 = u32::MAX;

pub fn getuid() -> u32 {
    process::current().cred().uid
}

pub fn geteuid() -> u32 {
    process::current().cred().euid
}

pub fn getgid() -> u32 {
    process::current().cred().gid
}

pub fn getegid() -> u32 {
    process::current().cred().egid
}

/// Gives the caller a changed identity.
pub(super) fn change(edit: impl FnOnce(&mut Cred, &Cred) -> Result<()>) -> Result<()> {
    let task = process::current();
    let old = task.cred_arc();
    let mut new = Cred::clone(&old);
    edit(&mut new, &old)?;
    let ids = |cred: &Cred| (cred.euid, cred.egid, cred.fsuid, cred.fsgid);
    if ids(&new) != ids(&old) || !old.permitted.contains(new.permitted) {
        // The new user may not read what the process did as another one. Relaxed: settings.
        let dumpable = SUID_DUMPABLE.get().unsigned_abs();
        task.process().dumpable.store(dumpable, Ordering::Relaxed);
        task.settings.parent_death_signal.store(0, Ordering::Relaxed);
    }
    task.set_cred(try_arc(new)?);
    Ok(())
}

fn valid(id: u32) -> Result<u32> {
    if id == KEEP { Err(Errno::EINVAL) } else { Ok(id) }
}

pub fn setuid(uid: u32) -> Result<()> {
    let uid = valid(uid)?;
    change(|new, old| {
        if old.capable(Capability::SETUID) {
            new.uid = uid;
            new.suid = uid;
        } else if uid != old.uid && uid != old.suid {
            return Err(Errno::EPERM);
        }
        new.euid = uid;
        new.fsuid = uid;
        new.fix_caps_after_setuid(old);
        Ok(())
    })
}

pub fn setgid(gid: u32) -> Result<()> {
    let gid = valid(gid)?;
    change(|new, old| {
        if old.capable(Capability::SETGID) {
            new.gid = gid;
            new.sgid = gid;
        } else if gid != old.gid && gid != old.sgid {
            return Err(Errno::EPERM);
        }
        new.egid = gid;
        new.fsgid = gid;
        Ok(())
    })
}

pub fn setreuid(uid: u32, euid: u32) -> Result<()> {
    change(|new, old| {
        let may = old.capable(Capability::SETUID);
        if uid != KEEP {
            if uid != old.uid && uid != old.euid && !may {
                return Err(Errno::EPERM);
            }
            new.uid = uid;
        }
        if euid != KEEP {
            if ![old.uid, old.euid, old.suid].contains(&euid) && !may {
                return Err(Errno::EPERM);
            }
            new.euid = euid;
        }
        if uid != KEEP || (euid != KEEP && euid != old.uid) {
            new.suid = new.euid;
        }
        new.fsuid = new.euid;
        new.fix_caps_after_setuid(old);
        Ok(())
    })
}

pub fn setregid(gid: u32, egid: u32) -> Result<()> {
    change(|new, old| {
        let may = old.capable(Capability::SETGID);
        if gid != KEEP {
            if gid != old.gid && gid != old.egid && !may {
                return Err(Errno::EPERM);
            }
            new.gid = gid;
        }
        if egid != KEEP {
            if ![old.gid, old.egid, old.sgid].contains(&egid) && !may {
                return Err(Errno::EPERM);
            }
            new.egid = egid;
        }
        if gid != KEEP || (egid != KEEP && egid != old.gid) {
            new.sgid = new.egid;
        }
        new.fsgid = new.egid;
        Ok(())
    })
}

pub fn setresuid(uid: u32, euid: u32, suid: u32) -> Result<()> {
    change(|new, old| {
        let own = [old.uid, old.euid, old.suid];
        let may = old.capable(Capability::SETUID);
        if !may && [uid, euid, suid].iter().any(|id| *id != KEEP && !own.contains(id)) {
            return Err(Errno::EPERM);
        }
        set(&mut new.uid, uid);
        set(&mut new.euid, euid);
        set(&mut new.suid, suid);
        new.fsuid = new.euid;
        new.fix_caps_after_setuid(old);
        Ok(())
    })
}

pub fn setresgid(gid: u32, egid: u32, sgid: u32) -> Result<()> {
    change(|new, old| {
        let own = [old.gid, old.egid, old.sgid];
        let may = old.capable(Capability::SETGID);
        if !may && [gid, egid, sgid].iter().any(|id| *id != KEEP && !own.contains(id)) {
            return Err(Errno::EPERM);
        }
        set(&mut new.gid, gid);
        set(&mut new.egid, egid);
        set(&mut new.sgid, sgid);
        new.fsgid = new.egid;
        Ok(())
    })
}

fn set(id: &mut u32, to: u32) {
    if to != KEEP {
        *id = to;
    }
}

pub fn getresuid(uid: UserPtr<u32>, euid: UserPtr<u32>, suid: UserPtr<u32>) -> Result<()> {
    let cred = process::current().cred_arc();
    uid.write(&cred.uid)?;
    euid.write(&cred.euid)?;
    suid.write(&cred.suid)
}

pub fn getresgid(gid: UserPtr<u32>, egid: UserPtr<u32>, sgid: UserPtr<u32>) -> Result<()> {
    let cred = process::current().cred_arc();
    gid.write(&cred.gid)?;
    egid.write(&cred.egid)?;
    sgid.write(&cred.sgid)
}

/// Returns the old id whether or not it could be changed.
pub fn setfsuid(uid: u32) -> Result<u32> {
    let old = process::current().cred().fsuid;
    let result = change(|new, old| {
        let own = [old.uid, old.euid, old.suid, old.fsuid].contains(&uid);
        if uid == KEEP || !(own || old.capable(Capability::SETUID)) {
            return Err(Errno::EPERM);
        }
        new.fsuid = uid;
        new.fix_caps_after_setfsuid(old);
        Ok(())
    });
    match result {
        Ok(()) | Err(Errno::EPERM) => Ok(old),
        Err(errno) => Err(errno),
    }
}

/// Returns the old id whether or not it could be changed.
pub fn setfsgid(gid: u32) -> Result<u32> {
    let old = process::current().cred().fsgid;
    let result = change(|new, old| {
        let own = [old.gid, old.egid, old.sgid, old.fsgid].contains(&gid);
        if gid == KEEP || !(own || old.capable(Capability::SETGID)) {
            return Err(Errno::EPERM);
        }
        new.fsgid = gid;
        Ok(())
    });
    match result {
        Ok(()) | Err(Errno::EPERM) => Ok(old),
        Err(errno) => Err(errno),
    }
}

/// Most supplementary groups.
const NGROUPS_MAX: usize = 65_536;

pub fn getgroups(size: i32, list: UserPtr<u32>) -> Result<usize> {
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    let groups = process::current().cred().groups.clone();
    if size == 0 {
        return Ok(groups.len());
    }
    if groups.len() > size {
        return Err(Errno::EINVAL);
    }
    for (at, gid) in groups.iter().enumerate() {
        list.index(at as u64).write(gid)?;
    }
    Ok(groups.len())
}

pub fn setgroups(size: i32, list: UserPtr<u32>) -> Result<()> {
    if !process::current().cred().capable(Capability::SETGID) {
        return Err(Errno::EPERM);
    }
    let size = usize::try_from(size).ok().filter(|&size| size <= NGROUPS_MAX);
    let size = size.ok_or(Errno::EINVAL)?;
    let mut groups = Vec::with_room(size)?;
    for at in (0..size).paced() {
        groups.try_push(valid(list.index(at as u64).read()?)?)?;
    }
    groups.sort_unstable();
    let groups = try_arc(groups)?;
    change(|new, _| {
        new.groups = groups;
        Ok(())
    })
}

const VERSION_1: u32 = 0x1998_0330;
const VERSION_2: u32 = 0x2007_1026;
const VERSION_3: u32 = 0x2008_0522;

/// Reads `struct __user_cap_header_struct`: how many data elements follow, and of which task.
fn header(header: UserPtr<[u32; 2]>) -> Result<(usize, i32)> {
    let [version, pid] = header.read()?;
    let words = match version {
        VERSION_1 => 1,
        VERSION_2 | VERSION_3 => 2,
        _ => {
            header.write(&[VERSION_3, pid])?;
            return Err(Errno::EINVAL);
        }
    };
    Ok((words, pid.cast_signed()))
}

pub fn capget(head: UserPtr<[u32; 2]>, data: UserPtr<[u32; 3]>) -> Result<()> {
    let (words, pid) = match header(head) {
        // Asking for the version with no room for data is how programs learn it.
        Err(Errno::EINVAL) if data.is_null() => return Ok(()),
        other => other?,
    };
    if pid < 0 {
        return Err(Errno::EINVAL);
    }
    let cred = if pid == 0 || pid == process::current().tid() {
        process::current().cred_arc()
    } else {
        process::lookup_task(pid).ok_or(Errno::ESRCH)?.cred_arc()
    };
    if data.is_null() {
        return Ok(());
    }
    for word in 0..words.min(2) {
        let part = |set: CapSet| (set.bits() >> (32 * word)) as u32;
        let element = [part(cred.effective), part(cred.permitted), part(cred.inheritable)];
        data.index(word as u64).write(&element)?;
    }
    Ok(())
}

pub fn capset(head: UserPtr<[u32; 2]>, data: UserPtr<[u32; 3]>) -> Result<()> {
    let (words, pid) = header(head)?;
    if pid != 0 && pid != process::current().tid() {
        return Err(Errno::EPERM);
    }
    let mut sets = [0u64; 3];
    for word in 0..words.min(2) {
        let element = data.index(word as u64).read()?;
        for (set, part) in sets.iter_mut().zip(element) {
            *set |= u64::from(part) << (32 * word);
        }
    }
    let [effective, permitted, inheritable] = sets.map(CapSet::from_bits);
    change(|new, old| {
        let raises = !old.inheritable.or(old.permitted).contains(inheritable)
            && !old.capable(Capability::SETPCAP);
        let beyond_bounds = !old.inheritable.or(old.bounding).contains(inheritable);
        if raises
            || beyond_bounds
            || !old.permitted.contains(permitted)
            || !permitted.contains(effective)
        {
            return Err(Errno::EPERM);
        }
        new.effective = effective;
        new.permitted = permitted;
        new.inheritable = inheritable;
        new.ambient = old.ambient.and(permitted).and(inheritable);
        Ok(())
    })
}
