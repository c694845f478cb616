//! Process groups and sessions.
//!
//! A group lives while a process is in it, a session while a group is in it. Owns the members, weakly: a
//! group never keeps a process. Locks: members are under the group's `ProcessTree`, a process's own group under its
//! `ProcessState`; one `Leaf` orders the changes of groups.

use super::table;
use crate::mm::fallible::{TryMap, try_arc};
use crate::process::task::process::Process;
use crate::sync::counted::{Counted, Kind};
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::sync::atomic::Ordering;

/// A session: groups that share a controlling terminal.
pub struct Session {
    _counted: Counted,
    sid: i32,
    terminal: SpinLock<Option<Arc<dyn Any + Send + Sync>>, level::ProcessState>,
}

impl Session {
    pub(in crate::process) fn new(sid: i32) -> Result<Arc<Self>> {
        try_arc(Self { _counted: Counted::new(Kind::Session), sid, terminal: SpinLock::new(None) })
    }

    /// Its number: that of the process that made it.
    pub fn sid(&self) -> i32 {
        self.sid
    }

    /// The controlling terminal.
    pub fn terminal(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.terminal.lock().clone()
    }

    /// Sets or gives up the controlling terminal; the old one comes back.
    pub fn set_terminal(
        &self,
        terminal: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        core::mem::replace(&mut self.terminal.lock(), terminal)
    }
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// A process group.
pub struct Group {
    _counted: Counted,
    pgid: i32,
    session: Arc<Session>,
    /// By number, so that one of many leaves quickly.
    members: SpinLock<BTreeMap<i32, Weak<Process>>, level::ProcessTree>,
}

impl Group {
    pub(in crate::process) fn new(pgid: i32, session: Arc<Session>) -> Result<Arc<Self>> {
        try_arc(Self {
            _counted: Counted::new(Kind::Group),
            pgid,
            session,
            members: SpinLock::new(BTreeMap::new()),
        })
    }

    /// Its number: that of the process that made it.
    pub fn pgid(&self) -> i32 {
        self.pgid
    }

    /// The session it is in, for good.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(in crate::process) fn add(&self, process: &Arc<Process>) -> Result<()> {
        let old = self.members.lock().try_put(process.pid(), Arc::downgrade(process))?;
        debug_assert!(old.is_none(), "a process joins a group once");
        Ok(())
    }

    /// Takes a member out; true if it was the last.
    pub(super) fn remove(&self, process: &Process) -> bool {
        let mut members = self.members.lock();
        let removed = members.remove(&process.pid());
        let last = members.is_empty();
        drop(members);
        drop(removed);
        last
    }

    /// The members, by number: each as it is found.
    pub(super) fn members(&self) -> impl Iterator<Item = Arc<Process>> {
        table::in_order(|from| {
            self.members.lock().range(from..).find_map(|(_, member)| member.upgrade())
        })
    }

    /// Whether no member has a parent in another group of the session that could continue it. `except`
    /// counts as gone.
    pub fn is_orphaned(&self, except: Option<&Process>) -> bool {
        !self.members().any(|member| {
            if except.is_some_and(|e| core::ptr::eq(e, Arc::as_ptr(&member))) || member.is_exiting()
            {
                return false;
            }
            let Some(parent) = member.parent() else { return false };
            if except.is_some_and(|e| core::ptr::eq(e, Arc::as_ptr(&parent))) || parent.is_init() {
                return false;
            }
            let group = parent.group();
            group.pgid != self.pgid && Arc::ptr_eq(&group.session, &self.session)
        })
    }

    /// Whether a member is stopped.
    pub(super) fn has_stopped_member(&self) -> bool {
        self.members().any(|member| member.signals.job().stopped.is_some())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        super::table::number_left(self.pgid);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        super::table::number_left(self.sid);
    }
}

/// The session's leader ends: the terminal is free, and its foreground group is hung up.
pub(super) fn lose_terminal(session: &Session) {
    drop(session.set_terminal(None));
}

/// Moves `process` into `group`; its old group goes if it was the last member. `ENOMEM`: it stays where it is.
pub(super) fn join(process: &Arc<Process>, group: &Arc<Group>) -> Result<()> {
    group.add(process)?;
    let old = process.swap_group(group.clone());
    old.remove(process);
    Ok(())
}

/// Held while a process changes its group: a shell and its new child often make the same group at once.
static MOVING: SpinLock<(), level::Leaf> = SpinLock::new(());

/// A process that was waited for leaves its group, for good: nobody moves it any more.
pub(super) fn leave(process: &Process) {
    let _moving = MOVING.lock();
    debug_assert!(process.is_reaped(), "a process leaves its group before its end");
    process.group().remove(process);
}

/// setpgid: moves `target`, which is `caller` or a child of it, into group `pgid` (0: its own).
///
/// # Errors
/// `ESRCH` for a stranger, `EACCES` for a child that has called exec, `EPERM` for session leaders and for
/// groups of other sessions.
pub fn set_group(caller: &Arc<Process>, target: &Arc<Process>, pgid: i32) -> Result<()> {
    let _moving = MOVING.lock();
    let session = caller.session();
    if target.is_reaped() {
        // It has left its group, or is about to: another one would keep it.
        return Err(Errno::ESRCH);
    }
    if !Arc::ptr_eq(caller, target) {
        if !target.parent().is_some_and(|parent| Arc::ptr_eq(&parent, caller)) {
            return Err(Errno::ESRCH);
        }
        if !Arc::ptr_eq(&target.session(), &session) {
            return Err(Errno::EPERM);
        }
        // Relaxed: a race with the child's exec has two right outcomes.
        if target.has_execed.load(Ordering::Relaxed) {
            return Err(Errno::EACCES);
        }
    }
    if target.session().sid() == target.pid() {
        return Err(Errno::EPERM);
    }
    let pgid = if pgid == 0 { target.pid() } else { pgid };
    if target.pgid() == pgid {
        return Ok(());
    }
    let group = match table::lookup_group(pgid) {
        Some(group) if Arc::ptr_eq(group.session(), &session) => group,
        None if pgid == target.pid() => {
            let group = Group::new(pgid, session)?;
            table::insert_group(&group);
            group
        }
        _ => return Err(Errno::EPERM),
    };
    join(target, &group)?;
    Ok(())
}

/// setsid: a session and a group of the process's own.
///
/// # Errors
/// `EPERM` if a group with its number exists.
pub fn new_session(process: &Arc<Process>) -> Result<i32> {
    let _moving = MOVING.lock();
    let number = process.pid();
    if table::lookup_group(number).is_some() {
        return Err(Errno::EPERM);
    }
    let session = Session::new(number)?;
    let group = Group::new(number, session.clone())?;
    table::insert_session(&session);
    table::insert_group(&group);
    join(process, &group)?;
    // Relaxed: a setting of the running process.
    process.gave_up_terminal.store(false, Ordering::Relaxed);
    Ok(number)
}
