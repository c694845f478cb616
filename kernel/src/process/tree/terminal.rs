//! Job control for the terminals: fills the slot of `drivers::tty::tty`.
//!
//! Owns nothing: a session keeps its controlling terminal, a terminal the number of its session and the name of its
//! foreground group.

use super::table::{self, for_each_process, lookup, lookup_group};
use crate::drivers::tty::{self, Caller, JobControl, Tty};
use crate::process::signal::{send_to_group, send_to_process};
use crate::process::task::current::current;
use crate::process::task::process::Process;
use crate::vfs::object::owner::PidRef;
use crate::vfs::{Capability, Owner};
use abi::signal::{SIG_IGN, SigInfo, Signal, code};
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::Ordering;

struct Terminals;

/// Fills the slot; called once at boot.
pub fn init() {
    tty::register_job_control(&Terminals);
}

/// The controlling terminal of a process: its session's, unless it gave that up for itself.
pub fn terminal_of(process: &Process) -> Option<Arc<Tty>> {
    // Relaxed: a setting that only the process itself changes.
    if process.gave_up_terminal.load(Ordering::Relaxed) {
        return None;
    }
    process.session().terminal()?.downcast().ok()
}

/// A session leader exits: its terminal is hung up or given up.
pub fn leader_exits(process: &Process) {
    if process.session().sid() == process.pid()
        && let Some(terminal) = terminal_of(process)
    {
        tty::session_leader_exits(&terminal);
    }
}

/// A signal that the terminal sends.
fn info(signal: Signal) -> SigInfo {
    SigInfo::new(signal, code::SI_KERNEL)
}

impl JobControl for Terminals {
    fn caller(&self) -> Caller {
        let task = current();
        let process = task.process();
        let group = process.group();
        let session = group.session().sid();
        let cred = task.cred();
        Caller {
            pid: process.pid(),
            uids: cred.uids(),
            group: table::reference(group.pgid()).unwrap_or_default(),
            session,
            is_session_leader: session == process.pid(),
            is_admin: cred.capable(Capability::SYS_ADMIN),
            owner: Owner { uid: cred.fsuid, gid: cred.fsgid },
        }
    }

    fn terminal(&self) -> Option<Arc<Tty>> {
        terminal_of(current().process())
    }

    fn set_terminal(&self, session: i32, terminal: Option<Arc<Tty>>) {
        let terminal = terminal.map(|tty| tty as Arc<dyn Any + Send + Sync>);
        let mut found = lookup(session).map(|leader| leader.session());
        if found.as_ref().is_none_or(|s| s.sid() != session) {
            // The leader is gone: any other member knows the session.
            found = None;
            for_each_process(&mut |process| {
                if found.is_none() {
                    found = Some(process.session()).filter(|s| s.sid() == session);
                }
            });
        }
        if let Some(found) = found {
            drop(found.set_terminal(terminal));
        }
    }

    fn detach_caller(&self) {
        // Relaxed: see `terminal_of`.
        current().process().gave_up_terminal.store(true, Ordering::Relaxed);
    }

    fn reference(&self, number: i32) -> Option<PidRef> {
        table::reference(number)
    }

    fn session_of_group(&self, group: PidRef) -> Option<i32> {
        let of_process = || lookup(group).map(|process| process.session().sid());
        // As on Linux, a process that leads no group yet may be named, too: it is to have one.
        lookup_group(group).map(|group| group.session().sid()).or_else(of_process)
    }

    fn caller_is_orphaned(&self) -> bool {
        current().process().is_orphaned_group()
    }

    fn caller_ignores(&self, signal: Signal) -> bool {
        let task = current();
        let action = task.process().signals.actions().get(signal);
        task.signals.blocked().contains(signal) || action.handler == SIG_IGN
    }

    fn signal_group(&self, group: PidRef, signal: Signal) {
        // A group that is gone has no member to signal.
        let _ = send_to_group(group, signal, info(signal));
    }

    fn signal_leader(&self, session: i32, signal: Signal) {
        if let Some(leader) = lookup(session)
            && leader.session().sid() == session
        {
            // Neither SIGHUP nor SIGCONT can exceed a limit.
            let _ = send_to_process(&leader, signal, info(signal));
        }
    }
}
