//! Before a new program, the thread that calls exec becomes the only one, and the leader.

use crate::process::ptrace;
use crate::process::signal;
use crate::process::task::current::{Current, current_arc};
use crate::process::tree::{exit, table};
use abi::{Errno, Result};

/// Ends all other threads of the process and takes the leader's number.
///
/// # Errors
/// `EAGAIN` if another thread is at it, `EINTR` if the process was killed meanwhile (nobody will see it).
pub(super) fn become_only(task: Current) -> Result<()> {
    let process = task.process();
    if !process.is_single_threaded() {
        if !process.begin_exec(task.tid()) {
            return Err(Errno::EAGAIN);
        }
        signal::terminate_threads(process, Some(&task));
        let alone = || process.is_single_threaded().then_some(());
        let waited = process.threads_changed.wait_killable(alone);
        process.end_exec();
        waited.map_err(|_| Errno::EINTR)?;
    }
    if !task.is_leader() {
        let leader = table::take_over(&current_arc(), process.pid());
        process.note_leader_left(false);
        ptrace::leader_replaced(leader);
    }
    exit::complete_threads(process, &task);
    Ok(())
}
