//! Who may look into a process or change it: Linux's ptrace access checks.
//!
//! Owns nothing. Locks: those of the task that is looked at, briefly.

use crate::process::task::current::current;
use crate::process::task::process::Steady;
use crate::process::task::task::Task;
use crate::vfs::{Capability, Cred};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Whether the running task may look into another: no exec of that is under way at this moment.
pub fn may_look_into(target: &Task) -> bool {
    let _steady = target.process().steady();
    may_access(target, &current().cred())
}

/// Whether the running task may look into another and take what it has, as a debugger may: it may as long as it has the answer.
pub fn may_attach(target: &Task) -> Option<Steady<'_>> {
    let own = current().cred_arc();
    let steady = target.process().steady();
    // By the real identity, not by that for files.
    let may = may_access(target, &Cred { fsuid: own.uid, fsgid: own.gid, ..Cred::clone(&own) });
    may.then_some(steady)
}

/// Whether the running task, with the identity `own`, may look into another. Its own process it always may: so
/// this is a question for the moment of opening, and no answer for what is read later.
pub(in crate::process) fn may_access(target: &Task, own: &Cred) -> bool {
    if Arc::ptr_eq(target.process(), current().process()) {
        return true;
    }
    cred_may_access(target, own)
}

/// Whether somebody of this identity, whatever process he runs in, may look into a task.
pub(in crate::process) fn cred_may_access(target: &Task, own: &Cred) -> bool {
    let other = target.cred_arc();
    let same_user = [other.uid, other.euid, other.suid].iter().all(|&id| id == own.fsuid);
    let same_group = [other.gid, other.egid, other.sgid].iter().all(|&id| id == own.fsgid);
    // Relaxed: a setting.
    let dumpable = target.process().dumpable.load(Ordering::Relaxed) == 1;
    (same_user && same_group && dumpable && own.permitted.contains(other.permitted))
        || own.capable(Capability::SYS_PTRACE)
}
