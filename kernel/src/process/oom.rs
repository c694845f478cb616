//! The OOM killer: when user memory runs out, the largest process dies and the rest goes on.

use super::{Process, current, for_each_process, schedule_timeout, signal};
use crate::mm;
use abi::signal::{SigInfo, Signal, code};
use alloc::sync::Arc;

/// How long the killed process gets to free its memory before another is chosen, in nanoseconds.
const GRACE: u64 = 20_000_000;

/// Frees memory by killing the process with the largest resident set; returns when the caller may try
/// again (or has been killed itself).
pub fn out_of_memory() {
    let dying = core::cell::Cell::new(false);
    let mut worst: Option<(u64, Arc<Process>)> = None;
    for_each_process(&mut |process| {
        if process.is_exiting() {
            dying.set(dying.get() || process.is_exiting_with_memory());
            return;
        }
        if process.is_init() {
            return;
        }
        let pages = process.resident_pages();
        if worst.as_ref().is_none_or(|(most, _)| pages > *most) {
            worst = Some((pages, process.clone()));
        }
    });
    if !dying.get() {
        let Some((pages, victim)) = worst else {
            panic!("System is deadlocked on memory: no process to kill");
        };
        let kib = pages * (mm::PAGE_SIZE as u64 / 1024);
        let (pid, uid) = (victim.pid(), victim.uid());
        let name = victim.name();
        log::error!("Out of memory: Killed process {pid} ({name}) anon-rss:{kib}kB, UID:{uid}");
        let info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
        if let Err(error) = signal::send_to_process(&victim, Signal::SIGKILL, info) {
            unreachable!("SIGKILL refused: {error}");
        }
    }
    if !signal::killed(current()) {
        schedule_timeout(GRACE);
    }
}
