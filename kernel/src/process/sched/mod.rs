//! The scheduler: who runs on each CPU.
//!
//! Fair sharing by weighted run time with a fixed slice, real-time ranks above it. Tickless: the slice timer
//! is armed only while another task waits. A task's state changes under the run queue lock of its CPU;
//! waking works in interrupt handlers. Kernel code is not preempted: a switch happens in [`schedule`] only,
//! called by sleeping, by [`cond_resched`], and on the way to user mode when [`work::RESCHED`] is set.

mod entity;
mod idle;
mod load;
mod queue;
mod sleep;

pub use entity::{Entity, Policy, State, policy};
pub(super) use idle::run_idle;
pub use load::{load_average, runnable};
pub(super) use queue::reserve;
pub use sleep::{Sleeper, killable_wait};

use super::{TASKS, Task, work};
use crate::arch::{cpu, percpu};
use crate::sync::Wake;
use crate::time::{self, Nanos, TimerTarget};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// How long a task runs while others wait.
const SLICE_NS: u64 = 4_000_000;
/// How far behind the running task a woken one must be to interrupt it.
const WAKEUP_LEAD_NS: u64 = 1_000_000;

/// How long a task may run while others wait, in nanoseconds.
pub fn slice_nanos(_task: &Task) -> u64 {
    SLICE_NS
}

/// Lets another task run if one should.
#[inline]
pub fn cond_resched() {
    if super::current().has_work(work::RESCHED) {
        schedule();
    }
}

/// Lets all other runnable tasks of the same rank go first.
pub fn yield_now() {
    let irq = cpu::irq_save();
    let task = super::current();
    {
        let queue = queue::of_cpu(percpu::cpu_id()).lock();
        // Relaxed: under the queue's lock. As if it had run its slice.
        let own = task.sched.vruntime.load(Ordering::Relaxed);
        if queue.len() != 0 {
            let later = own.saturating_add(SLICE_NS / 2);
            task.sched.vruntime.store(later, Ordering::Relaxed);
        }
    }
    cpu::irq_restore(irq);
    schedule();
}

/// Runs whoever should run now; returns when the calling task runs again.
pub fn schedule() {
    let irq = cpu::irq_save();
    switch_to_next();
    cpu::irq_restore(irq);
}

/// Ends the running task: it never runs again.
pub(super) fn die() -> ! {
    cpu::irq_disable();
    super::current().sched.set_state(State::Dead);
    switch_to_next();
    unreachable!("a dead task runs")
}

fn switch_to_next() {
    let prev = super::current();
    let now = time::since_boot_ns();
    let cpu = percpu::cpu_id();
    let mut queue = queue::of_cpu(cpu).lock();
    if prev.has_work(work::RESCHED) {
        prev.clear_work(work::RESCHED);
    }
    let ran = prev.times.pause(now);
    let vruntime = &prev.sched.vruntime;
    // Relaxed: under the queue's lock.
    vruntime.store(
        vruntime.load(Ordering::Relaxed).saturating_add(prev.sched.weighted(ran)),
        Ordering::Relaxed,
    );
    let state = prev.sched.state();
    let is_idle = queue.idle.as_ref().is_some_and(|idle| core::ptr::eq(&**idle, prev));
    let next = match state {
        State::Runnable if is_idle => queue.pop(),
        State::Runnable if !queue.beats(prev, 0) => None,
        State::Runnable => {
            queue.push(TASKS.current_arc());
            queue.pop()
        }
        State::Dead => Some(next_or_idle(&mut queue)),
        _ => {
            drop(prev.sched.parked.put(TASKS.current_arc()));
            Some(next_or_idle(&mut queue))
        }
    };
    let waiting = queue.len();
    drop(queue);
    let runs = next.as_deref().unwrap_or(prev);
    arm_slice(runs, waiting, now);
    let Some(next) = next else { return };
    if core::ptr::eq(&*next, prev) {
        return;
    }
    prev.times.count_switch(state != State::Runnable);
    // Relaxed: a statistic.
    SWITCHES.fetch_add(1, Ordering::Relaxed);
    prev.sched.set_running(false);
    next.sched.set_running(true);
    next.times.resume(now);
    next.activate_mm();
    TASKS.switch(next);
}

fn next_or_idle(queue: &mut queue::RunQueue) -> Arc<Task> {
    queue.pop().unwrap_or_else(|| match &queue.idle {
        Some(idle) => idle.clone(),
        None => panic!("a CPU without an idle task has nothing to run"),
    })
}

/// The slice timer runs only while it has somebody to run for.
fn arm_slice(task: &Task, waiting: usize, now: u64) {
    if waiting != 0 && task.sched.has_slice() {
        time::set_slice_end(Some(Nanos(now.saturating_add(SLICE_NS))));
    }
}

/// Begins the running task's slice, now that somebody waits.
pub(super) fn begin_slice() {
    let irq = cpu::irq_save();
    let waiting = queue::of_cpu(percpu::cpu_id()).lock().len();
    arm_slice(super::current(), waiting, time::since_boot_ns());
    cpu::irq_restore(irq);
}

/// Becomes the CPU's idle task.
pub(super) fn set_idle(cpu: usize, task: Arc<Task>) {
    queue::of_cpu(cpu).lock().idle = Some(task);
}

/// The slice timer fired: interrupts are off.
pub fn slice_ended() {
    if TASKS.is_active() {
        super::current().set_work(work::RESCHED);
    }
}

/// How long a CPU has been idle since boot.
pub fn idle_ns(cpu: usize) -> u64 {
    let idle = queue::of_cpu(cpu).lock().idle.clone();
    idle.map_or(0, |idle| idle.times.cpu_ns(&idle))
}

/// Context switches since boot.
pub fn switches() -> u64 {
    // Relaxed: a statistic.
    SWITCHES.load(Ordering::Relaxed)
}

/// Time that ended threads and running ones spent in the kernel.
pub fn system_ns() -> u64 {
    super::times::system_total()
}

/// Context switches, for /proc/stat.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Makes a new task runnable.
pub(super) fn start(task: Arc<Task>) {
    let irq = cpu::irq_save();
    let cpu = task.sched.cpu();
    let mut queue = queue::of_cpu(cpu).lock();
    queue.push_woken(task);
    let first = queued(&queue, cpu, false);
    drop(queue);
    if first {
        arm_slice(super::current(), 1, time::since_boot_ns());
    }
    cpu::irq_restore(irq);
}

/// Somebody was added to the queue of `cpu`: should its running task make way? True if its slice begins to
/// count.
fn queued(queue: &queue::RunQueue, cpu: usize, preempt: bool) -> bool {
    debug_assert_eq!(cpu, percpu::cpu_id(), "other CPUs are woken by their bring-up's interrupt");
    let running = super::current();
    let is_idle = queue.idle.as_ref().is_some_and(|idle| core::ptr::eq(&**idle, running));
    if is_idle || (preempt && queue.beats(running, WAKEUP_LEAD_NS)) {
        running.set_work(work::RESCHED);
        return false;
    }
    queue.len() == 1
}

impl Task {
    /// Makes the task runnable if its state is one of `states`.
    fn wake_if(&self, matches: impl Fn(State) -> bool) -> bool {
        if !matches(self.sched.state()) {
            return false;
        }
        let irq = cpu::irq_save();
        let cpu = self.sched.cpu();
        let mut queue = queue::of_cpu(cpu).lock();
        let woken = matches(self.sched.state());
        if woken {
            self.sched.set_state(State::Runnable);
            // Without a parked reference the task has not left its CPU yet, and will not.
            if let Some(task) = self.sched.parked.take() {
                queue.push_woken(task);
                if queued(&queue, cpu, true) {
                    // The slice timer cannot be armed from here, with the caller's queue locked: the
                    // running task does it on its way out of the kernel.
                    super::current().set_work(work::SLICE);
                }
            }
        }
        drop(queue);
        cpu::irq_restore(irq);
        woken
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
    fn expired(&self, _now: Nanos) {
        self.wake_up();
    }
}

impl Wake for Task {
    fn wake(&self, _events: u32) {
        self.wake_up();
    }
}
