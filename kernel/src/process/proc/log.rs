//! What the log says of the tasks when root asks (/proc/sysrq-trigger): a line for each.
//!
//! Owns nothing. Never keeps a lock while it logs. Locks: those of the task, briefly.

use super::shown;
use crate::process::task::task::Task;
use crate::process::tree::table::{self, for_each_process};
use crate::sync;
use alloc::sync::Arc;

/// Logs every task, or only those that wait uninterruptibly; ends early when the caller is killed.
pub fn tasks(only_blocked: bool) {
    for_each_process(&mut |process| {
        let mut from = 0;
        loop {
            let mut next = None;
            process.for_each_thread(&mut |thread| {
                let tid = thread.tid();
                if tid >= from && next.is_none_or(|next| tid < next) {
                    next = Some(tid);
                }
            });
            let Some(tid) = next else { return };
            if sync::killable().is_err() {
                return;
            }
            if let Some(task) = table::lookup_task(tid) {
                line(&task, only_blocked);
            }
            from = tid.saturating_add(1);
        }
    });
}

fn line(task: &Arc<Task>, only_blocked: bool) {
    let (state, _) = shown::state(task);
    if only_blocked && state != 'D' {
        return;
    }
    let (tid, pid, ppid) = (task.tid(), task.process().pid(), task.process().ppid());
    let name = shown::name(task);
    log::info!("task:{} state:{state} pid:{tid:<5} tgid:{pid:<5} ppid:{ppid}", name.escape_ascii());
}
