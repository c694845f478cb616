//! The OOM killer: when user memory runs out, the largest process dies and the rest goes on.
//!
//! Owns the note that somebody looks already. Never kills process 1. Locks: none of its own; called with none held.

use crate::base;
use crate::mm::{self, space};
use crate::process::ptrace;
use crate::process::sched::schedule_timeout;
use crate::process::signal;
use crate::process::task::current::current;
use crate::process::task::process::Process;
use crate::process::tree::table::for_each_process;
use abi::signal::{SigInfo, Signal, code};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// How long the killed process gets to free its memory before another is chosen, in nanoseconds.
const GRACE: u64 = 20_000_000;

/// As many free frames that other CPUs had kept let the caller try again before anybody is killed.
const ENOUGH: usize = 64;

/// For a page that is not worth a process: drops others of its kind, else gives memory some time to become
/// free. The caller may try again.
pub fn wait_for_memory() {
    if space::drop_pages() == 0 {
        wait_for_victims();
    }
}

/// Frees memory by dropping what may be dropped, else by killing the process with the largest resident set;
/// returns when the caller may try again (or has been killed itself).
pub fn out_of_memory() {
    if mm::has_user_frames() {
        // What others have given back meanwhile, or a refusal that was injected: one more try, as Linux makes.
        return;
    }
    if mm::gather_free_frames() > ENOUGH || space::drop_pages() > 0 {
        return;
    }
    if !kill_largest() {
        panic!("System is deadlocked on memory: no process to kill");
    }
    wait_for_victims();
}

/// On the way to user mode, when a task has used some of the kernel's reserve and little is left: the kernel's small
/// objects must not use up what it needs to stay alive.
pub fn relieve() {
    static SOMEBODY_LOOKS: AtomicBool = AtomicBool::new(false);
    // Relaxed: who comes second only waits, and looks at nothing of the first's.
    if !mm::kernel_memory_low() {
        return;
    }
    if SOMEBODY_LOOKS.swap(true, Ordering::Relaxed) {
        return wait_for_victims();
    }
    if mm::gather_free_frames() <= ENOUGH && space::drop_pages() == 0 {
        kill_largest();
    }
    SOMEBODY_LOOKS.store(false, Ordering::Relaxed);
    wait_for_victims();
}

/// Gives killed processes time to free their memory.
fn wait_for_victims() {
    if !signal::killed(&current()) {
        schedule_timeout(GRACE);
    }
}

/// False if there is nobody to kill.
fn kill_largest() -> bool {
    let (dying, told) = (core::cell::Cell::new(false), core::cell::Cell::new(false));
    let mut worst: Option<(u64, Arc<Process>)> = None;
    for_each_process(&mut |process| {
        // One that writes a core may take its time: it can be killed.
        if process.is_exiting() && !process.is_dumping() {
            if process.has_memory() {
                // It must not keep its memory for as long as a tracer likes.
                ptrace::hurry(process);
                dying.set(true);
            }
            return;
        }
        if process.is_init() {
            return;
        }
        if process.signals.pending().contains(Signal::SIGKILL) {
            // It may wait for what only another process can release: the next one is killed, if there is one.
            told.set(true);
            return;
        }
        let pages = process.resident_pages();
        if worst.as_ref().is_none_or(|(most, _)| pages > *most) {
            worst = Some((pages, process.clone()));
        }
    });
    if dying.get() {
        return true;
    }
    let Some((pages, victim)) = worst else { return told.get() };
    let kib = pages * (base::PAGE_SIZE as u64 / 1024);
    let (pid, uid) = (victim.pid(), victim.uid());
    let name = victim.name();
    log::error!(
        "Out of memory: Killed process {pid} ({}) anon-rss:{kib}kB, UID:{uid}",
        name.escape_ascii()
    );
    let info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
    if let Err(error) = signal::send_to_process(&victim, Signal::SIGKILL, info) {
        unreachable!("SIGKILL refused: {error}");
    }
    true
}
