//! What exec does to credentials: set-uid bits and capabilities; who may look into the new program.

use crate::mm::fallible::try_arc;
use crate::process::ptrace;
use crate::process::task::current::Current;
use crate::process::tree::table::for_each_process;
use crate::vfs::cred::securebits;
use crate::vfs::file_caps::{self, FileCaps};
use crate::vfs::{CapSet, Capability, Cred, MountFlags, OpenFile, Rights};
use abi::fs::{S_ISGID, S_ISUID};
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// What becomes of a task's identity.
pub(super) struct Change {
    /// The new identity, if it differs from the old one.
    pub(super) cred: Option<Arc<Cred>>,
    /// The program must distrust its environment (AT_SECURE).
    pub(super) secure: bool,
    /// The program is somebody else's to some degree: no setting of its caller may make it predictable.
    pub(super) sets_id: bool,
    /// It runs with other rights than its caller had, or with two identities.
    pub(super) guarded: bool,
}

/// Whether the mount lets programs set ids and give capabilities.
fn may_set_id(file: &OpenFile) -> bool {
    !file.path().mount.flags().contains(MountFlags::NOSUID)
}

/// The capabilities that `file` gives whoever executes it. `EPERM` for a program that would run without what it needs and cannot
/// know, `EINVAL` for what are none.
pub(super) fn file_caps(task: Current, file: &OpenFile) -> Result<Option<FileCaps>> {
    let Some(caps) = (if may_set_id(file) { file_caps::of(&**file.inode())? } else { None }) else {
        return Ok(None);
    };
    let lacks = !permitted_by(&caps, &task.cred()).contains(caps.permitted);
    if caps.effective && lacks { Err(Errno::EPERM) } else { Ok(Some(caps)) }
}

/// What a file's capabilities permit who executes it.
fn permitted_by(caps: &FileCaps, old: &Cred) -> CapSet {
    old.bounding.and(caps.permitted).or(old.inheritable.and(caps.inheritable))
}

/// What executing `file` makes of the task's identity.
pub(super) fn change(task: Current, file: &OpenFile, caps: Option<&FileCaps>) -> Result<Change> {
    let old = task.cred();
    let two = old.uid != old.euid || old.gid != old.egid;
    let (cred, secure, set_bits) = new_cred(task, file, caps)?;
    let Some(new) = cred else {
        return Ok(Change { cred: None, secure, sets_id: set_bits, guarded: two });
    };
    let ids = |cred: &Cred| (cred.euid, cred.egid, cred.fsuid, cred.fsgid);
    let gains = !old.permitted.contains(new.permitted);
    let guarded = two || gains || ids(&old) != ids(&new);
    Ok(Change { cred: Some(new), secure, sets_id: set_bits || gains, guarded })
}

/// The new identity, if it differs from the old one; whether the program must distrust its environment; whether
/// a set-id bit of the file counts.
fn new_cred(
    task: Current,
    file: &OpenFile,
    caps: Option<&FileCaps>,
) -> Result<(Option<Arc<Cred>>, bool, bool)> {
    let old = task.cred();
    // Of one moment: the bit that one owner gave counts for no other.
    let Rights { mode, uid, gid } = file.inode().attr().rights();
    // Relaxed: the thread's own setting.
    let no_new_privs = task.settings.no_new_privs.load(Ordering::Relaxed);
    let may_gain = may_set_id(file) && !no_new_privs;
    let sets_uid = may_gain && mode & S_ISUID != 0;
    let sets_gid = may_gain && mode & (S_ISGID | 0o010) == S_ISGID | 0o010;
    let euid = if sets_uid { uid } else { old.euid };
    let egid = if sets_gid { gid } else { old.egid };
    if caps.is_none() && is_unchanged(&old, euid, egid) {
        return Ok((None, false, sets_uid || sets_gid));
    }
    let mut new = Cred::clone(&old);
    (new.euid, new.egid) = (euid, egid);
    let effective = permit(&old, &mut new, caps);
    let is_setid = euid != old.uid || egid != old.gid;
    let gains = !old.permitted.contains(new.permitted);
    if (is_setid || gains)
        && (no_new_privs || shares_directories(task) || ptrace::has_weak_tracer(&task))
    {
        // Somebody else could move its working directory under it, or tells it what to do: as on Linux, it gains nothing.
        if no_new_privs || !old.capable(Capability::SETUID) {
            (new.euid, new.egid) = (new.uid, new.gid);
        }
        new.permitted = new.permitted.and(old.permitted);
    }
    (new.suid, new.fsuid) = (new.euid, new.euid);
    (new.sgid, new.fsgid) = (new.egid, new.egid);
    if caps.is_some() || is_setid {
        new.ambient = CapSet::EMPTY;
    }
    new.permitted = new.permitted.or(new.ambient);
    new.effective = if effective { new.permitted } else { new.ambient };
    new.securebits &= !securebits::KEEP_CAPS;
    let grew = effective || !new.ambient.contains(new.permitted);
    let secure = is_setid || (new.uid != 0 && grew);
    Ok((Some(try_arc(new)?), secure, sets_uid || sets_gid))
}

/// Whether a task of another process has the same working directory and root, by CLONE_FS. Its own process has no other
/// task any more.
fn shares_directories(task: Current) -> bool {
    let own = task.fs();
    let mut shared = false;
    for_each_process(&mut |process| {
        if !core::ptr::eq(&**process, &**task.process()) {
            process.for_each_thread(&mut |other| shared |= other.shares_fs_with(&own));
        }
    });
    shared
}

/// The usual case costs a few comparisons: root stays root, or an ordinary user without capabilities stays.
fn is_unchanged(old: &Cred, euid: u32, egid: u32) -> bool {
    let same_ids = [old.uid, old.euid, old.suid, old.fsuid].iter().all(|&id| id == euid)
        && [old.gid, old.egid, old.sgid, old.fsgid].iter().all(|&id| id == egid);
    let caps = if euid == 0 { old.bounding } else { CapSet::EMPTY };
    same_ids
        && old.securebits == 0
        && old.ambient == CapSet::EMPTY
        && (euid == 0 || old.inheritable == CapSet::EMPTY)
        && old.permitted == caps.or(if euid == 0 { old.inheritable } else { caps })
        && old.effective == old.permitted
}

/// What the file's capabilities and root's privileges permit, without the ambient set; whether it is in effect at once.
fn permit(old: &Cred, new: &mut Cred, caps: Option<&FileCaps>) -> bool {
    new.permitted = caps.map_or(CapSet::EMPTY, |caps| permitted_by(caps, old));
    let mut effective = caps.is_some_and(|caps| caps.effective);
    // A set-uid program of root's that has capabilities has those alone, unless root runs it.
    let has_own = caps.is_some() && new.uid != 0 && new.euid == 0;
    if new.securebits & securebits::NOROOT == 0 && !has_own {
        if new.uid == 0 || new.euid == 0 {
            new.permitted = old.bounding.or(old.inheritable);
        }
        effective |= new.euid == 0;
    }
    effective
}
