//! The OOM killer: when user memory runs out, the process with the greatest badness dies and the rest goes on.
//!
//! Owns the note that somebody chooses already, and what a process's badness is moved by. Never kills process 1, nor who is at -1000. Locks: none of its own; called with none held.

use crate::base;
use crate::mm::{self, space};
use crate::process::ptrace;
use crate::process::sched::schedule_timeout;
use crate::process::signal;
use crate::process::task::current::current;
use crate::process::task::process::Process;
use crate::process::tree::table::for_each_process;
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicI16, Ordering};

/// How long the killed process gets to free its memory before another is chosen, in nanoseconds.
const GRACE: u64 = 20_000_000;

/// As many free frames that other CPUs had kept let the caller try again before anybody is killed.
const ENOUGH: usize = 64;

crate::setting! {
    /// `vm.oom_kill_allocating_task`: who asks for memory in vain is killed, and nobody is chosen.
    pub static KILL_ALLOCATING_TASK = 0, 0..=0x7fff_ffff;
    /// `vm.panic_on_oom`: where somebody would be killed, the machine panics. 2 is as 1 where nobody is bound to a part of memory.
    pub static PANIC_ON_OOM = 0, 0..=2;
}

/// `oom_score_adj`: thousandths of all memory that are added to a process's badness. Relaxed: settings.
#[derive(Default)]
pub struct Adjustment {
    now: AtomicI16,
    /// What it may be lowered to without `CAP_SYS_RESOURCE`: what somebody with it has set.
    least: AtomicI16,
}

impl Adjustment {
    /// Who has this one is never killed (`OOM_SCORE_ADJ_MIN`).
    pub const NEVER: i16 = -1000;
    pub const MOST: i16 = 1000;

    pub fn get(&self) -> i16 {
        self.now.load(Ordering::Relaxed)
    }

    /// Sets it; `EINVAL` outside of its range, `EACCES` for who may not lower it so far.
    pub fn set(&self, value: i64, privileged: bool) -> Result<()> {
        let value = i16::try_from(value).map_err(|_| Errno::EINVAL)?;
        if !(Self::NEVER..=Self::MOST).contains(&value) {
            return Err(Errno::EINVAL);
        }
        if privileged {
            self.least.store(value, Ordering::Relaxed);
        } else if value < self.least.load(Ordering::Relaxed) {
            return Err(Errno::EACCES);
        }
        self.now.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Sets it on the old scale, on which nothing but the value itself may be lowered.
    pub fn set_legacy(&self, value: i64, privileged: bool) -> Result<()> {
        if !(-17..=15).contains(&value) {
            return Err(Errno::EINVAL);
        }
        let value = if value == 15 { Self::MOST } else { (value * 1000 / 17) as i16 };
        if value < self.get() && !privileged {
            return Err(Errno::EACCES);
        }
        self.now.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// A child's is its parent's.
    pub fn inherit(&self, parent: &Self) {
        self.now.store(parent.get(), Ordering::Relaxed);
        self.least.store(parent.least.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// How much would be gained by the end of `process`, in pages: what is resident and its page tables (Linux's `oom_badness`), what
/// the kernel has taken for it, what ended processes of its user have left, since what they handed on is held by some of his; and
/// its adjustment. What root's have left counts for nobody. None: it is not to be killed, or has no memory.
pub fn badness(process: &Process) -> Option<i64> {
    let adjustment = process.oom_adjustment.get();
    if process.is_init() || adjustment == Adjustment::NEVER {
        return None;
    }
    let usage = process.mm()?.usage();
    let pages = [usage.rss_anon, usage.rss_file, usage.rss_shmem, usage.page_tables];
    let pages = pages.into_iter().fold(process.account.pages(), u64::saturating_add) as i64;
    let uid = process.uid();
    let pages = if uid == 0 { pages } else { pages.saturating_add(mm::frames::left_by(uid)) };
    Some(pages.saturating_add(i64::from(adjustment) * total_pages() / 1000))
}

/// What /proc/PID/oom_score tells: 0 for who is not to be killed.
pub fn score(process: &Process) -> i64 {
    let share = |pages: i64| pages.saturating_mul(1000) / total_pages();
    badness(process).map_or(0, |pages| ((1000 + share(pages)) * 2 / 3).max(0))
}

fn total_pages() -> i64 {
    mm::frames::stats().total.max(1) as i64
}

/// For a page that is not worth a process: drops others of its kind, else gives memory some time to become
/// free. The caller may try again.
pub fn wait_for_memory() {
    if space::drop_pages() == 0 {
        wait_for_victims();
    }
}

/// Frees memory by dropping what may be dropped, else by killing the process with the greatest badness;
/// returns when the caller may try again (or has been killed itself).
pub fn out_of_memory() {
    if mm::has_user_frames() {
        // What others have given back meanwhile, or a refusal that was injected: one more try, as Linux makes.
        return;
    }
    if mm::gather_free_frames() > ENOUGH || space::drop_pages() > 0 {
        return;
    }
    panic_if_wanted();
    if !kill_caller() && !kill_worst() {
        panic!("System is deadlocked on memory: no process to kill");
    }
    wait_for_victims();
}

/// For a call of an administrator's that found no memory: frees some as [`out_of_memory`] does. False if there is nothing to free,
/// or if memory is not what was missing.
pub fn make_room() -> bool {
    if !mm::is_short() || signal::killed(&current()) {
        return false;
    }
    if mm::gather_free_frames() > ENOUGH || space::drop_pages() > 0 {
        return true;
    }
    panic_if_wanted();
    let found = kill_worst();
    if found {
        wait_for_victims();
    }
    found
}

/// On the way to user mode, when a task has used some of the reserve that is kept for the trusted and little is left: it must
/// not be used up.
pub fn relieve() {
    if !mm::is_reserve_in_use() {
        return;
    }
    if mm::gather_free_frames() <= ENOUGH && space::drop_pages() == 0 {
        panic_if_wanted();
        if !kill_caller() {
            kill_worst();
        }
    }
    wait_for_victims();
}

/// Kills the process that is worst though memory may be left: /proc/sysrq-trigger. False if there is
/// none.
pub fn kill_on_demand() -> bool {
    kill_worst()
}

/// Gives killed processes time to free their memory.
fn wait_for_victims() {
    if !signal::killed(&current()) {
        schedule_timeout(GRACE);
    }
}

/// Called before somebody is killed since memory is out: an administrator may want another machine to take over instead.
fn panic_if_wanted() {
    match PANIC_ON_OOM.get() {
        0 => {}
        2 => panic!("Out of memory: compulsory panic_on_oom is enabled"),
        _ => panic!("Out of memory: system-wide panic_on_oom is enabled"),
    }
}

/// False if there is nobody to kill. Who comes while another CPU chooses leaves it at that: two would choose the same one.
fn kill_worst() -> bool {
    static SOMEBODY_CHOOSES: AtomicBool = AtomicBool::new(false);
    // Relaxed: who comes second looks at nothing of the first's.
    if SOMEBODY_CHOOSES.swap(true, Ordering::Relaxed) {
        return true;
    }
    let found = choose_and_kill();
    SOMEBODY_CHOOSES.store(false, Ordering::Relaxed);
    found
}

fn choose_and_kill() -> bool {
    let (dying, told) = (core::cell::Cell::new(false), core::cell::Cell::new(false));
    let mut worst: Option<(i64, Arc<Process>)> = None;
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
        if process.signals.pending().contains(Signal::SIGKILL) {
            // It may wait for what only another process can release: the next one is killed, if there is one.
            told.set(true);
            return;
        }
        let Some(points) = badness(process) else { return };
        if worst.as_ref().is_none_or(|(most, _)| points > *most) {
            worst = Some((points, process.clone()));
        }
    });
    if dying.get() {
        return true;
    }
    let Some((_, victim)) = worst else { return told.get() };
    kill(&victim);
    true
}

/// Kills the running process, if `vm.oom_kill_allocating_task` says so and it may be killed.
fn kill_caller() -> bool {
    let task = current();
    let process = task.process();
    let may = KILL_ALLOCATING_TASK.get() != 0 && badness(process).is_some();
    if may {
        kill(process);
    }
    may
}

fn kill(victim: &Arc<Process>) {
    tell(victim);
    let info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
    if let Err(error) = signal::send_to_process(victim, Signal::SIGKILL, info) {
        unreachable!("SIGKILL refused: {error}");
    }
}

/// Linux's line for the log.
fn tell(victim: &Process) {
    let usage = victim.mm().map(|mm| mm.usage()).unwrap_or_default();
    let kib = |pages: u64| pages * (base::PAGE_SIZE as u64 / 1024);
    log::error!(
        "Out of memory: Killed process {} ({}) total-vm:{}kB, anon-rss:{}kB, file-rss:{}kB, shmem-rss:{}kB, UID:{} pgtables:{}kB oom_score_adj:{} kernel:{}kB",
        victim.pid(),
        victim.name().escape_ascii(),
        kib(usage.size),
        kib(usage.rss_anon),
        kib(usage.rss_file),
        kib(usage.rss_shmem),
        victim.uid(),
        kib(usage.page_tables),
        victim.oom_adjustment.get(),
        kib(victim.account.pages())
    );
}
