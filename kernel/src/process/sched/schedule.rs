//! The scheduler: who runs on each CPU.
//!
//! Fair sharing by weighted run time with a fixed slice, real-time ranks above it. Tickless: the slice timer is armed
//! only while another task waits. A task's state changes under the run queue lock of its CPU; waking works in interrupt
//! handlers. Kernel code is not preempted: a switch happens in [`schedule`] only, called by sleeping, by
//! [`cond_resched`], and on the way to user mode when [`crate::process::task::work::RESCHED`] is set. Which CPU a task
//! runs on is decided in `place`.
//!
//! Owns the switch and its count. Never switches with a spinlock held (debug builds panic). Locks: the run queue's,
//! released before the switch.

use super::entity::{Policy, SLICE_NS, State, policy};
use super::place::arm_slice;
use super::settings::rr_slice_ns;
use super::{place, queue};

use super::queue::{Locked, Running};
use crate::base::{cpu, percpu};
use crate::process::perf;
use crate::process::task::current::TASKS;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::sync::Wake;
use crate::time::{self, Nanos, TimerTarget};
use crate::trace::{self, Event, Point};
use alea_runq::{Place, Standing};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// How long a task may run while others wait, in nanoseconds; 0 is for ever.
pub fn slice_nanos(task: &Task) -> u64 {
    match task.sched.policy().policy {
        policy::FIFO => 0,
        policy::RR => rr_slice_ns(),
        _ => task.sched.slice(),
    }
}

/// Lets another task run if one should.
#[inline]
pub fn cond_resched() {
    if crate::process::task::current::current().has_work(work::RESCHED) {
        schedule();
    }
}

/// Lets all other runnable tasks of the same rank go first.
pub fn yield_now() {
    let task = crate::process::task::current::current();
    cpu::without_interrupts(|| {
        let queue = queue::lock(percpu::cpu_id());
        // Relaxed: under the queue's lock. As if it had run its slice; real-time tasks go to the end of their line.
        let own = task.sched.vruntime.load(Ordering::Relaxed);
        if queue.len() != 0 {
            let later = own.saturating_add(SLICE_NS / 2);
            task.sched.vruntime.store(later, Ordering::Relaxed);
        }
        drop(queue);
        switch_to_next(Turn::Yielded);
    });
}

/// Runs whoever should run now; returns when the calling task runs again.
pub fn schedule() {
    cpu::without_interrupts(|| switch_to_next(Turn::Kept));
}

/// Whether the running task gives up its turn among its equals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Kept,
    Yielded,
}

/// Ends the running task: it never runs again.
pub(in crate::process) fn die() -> ! {
    cpu::irq_disable();
    crate::process::task::current::current().sched.set_state(State::Dead);
    switch_to_next(Turn::Kept);
    unreachable!("a dead task runs")
}

fn switch_to_next(turn: Turn) {
    let prev = crate::process::task::current::current();
    let now = time::since_boot_ns();
    let cpu = percpu::cpu_id();
    let mut queue = queue::lock_irqs_off(cpu);
    if prev.has_work(work::RESCHED) {
        prev.clear_work(work::RESCHED);
    }
    let ran = prev.times.look(now);
    let vruntime = &prev.sched.vruntime;
    // Relaxed: under the queue's lock.
    vruntime.store(
        vruntime.load(Ordering::Relaxed).saturating_add(prev.sched.weighted(ran)),
        Ordering::Relaxed,
    );
    let state = prev.sched.state();
    let was_idle = queue.running.is_idle;
    queue.has_run(&prev, was_idle, ran, now);
    let rotates = prev.sched.use_slice(ran) | (turn == Turn::Yielded);
    let goes_on = may_go_on(&mut queue, &prev, cpu, state, rotates, now);
    let (mut queue, next) = match goes_on && !was_idle {
        true => (queue, None),
        false => pick(queue, cpu, now),
    };
    let next = match next {
        None if !goes_on => Some(idle_of(&queue)),
        next => next,
    };
    let waiting = queue.len();
    let is_shared = percpu::cpus_online() > 1;
    let wanted = if is_shared && waiting != 0 { queue.wanted_by_next() } else { 0 };
    let runs = next.as_deref().unwrap_or(&prev);
    debug_assert_eq!(runs.sched.cpu(), cpu, "a task runs on a CPU that it does not belong to");
    let is_idle = queue.idle.as_ref().is_some_and(|idle| core::ptr::eq(&**idle, runs));
    let since = if next.is_none() { queue.running.since } else { now };
    queue.running = Running::new(runs, is_idle, since);
    let look = queue.next_look(runs, now);
    drop(queue);
    arm_slice(look);
    if is_shared {
        place::note_idle(cpu, was_idle, is_idle);
        place::offer(wanted);
    }
    let Some(next) = next else { return };
    if core::ptr::eq(&*next, &*prev) {
        return;
    }
    count(&prev, &next, state);
    if was_idle {
        time::start_samples();
    }
    prev.leave_cpu();
    prev.times.pause(now);
    next.times.resume(now);
    next.rseq.switched_in(&next, cpu);
    next.activate_mm();
    next.guard_predictors();
    after_switch(TASKS.switch(next));
}

/// The running task, which is in `state`, makes way for another.
#[inline(always)]
fn count(prev: &Task, next: &Task, state: State) {
    let waits = state != State::Runnable;
    prev.times.count_switch(waits);
    // Relaxed: a statistic.
    SWITCHES.fetch_add(1, Ordering::Relaxed);
    if trace::wanted(Point::Switch) {
        told(prev, next, state);
    }
}

#[cold]
#[inline(never)]
fn told(prev: &Task, next: &Task, state: State) {
    let waits = state != State::Runnable;
    let event = || Event::Switch { next: next.tid(), next_mark: next.watched.mark(), waits };
    trace::at(Point::Switch, event);
    perf::switched(prev, next, shown_state(prev, state));
}

/// What Linux's tracepoint of switches says of the task that makes way.
fn shown_state(prev: &Task, state: State) -> i64 {
    match state {
        // Never preempted in the kernel, which Linux tells apart.
        State::Runnable => 0,
        State::Interruptible => 1,
        State::Uninterruptible | State::Killable => 2,
        // A process is a zombie then; a thread that nobody waits for is dead.
        State::Dead if prev.is_leader() => 0x20,
        State::Dead => 0x10,
    }
}

/// Whether the task that has run may go on. If not it is where it belongs from now on: in the queue, with those that wait
/// for a wake-up, or on the way to another CPU.
#[inline(always)]
fn may_go_on(
    queue: &mut Locked,
    prev: &Task,
    cpu: usize,
    state: State,
    rotates: bool,
    now: u64,
) -> bool {
    match state {
        State::Runnable if queue.running.is_idle => true,
        State::Runnable if prev.sched.affinity() >> cpu & 1 == 0 => {
            prev.sched.set_homeless();
            false
        }
        State::Runnable => {
            let standing = prev.sched.standing();
            let goes_on = !queue.displaces(standing, rotates, now);
            if !goes_on {
                let place = if rotates { Place::Tail } else { Place::Head };
                queue.push_as(TASKS.current_arc(), standing, place);
            }
            goes_on
        }
        State::Dead => false,
        _ => {
            drop(prev.sched.parked.put(TASKS.current_arc()));
            false
        }
    }
}

/// Ends a switch on the stack of the new task: the one that was switched away from may go, or go elsewhere.
/// The first thing that a new task does. Interrupts are off.
#[inline(always)]
pub(super) fn after_switch(previous: Option<Arc<Task>>) {
    if let Some(previous) = previous {
        if trace::wanted(Point::Switch) {
            perf::has_switched(&previous);
        }
        if previous.sched.take_homeless() {
            place::rehome(previous);
        }
    }
}

/// The first code of a new task ends the switch to it.
pub(in crate::process) fn finish_switch() {
    after_switch(TASKS.finish_switch());
}

/// Takes the task that should run next on `cpu`. Those that may not run there (any more) are sent away.
#[inline]
fn pick(mut queue: Locked, cpu: usize, now: u64) -> (Locked, Option<Arc<Task>>) {
    loop {
        match queue.pop(now) {
            Some(next) if next.sched.affinity() >> cpu & 1 == 0 => {
                queue = place::send_away(queue, cpu, next);
            }
            next => return (queue, next),
        }
    }
}

fn idle_of(queue: &Locked) -> Arc<Task> {
    match &queue.idle {
        Some(idle) => idle.clone(),
        None => panic!("a CPU without an idle task has nothing to run"),
    }
}

/// Begins the running task's slice, now that somebody waits.
pub(in crate::process) fn begin_slice() {
    cpu::without_interrupts(|| {
        let now = time::since_boot_ns();
        let look =
            queue::lock(percpu::cpu_id()).next_look(&crate::process::task::current::current(), now);
        arm_slice(look);
    });
}

/// Gives a CPU its idle task, before it starts.
pub(in crate::process) fn prepare_cpu(cpu: usize, idle: Arc<Task>) -> abi::Result<()> {
    place::init();
    queue::prepare(cpu, idle)
}

/// The idle task of a CPU.
pub(in crate::process) fn idle_task(cpu: usize) -> Arc<Task> {
    idle_of(&queue::lock(cpu))
}

/// The slice timer fired: interrupts are off.
pub fn slice_ended() {
    if TASKS.is_active() {
        crate::process::task::current::current().set_work(work::RESCHED);
    }
}

/// How long a CPU has been idle since boot.
pub fn idle_ns(cpu: usize) -> u64 {
    let idle = queue::lock(cpu).idle.clone();
    idle.map_or(0, |idle| idle.times.cpu_ns())
}

/// Context switches since boot.
pub fn switches() -> u64 {
    // Relaxed: a statistic.
    SWITCHES.load(Ordering::Relaxed)
}

/// Time that ended threads and running ones spent in the kernel.
pub fn system_ns() -> u64 {
    crate::process::timers::times::system_total()
}

/// Context switches, for /proc/stat.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Lends a task the rank of one that waits for it, or takes it back; true if that changes its rank.
pub(in crate::process) fn lend_rank(task: &Task, rank: Option<u32>) -> bool {
    let place = task.sched.lend(rank);
    if let Some(place) = place {
        place::rank_changed(task, place);
    }
    place.is_some()
}

/// Sets a task's policy and priority: it runs at once if it is the most urgent now, or makes way.
pub fn set_policy(task: &Task, policy: Policy) {
    let place = task.sched.set_policy(policy);
    place::policy_changed(task, place);
}

/// The running task was looked at by the timer: in user mode, or in the kernel. Interrupts are off. Whether to
/// look again.
pub fn sampled(from_user: bool) -> bool {
    if !TASKS.is_active() {
        return false;
    }
    let task = crate::process::task::current::current();
    // The idle task's time is nobody's.
    let counts = task.tid() != 0;
    if counts {
        task.times.sample(from_user);
        runs_on(&task);
        place::balance();
    }
    counts
}

/// The queue learns how far the running task has come, which may run for hours before it is switched away from.
fn runs_on(task: &Task) {
    let now = time::since_boot_ns();
    let mut queue = queue::lock_irqs_off(percpu::cpu_id());
    let standing = task.sched.standing();
    let since = task.sched.weighted(task.times.since_look(now));
    let vruntime = standing.vruntime.saturating_add(since);
    queue.runs_on(task, Standing { vruntime, ..standing });
}

/// The CPUs that a task may run on have changed; the running task is on one of them on return.
pub fn affinity_changed(task: &Task) {
    place::affinity_changed(task);
    cond_resched();
}

impl Task {
    /// Makes the task runnable if its state is one of `states`.
    fn wake_if(&self, matches: impl Fn(State) -> bool) -> bool {
        if !matches(self.sched.state()) {
            return false;
        }
        cpu::without_interrupts(|| {
            let (cpu, queue) = queue::lock_of(self);
            let woken = matches(self.sched.state());
            if woken {
                self.sched.set_state(State::Runnable);
                // Without a parked reference the task has not left its CPU yet, and will not.
                if let Some(task) = self.sched.parked.take() {
                    place::woken(task, cpu, queue);
                }
            }
            woken
        })
    }

    /// Wakes it from any sleep.
    #[inline]
    pub fn wake_up(&self) -> bool {
        self.wake_if(|state| !matches!(state, State::Runnable | State::Dead))
    }

    /// Wakes it from an interruptible sleep: a signal waits.
    pub fn wake_interruptible(&self) -> bool {
        self.wake_if(|state| state == State::Interruptible)
    }

    /// Wakes it from a sleep that a fatal signal ends.
    pub fn wake_killable(&self) -> bool {
        self.wake_if(|state| matches!(state, State::Interruptible | State::Killable))
    }
}

/// Sleeps for so many nanoseconds, or until a signal arrives.
pub fn schedule_timeout(nanos: u64) {
    let deadline = time::since_boot_ns().saturating_add(nanos);
    let never = crate::sync::WaitQueue::new();
    // Both ways that it can end are what the caller wants.
    let _ended = never.wait_deadline(Some(deadline), || None::<()>);
}

impl TimerTarget for Task {
    fn expired(self: Arc<Self>, _now: Nanos) {
        self.wake_up();
    }

    fn is_kernels_own(&self) -> bool {
        self.is_kernel_thread()
    }
}

impl Wake for Task {
    fn wake(&self, _events: u32) -> bool {
        self.wake_up()
    }
}
