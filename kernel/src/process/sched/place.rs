//! On which CPU a task runs: placement of woken and new tasks, idle CPUs that take work, and the interrupt
//! that tells another CPU to look.
//!
//! A woken task goes to the CPU where it last ran if that is idle, else to an idle one, else it waits where it
//! was. A CPU that becomes idle looks through the other queues. Between the two no task is overlooked: a CPU
//! marks itself idle before it looks for waiting tasks, a waiting task is queued before idle CPUs are looked
//! for, and a full fence stands between the two steps on both sides.
//!
//! A task that another CPU may run is never on a CPU: while the switch away from it goes on, it stays with the
//! CPU that switches. Owns the mask of idle CPUs and the requests to each CPU. Never holds two queues.
//! Locks: those of `queue`.

use super::queue::{self, Locked, Taken};
use crate::arch::{irq, smp};
use crate::base::cpu;
use crate::base::percpu::{MAX_CPUS, cpu_id, cpus_online, online_mask};
use crate::process::perf;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::time::{self, Nanos};
use crate::trace::{self, Event, Point};
use alea_runq::{IdleCpus, Place, Preempts};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// CPUs that run their idle task and were not given anything since they looked for work.
static IDLE: IdleCpus = IdleCpus::new();

/// What each CPU was asked for and has not looked at: flags of `work`, `LOOK` or `WATCH`.
static ASKED: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];

/// Only to make the CPU pass by its running task's work flags.
const LOOK: u32 = 1 << 30;
/// Only to see whether the CPU takes the interrupt. Nobody else asks for it, so that it is never found set because it
/// was asked for just now.
const WATCH: u32 = 1 << 29;

/// Connects the interrupt.
pub(super) fn init() {
    irq::set_reschedule(asked);
}

/// The interrupt: does what was asked for.
fn asked() {
    // AcqRel: pairs with the one in `ask`.
    let asked = ASKED[cpu_id()].swap(0, Ordering::AcqRel) & !(LOOK | WATCH);
    if asked != 0 && crate::process::task::current::TASKS.is_active() {
        crate::process::task::current::current().set_work(asked);
    }
}

/// Sets work flags of whatever runs on `cpu`.
#[inline(always)]
fn ask(cpu: usize, flags: u32) {
    if flags != 0 {
        ask_for(cpu, flags);
    }
}

fn ask_for(cpu: usize, flags: u32) {
    if cpu == cpu_id() {
        crate::process::task::current::current().set_work(flags & !(LOOK | WATCH));
    } else if ASKED[cpu].fetch_or(flags, Ordering::AcqRel) == 0 {
        // AcqRel above: pairs with `asked`. What was not zero is an interrupt that is under way.
        smp::send(cpu, irq::RESCHEDULE_VECTOR);
    }
}

/// The work flags that the running task of a CPU gets when a task was added to its queue: to make way, or to begin
/// its slice.
fn preemption_flags(queue: &Locked, cpu: usize, preempt: bool) -> u32 {
    if queue.running.is_idle {
        return work::RESCHED;
    }
    let preempts = if preempt { queue.preempts(time::since_boot_ns) } else { Preempts::Never };
    let by = match preempts {
        Preempts::Now => return work::RESCHED,
        Preempts::At(when) => when,
        Preempts::Never if queue.len() == 1 || queue.running.is_urgent() => ANY_TIME,
        Preempts::Never => return 0,
    };
    // The slice timer cannot be armed from here: the running task does it on its way out of the kernel.
    if time::slice_ends_by(cpu, by) { 0 } else { work::SLICE }
}

/// A slice of any length will do.
const ANY_TIME: u64 = u64::MAX - 1;

/// Queues a task that has just been woken; it belongs to `cpu`, whose queue is locked. Interrupts are off.
#[inline]
pub(super) fn woken(task: Arc<Task>, cpu: usize, mut queue: Locked) {
    if cpus_online() > 1 {
        let target = choose(&task, cpu);
        if target != cpu {
            told(&task, target, false);
            return transfer(task, queue, target);
        }
    }
    told(&task, cpu, false);
    queue.push_woken(task);
    let flags = preemption_flags(&queue, cpu, true);
    drop(queue);
    ask(cpu, flags);
}

/// A task is about to be queued for `cpu`.
#[inline]
fn told(task: &Task, cpu: usize, is_new: bool) {
    if trace::wanted(Point::Wakeup) {
        tell(task, cpu, is_new);
    }
}

#[cold]
#[inline(never)]
fn tell(task: &Task, cpu: usize, is_new: bool) {
    if !is_new {
        let event = || Event::Wakeup { tid: task.tid(), mark: task.watched.mark(), cpu };
        trace::at(Point::Wakeup, event);
    }
    perf::woken(task, cpu, is_new);
}

/// Moves a task, which nobody else has, from the CPU whose queue is locked to another one's.
#[cold]
fn transfer(task: Arc<Task>, from: Locked, target: usize) {
    let lead = from.lead_of(&task);
    task.sched.set_cpu(target);
    drop(from);
    enqueue(task, target, lead);
}

fn enqueue(task: Arc<Task>, target: usize, lead: u64) {
    let mut queue = queue::lock(target);
    queue.adopt(&task, lead);
    queue.push_woken(task);
    let flags = preemption_flags(&queue, target, true);
    drop(queue);
    ask(target, flags);
}

/// Makes a new task runnable. One that its maker waits for stays here.
pub(in crate::process) fn start(task: Arc<Task>, stays: bool) {
    cpu::without_interrupts(|| start_here(task, stays));
}

fn start_here(task: Arc<Task>, stays: bool) {
    let here = cpu_id();
    // Its maker may have been moved since it was made.
    task.sched.set_cpu(here);
    let mut queue = queue::lock(here);
    if cpus_online() > 1 {
        let target = if stays { fallback(&task, here) } else { choose_new(&task, here) };
        if target != here {
            told(&task, target, true);
            return transfer(task, queue, target);
        }
    }
    told(&task, here, true);
    queue.push_woken(task);
    let flags = preemption_flags(&queue, here, false);
    if flags == work::SLICE {
        let look =
            queue.next_look(&crate::process::task::current::current(), time::since_boot_ns());
        drop(queue);
        arm_slice(look);
    } else {
        drop(queue);
        ask(here, flags);
    }
}

/// The CPUs that a task may run on now.
fn allowed(task: &Task) -> u64 {
    let online = online_mask();
    match task.sched.affinity() & online {
        0 => online,
        some => some,
    }
}

/// A CPU for a woken task that belongs to `last`.
fn choose(task: &Task, last: usize) -> usize {
    // Nobody else may run it before the switch away from it is over.
    if task.is_on_cpu() {
        return last;
    }
    choose_new(task, last)
}

fn choose_new(task: &Task, last: usize) -> usize {
    // A hint; claiming decides.
    let idle = IDLE.hint() & allowed(task);
    if idle == 0 {
        return fallback(task, last);
    }
    if idle >> last & 1 != 0 && IDLE.claim(last) {
        return last;
    }
    // The nearest above, then from the lowest on.
    let above = idle & u64::MAX.wrapping_shl(last as u32);
    for candidates in [above, idle] {
        let mut left = candidates;
        while left != 0 {
            let cpu = left.trailing_zeros() as usize;
            left &= left - 1;
            if IDLE.claim(cpu) {
                return cpu;
            }
        }
    }
    fallback(task, last)
}

/// Where a task goes when no CPU is idle: where it was, or to the shortest queue that it may be in.
fn fallback(task: &Task, last: usize) -> usize {
    let allowed = allowed(task);
    if allowed >> last & 1 != 0 {
        return last;
    }
    (0..cpus_online())
        .filter(|cpu| allowed >> cpu & 1 != 0)
        .min_by_key(|&cpu| queue::len_of(cpu))
        .unwrap_or(last)
}

/// Finds a CPU for a runnable task that may not run where it ran; it is on no CPU and in no queue.
#[cold]
#[inline(never)]
pub(super) fn rehome(task: Arc<Task>) {
    let (cpu, queue) = queue::lock_of(&task);
    let target = choose_new(&task, cpu);
    transfer(task, queue, target);
}

/// Finds a CPU for a task that was just taken out of the queue of `cpu`, where it may not run. The queue is
/// unlocked for the while.
#[cold]
pub(super) fn send_away(queue: Locked, cpu: usize, task: Arc<Task>) -> Locked {
    let target = choose_new(&task, cpu);
    transfer(task, queue, target);
    queue::lock(cpu)
}

/// Keeps the mask of idle CPUs. Interrupts are off.
#[inline]
pub(super) fn note_idle(cpu: usize, was_idle: bool, is_idle: bool) {
    if was_idle == is_idle {
        return;
    }
    if is_idle {
        IDLE.mark(cpu);
    } else {
        IDLE.claim(cpu);
    }
}

/// Tasks wait here while one of these CPUs may be idle: interrupts one.
#[inline]
pub(super) fn offer(wanted: u64) {
    if wanted != 0 {
        offer_to_idle(wanted);
    }
}

#[cold]
fn offer_to_idle(wanted: u64) {
    let idle = IDLE.after_queueing() & wanted & online_mask();
    if idle != 0 {
        let cpu = idle.trailing_zeros() as usize;
        if IDLE.claim(cpu) {
            ask(cpu, work::RESCHED);
        }
    }
}

/// The idle CPU looks for a task that waits elsewhere: true if it has one now. Interrupts are off. If not, it is
/// marked as idle.
pub(super) fn steal(here: usize) -> bool {
    let cpus = cpus_online();
    if cpus == 1 {
        return false;
    }
    IDLE.mark_and_look(here);
    loop {
        let mut soon = false;
        for step in 1..cpus.min(MAX_CPUS) {
            let victim = (here + step) % cpus;
            if queue::len_of(victim) == 0 {
                continue;
            }
            match take_from(victim, here) {
                (Taken::Task(task), lead) => {
                    let mut queue = queue::lock(here);
                    queue.adopt(&task, lead);
                    queue.push(task, Place::Tail);
                    return true;
                }
                (Taken::Soon, _) => soon = true,
                (Taken::Nothing, _) => {}
            }
        }
        if !soon {
            return false;
        }
        // It leaves its CPU's stack within a few instructions.
        cpu::relax();
    }
}

crate::per_cpu! {
    /// Looks since this CPU last compared its queue with others. Relaxed: its own.
    static LOOKS: AtomicU32 = AtomicU32::new(0);
}

/// How many looks of the timer apart.
const BALANCE_EVERY: u32 = 8;

/// A busy CPU takes a task from the longest queue, if that is longer than its own by two: by one, it would
/// only be the other's turn. Called by the timer, interrupts off.
#[inline]
pub(super) fn balance() {
    if cpus_online() == 1 {
        return;
    }
    let looks = LOOKS.with(|looks| looks.fetch_add(1, Ordering::Relaxed));
    if looks.is_multiple_of(BALANCE_EVERY) {
        balance_with_longest();
    }
}

#[cold]
fn balance_with_longest() {
    let here = cpu_id();
    let others = (0..cpus_online()).filter(|&cpu| cpu != here);
    let Some(longest) = others.max_by_key(|&cpu| queue::len_of(cpu)) else { return };
    if queue::len_of(longest) < queue::len_of(here).saturating_add(2) {
        return;
    }
    if let (Taken::Task(task), lead) = take_from(longest, here) {
        let mut queue = queue::lock(here);
        queue.adopt(&task, lead);
        queue.push(task, Place::Tail);
        let flags = preemption_flags(&queue, here, false);
        drop(queue);
        ask(here, flags);
    }
}

/// Takes a waiting task from another CPU, and how far its run time is ahead there.
fn take_from(victim: usize, here: usize) -> (Taken, u64) {
    let mut queue = queue::lock(victim);
    if queue.running.is_idle && queue.len() == 1 {
        // It was just woken there.
        return (Taken::Nothing, 0);
    }
    let taken = queue.take_for(here);
    let mut lead = 0;
    if let Taken::Task(task) = &taken {
        lead = queue.lead_of(task);
        task.sched.set_cpu(here);
    }
    (taken, lead)
}

/// Makes a task that runs on another CPU pass by its work flags, which were set before.
pub(in crate::process) fn kick(task: &Task) {
    if cpus_online() == 1 {
        return;
    }
    cpu::without_interrupts(|| {
        let (cpu, queue) = queue::lock_of(task);
        // If it begins to run later, the lock lets its CPU see the flags.
        let runs = queue.running.is(task);
        drop(queue);
        if runs && cpu != cpu_id() {
            ask(cpu, LOOK);
        }
    });
}

/// The CPUs that a task may run on have changed: it leaves one where it may not be.
pub(super) fn affinity_changed(task: &Task) {
    cpu::without_interrupts(|| {
        let (cpu, queue) = queue::lock_of(task);
        let leaves = queue.running.is(task) && task.sched.affinity() >> cpu & 1 == 0;
        drop(queue);
        // One that waits or sleeps is looked at when its turn comes.
        if leaves {
            ask(cpu, work::RESCHED);
        }
    });
}

/// A task's rank has changed: it may run sooner, or make way.
#[cold]
pub(super) fn rank_changed(task: &Task, place: Place) {
    cpu::without_interrupts(|| {
        let (cpu, mut queue) = queue::lock_of(task);
        queue.place_again(task, place);
        let flags = flags_of_waiting(&queue, cpu);
        drop(queue);
        ask(cpu, flags);
    });
}

/// As `preemption_flags`, when a task in the queue, if there is any, has another rank. One that waited for its equals may be a
/// normal one now, which real-time tasks leave a share.
fn flags_of_waiting(queue: &Locked, cpu: usize) -> u32 {
    if queue.len() == 0 { 0 } else { preemption_flags(queue, cpu, true) }
}

/// A task's policy or priority was set: it takes the place that it has now, if its rank is another one, and if it runs
/// while others wait, its CPU looks anew who should, and when its slice ends.
#[cold]
pub(super) fn policy_changed(task: &Task, place: Option<Place>) {
    cpu::without_interrupts(|| {
        let (cpu, mut queue) = queue::lock_of(task);
        if let Some(place) = place {
            queue.place_again(task, place);
        }
        let makes_way = queue.len() != 0 && queue.running.is(task);
        let flags = if makes_way { work::RESCHED } else { flags_of_waiting(&queue, cpu) };
        drop(queue);
        ask(cpu, flags);
    });
}

/// Asks another CPU, unless it idles, to take an interrupt.
pub fn ask_to_look(cpu: usize) -> bool {
    let idle = IDLE.hint() >> cpu & 1 != 0;
    if !idle {
        ask(cpu, WATCH);
    }
    !idle
}

/// Whether it has.
pub fn has_looked(cpu: usize) -> bool {
    // Relaxed: a flag of its own.
    ASKED[cpu].load(Ordering::Relaxed) & WATCH == 0
}

/// The slice timer runs only while it has somebody to run for.
#[inline]
pub(super) fn arm_slice(look: Option<u64>) {
    if let Some(look) = look {
        time::set_slice_end(Nanos(look));
    }
}
