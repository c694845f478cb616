//! What exec does to credentials: set-uid bits and capabilities; who may look into the new program.

use crate::mm::fallible::try_arc;
use crate::process::ptrace;
use crate::process::task::current::Current;
use crate::process::tree::table::for_each_process;
use crate::vfs::cred::securebits;
use crate::vfs::{CapSet, Capability, Cred, MountFlags, OpenFile};
use abi::Result;
use abi::fs::{S_ISGID, S_ISUID};
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

/// What executing `file` makes of the task's identity.
pub(super) fn change(task: Current, file: &OpenFile) -> Result<Change> {
    let old = task.cred();
    let two = old.uid != old.euid || old.gid != old.egid;
    let (cred, secure, set_bits) = new_cred(task, file)?;
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
fn new_cred(task: Current, file: &OpenFile) -> Result<(Option<Arc<Cred>>, bool, bool)> {
    let old = task.cred();
    let meta = file.inode().attr();
    let mode = meta.mode();
    // Relaxed: the thread's own setting.
    let may_gain = !task.settings.no_new_privs.load(Ordering::Relaxed)
        && !file.path().mount.flags().contains(MountFlags::NOSUID);
    let mut euid = old.euid;
    let mut egid = old.egid;
    let sets_uid = may_gain && mode & S_ISUID != 0;
    let sets_gid = may_gain && mode & (S_ISGID | 0o010) == S_ISGID | 0o010;
    if sets_uid {
        euid = meta.uid();
    }
    if sets_gid {
        egid = meta.gid();
    }
    if (euid, egid) != (old.euid, old.egid)
        && !old.capable(Capability::SETUID)
        && (shares_directories(task) || ptrace::has_weak_tracer(&task))
    {
        // Somebody else could move its working directory under it, or tells it what to do: as on Linux, it gains nothing.
        (euid, egid) = (old.uid, old.gid);
    }
    if is_unchanged(&old, euid, egid) {
        return Ok((None, false, sets_uid || sets_gid));
    }
    let mut new = Cred::clone(&old);
    (new.euid, new.suid, new.fsuid) = (euid, euid, euid);
    (new.egid, new.sgid, new.fsgid) = (egid, egid, egid);
    let changed_id = euid != old.uid || egid != old.gid;
    set_capabilities(&old, &mut new, changed_id);
    new.securebits &= !securebits::KEEP_CAPS;
    let gained = new.uid != 0 && !new.ambient.contains(new.effective);
    Ok((Some(try_arc(new)?), changed_id || gained, sets_uid || sets_gid))
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

fn set_capabilities(old: &Cred, new: &mut Cred, changed_id: bool) {
    if changed_id {
        new.ambient = CapSet::EMPTY;
    }
    let rooted = new.securebits & securebits::NOROOT == 0;
    if rooted && (new.uid == 0 || new.euid == 0) {
        new.permitted = old.bounding.or(old.inheritable);
        new.effective = if new.euid == 0 { new.permitted } else { new.ambient };
    } else {
        new.permitted = new.ambient;
        new.effective = new.ambient;
    }
}
