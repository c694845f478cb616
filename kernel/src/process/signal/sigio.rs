//! The signal that an open file sends to whom `F_SETOWN` names: SIGIO, or what `F_SETSIG` chose; SIGURG.
#![forbid(unsafe_code)]

use super::send::{send_to_process, send_to_task};
use crate::process::task::task::Task;
use crate::process::tree::table;
use crate::vfs::OpenFile;
use crate::vfs::object::owner::{PidRef, SignalOwner};
use abi::fs::OpenFlags;
use abi::signal::{SigInfo, Signal, code};
use alloc::sync::Arc;

/// Signals whose codes have meanings of their own, so that a file's reason cannot be told by them.
const WITH_CODES: [Signal; 8] = [
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGTRAP,
    Signal::SIGCHLD,
    Signal::SIGIO,
    Signal::SIGSYS,
];

/// Tells the owner of `file` that something happened: `reason` is a `POLL_*`, `band` the bits of poll(2), `fd` the descriptor. An
/// owner whom the one that named him may not signal gets nothing.
pub fn sigio(file: &OpenFile, fd: i32, reason: i32, band: u64) {
    tell(&file.signal_owner(), fd, reason, band);
}

/// The same of a file that has this owner.
pub fn tell(owner: &SignalOwner, fd: i32, reason: i32, band: u64) {
    let chosen = Signal::new(owner.signal);
    let plain = (Signal::SIGIO, SigInfo::new(Signal::SIGIO, code::SI_KERNEL));
    let told = chosen.map(|signal| {
        let special = signal != Signal::SIGIO && WITH_CODES.contains(&signal);
        let code = if special { code::SI_SIGIO } else { reason };
        (signal, SigInfo::poll(signal, code, band, fd))
    });
    for_owner(owner, |task, is_thread| {
        let send = |(signal, info): (Signal, SigInfo)| match is_thread {
            true => send_to_task(task, signal, info),
            false => send_to_process(task.process(), signal, info),
        };
        // A queue that is full takes the plain signal, which is there at most once.
        if told.is_none_or(|told| send(told).is_err()) {
            let _ = send(plain);
        }
    });
}

/// `EPOLLPRI | EPOLLRDBAND`, which a signal of `POLL_PRI` tells.
const URGENT_BAND: u64 = 0x82;

/// Tells the owner of `file` that a byte has come out of band: by SIGURG, and if he chose a signal for the file, by that too.
pub fn sigurg(file: &OpenFile) {
    let owner = file.signal_owner();
    let info = SigInfo::new(Signal::SIGURG, code::SI_KERNEL);
    for_owner(&owner, |task, is_thread| {
        // It is no real-time signal: it cannot exceed a limit.
        let _ = match is_thread {
            true => send_to_task(task, Signal::SIGURG, info),
            false => send_to_process(task.process(), Signal::SIGURG, info),
        };
    });
    if owner.signal != 0 && file.flags().contains(OpenFlags::ASYNC) {
        sigio(file, owner.fd, code::POLL_PRI, URGENT_BAND);
    }
}

/// Calls `each` with the thread that is the owner, or a thread of each process that is, if who named it may signal it.
fn for_owner(owner: &SignalOwner, each: impl Fn(&Arc<Task>, bool)) {
    let each = |task: &Arc<Task>, is_thread: bool| {
        if may_signal(owner, task) {
            each(task, is_thread);
        }
    };
    match owner.kind {
        _ if owner.id == PidRef::default() => {}
        SignalOwner::PROCESS => {
            // As on Linux, the process of the thread that is named.
            let process = table::lookup(owner.id);
            let thread = process.and_then(|process| process.any_thread());
            if let Some(task) = thread.or_else(|| table::lookup_task(owner.id)) {
                each(&task, false);
            }
        }
        SignalOwner::GROUP => {
            if let Some(group) = table::lookup_group(owner.id) {
                table::for_each_member(&group, &mut |process| {
                    if let Some(task) = process.any_thread() {
                        each(&task, false);
                    }
                });
            }
        }
        _ => {
            if let Some(task) = table::lookup_task(owner.id) {
                each(&task, true);
            }
        }
    }
}

/// As `sigio_perm` of Linux: by the identities of who named the owner, when he did.
fn may_signal(owner: &SignalOwner, task: &Task) -> bool {
    let cred = task.cred_arc();
    owner.euid == 0 || [owner.uid, owner.euid].iter().any(|own| [cred.uid, cred.suid].contains(own))
}
