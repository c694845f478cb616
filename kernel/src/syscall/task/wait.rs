//! `wait4` and `waitid`: what became of the children, in the words of user space.
//!
//! Owns nothing. Never waits itself: `process::wait` does. Locks: none.

use super::process::rusage;
use crate::mm::user::UserPtr;
use crate::process;
use crate::process::tree::pidfd;
use crate::process::tree::wait::{self, Options, Report, Which};
use crate::syscall::caller::file;
use abi::process::Rusage;
use abi::signal::{SigInfo, Signal};
use abi::{Errno, Result};

const WNOHANG: i32 = 1;
const WUNTRACED: i32 = 2;
const WEXITED: i32 = 4;
const WCONTINUED: i32 = 8;
const WNOWAIT: i32 = 0x0100_0000;
const WNOTHREAD: i32 = 0x2000_0000;
const WALL: i32 = 0x4000_0000;
const WCLONE: i32 = i32::MIN;

pub fn wait4(pid: i32, status: UserPtr<i32>, options: i32, usage: UserPtr<Rusage>) -> Result<i32> {
    if options & !(WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WCLONE | WALL) != 0 {
        return Err(Errno::EINVAL);
    }
    let which = match pid {
        i32::MIN => return Err(Errno::ESRCH),
        -1 => Which::Any,
        0 => Which::Group(process::current().process().pgid()),
        1.. => Which::Pid(pid),
        _ => Which::Group(-pid),
    };
    let options = wait_options(options | WEXITED);
    let Some(report) = wait::wait(which, &options)? else { return Ok(0) };
    if let Some(status) = status.non_null() {
        status.write(&report.status)?;
    }
    if let Some(usage) = usage.non_null() {
        usage.write(&rusage(&report.usage))?;
    }
    Ok(report.pid)
}

fn wait_options(bits: i32) -> Options {
    let has = |bit: i32| bits & bit != 0;
    Options {
        exited: has(WEXITED),
        stopped: has(WUNTRACED),
        continued: has(WCONTINUED),
        no_hang: has(WNOHANG),
        no_wait: has(WNOWAIT),
        all: has(WALL),
        clones: has(WCLONE),
        own: has(WNOTHREAD),
    }
}

const P_ALL: i32 = 0;
const P_PID: i32 = 1;
const P_PGID: i32 = 2;
const P_PIDFD: i32 = 3;

pub fn waitid(
    kind: i32,
    id: i32,
    info: UserPtr<SigInfo>,
    options: i32,
    usage: UserPtr<Rusage>,
) -> Result<()> {
    let (which, options, nonblock) = chosen(kind, id, options)?;
    let report = match wait::wait(which, &options) {
        Ok(None) if nonblock => return Err(Errno::EAGAIN),
        found => found_child(found, info)?,
    };
    if let (Some(usage), Some(report)) = (usage.non_null(), &report) {
        usage.write(&rusage(&report.usage))?;
    }
    tell_child(info, report.as_ref())
}

/// `waitid` of io_uring, which never waits itself: false if it would have to.
pub fn waitid_now(kind: i32, id: i32, info: UserPtr<SigInfo>, options: i32) -> Result<bool> {
    let (which, options, nonblock) = chosen(kind, id, options)?;
    let report = match wait::wait(which, &Options { no_hang: true, ..options }) {
        Ok(None) if nonblock => return Err(Errno::EAGAIN),
        Ok(None) if !options.no_hang => return Ok(false),
        found => found_child(found, info)?,
    };
    tell_child(info, report.as_ref()).map(|()| true)
}

/// Whom to wait for, how, and whether a pidfd says not to.
fn chosen(kind: i32, id: i32, options: i32) -> Result<(Which, Options, bool)> {
    let known = WNOHANG | WNOWAIT | WEXITED | WUNTRACED | WCONTINUED | WNOTHREAD | WCLONE | WALL;
    if options & !known != 0 || options & (WEXITED | WUNTRACED | WCONTINUED) == 0 {
        return Err(Errno::EINVAL);
    }
    let mut options = wait_options(options);
    let mut nonblock = false;
    let which = match (kind, id) {
        (P_PIDFD, 0..) => {
            let file = file(id)?;
            // EAGAIN instead of an answer that says nothing.
            nonblock = file.nonblock() && !options.no_hang;
            options.no_hang |= nonblock;
            Which::Process(pidfd::process_of(&file)?)
        }
        (P_ALL, _) => Which::Any,
        (P_PID, 1..) => Which::Pid(id),
        (P_PGID, 0) => Which::Group(process::current().process().pgid()),
        (P_PGID, 1..) => Which::Group(id),
        _ => return Err(Errno::EINVAL),
    };
    Ok((which, options, nonblock))
}

/// Linux clears the answer before an error, so a bad pointer counts for more than no children.
fn found_child(found: Result<Option<Report>>, info: UserPtr<SigInfo>) -> Result<Option<Report>> {
    if found.is_err() {
        tell_child(info, None)?;
    }
    found
}

fn tell_child(info: UserPtr<SigInfo>, report: Option<&Report>) -> Result<()> {
    match info.non_null() {
        Some(info) => write_child_info(info, report),
        None => Ok(()),
    }
}

/// Only the fields that Linux writes: with nothing to report, signal number and pid are zero.
fn write_child_info(info: UserPtr<SigInfo>, report: Option<&Report>) -> Result<()> {
    let (signo, code, pid, uid, status) = match report {
        Some(r) => (Signal::SIGCHLD.number(), r.code, r.pid, r.uid, r.info_status),
        None => (0, 0, 0, 0, 0),
    };
    let words = [signo, 0, code, 0, pid, uid as i32, status];
    info.cast::<[i32; 7]>().write(&words)
}
