//! Tracepoints of the scheduler and of what becomes of tasks: switches, wake-ups, new tasks, execs, ends.
//!
//! A wake-up is made with queues locked, where nothing of an event may be taken. So it is noted on its CPU and told before the next switch of
//! that CPU or at its next look of the timer, with the time when it was: who reads a count meanwhile misses it. Owns the notes, which are made with
//! the first event that is about wake-ups; what finds no room in them counts as lost. Never takes a lock of an event while a task is woken. Locks: `Woken`, of the notes of the CPU in use.

use super::context::{self, Context};
use super::record::Place;
use super::told::count;
use super::tracepoint::{Fact, Task as Named, Told};
use crate::arch::stop::backtrace;
use crate::base::{cpu, percpu};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::heap::pages_of_room;
use crate::process::task::current::{TASKS, current};
use crate::process::task::task::Task;
use crate::sync::{Once, SpinLock, level};
use crate::time;
use crate::trace::{Point, Points, Subscriber, wanted_by_others};
use abi::Result;
use abi::perf::{Sched, Software};
use alloc::vec::Vec;

/// Wake-ups that one CPU can note.
const ROOM: usize = 256;

/// One that was not told of yet.
struct Note {
    task: Named,
    cpu: usize,
    is_new: bool,
    at: u64,
}

struct Notes {
    all: Vec<Note>,
    missed: u64,
}

static NOTES: Once<Vec<SpinLock<Notes, level::Woken>>> = Once::new();

/// Makes the notes, once there is an event that is about wake-ups.
pub(super) fn prepare(what: Software) -> Result<()> {
    if is_wakeup(what) && NOTES.get().is_none() {
        let mut notes = Vec::new();
        for _ in 0..percpu::cpus_online() {
            let all = Vec::with_room(ROOM)?;
            notes.try_push(SpinLock::new(Notes { all, missed: 0 }))?;
        }
        NOTES.call_once(|| notes);
    }
    Ok(())
}

/// Pages of the notes' room, which stays.
pub(super) fn kept_pages() -> u64 {
    let notes = NOTES.get().map(Vec::as_slice).unwrap_or_default();
    pages_of_room::<Note>(ROOM) * notes.len() as u64
}

fn is_wakeup(what: Software) -> bool {
    matches!(what, Software::Sched(Sched::Wakeup | Sched::WakeupNew))
}

/// Whether any event is about the scheduler.
fn is_wanted() -> bool {
    wanted_by_others(Subscriber::Ring, Points::none().with(Point::Wakeup))
}

/// The notes of this CPU. Interrupts are off.
fn of_this_cpu() -> Option<&'static SpinLock<Notes, level::Woken>> {
    NOTES.get()?.get(percpu::cpu_id())
}

/// A task is about to be queued for `cpu`: its queue is locked.
#[cold]
pub(in crate::process) fn woken(task: &Task, cpu: usize, is_new: bool) {
    if !is_wanted() {
        return;
    }
    let Some(notes) = of_this_cpu() else { return };
    let note = Note { task: Named::of(task), cpu, is_new, at: time::since_boot_ns() };
    let mut notes = notes.lock();
    let has_room = notes.all.len() < notes.all.capacity();
    if !has_room || notes.all.try_push(note).is_err() {
        notes.missed += 1;
    }
}

/// Tells of what this CPU has noted. No lock is held that stands after `Perf`.
pub(super) fn tell_noted(may_wake: bool) {
    cpu::without_interrupts(|| {
        let Some(notes) = of_this_cpu() else { return };
        while let Some(note) = first(notes) {
            let Note { task, cpu, is_new, at } = note;
            tell(&Told::Wakeup { task, cpu, is_new }, Some(at), may_wake);
        }
        let missed = core::mem::take(&mut notes.lock().missed);
        if missed != 0 {
            lose(missed);
        }
    });
}

fn first(notes: &SpinLock<Notes, level::Woken>) -> Option<Note> {
    let all = &mut notes.lock().all;
    (!all.is_empty()).then(|| all.remove(0))
}

fn lose(number: u64) {
    let lose = |context: &Context| {
        context.for_each(|event| {
            if event.is_counting() && is_wakeup(event.what) {
                event.lose(number);
            }
        });
    };
    if let Some(context) = current().perf.get() {
        lose(context);
    }
    if let Ok(context) = context::of_cpu(percpu::cpu_id()) {
        lose(context);
    }
}

/// Has the events of the running task and of this CPU count, and sample, what was at `when`.
fn tell(told: &Told<'_>, when: Option<u64>, may_wake: bool) {
    if !TASKS.is_active() {
        return;
    }
    let task = current();
    let bp = backtrace::frame_pointer();
    let ip = tell as *const () as u64;
    let fact = Some(Fact::Sched(told));
    let place = Place { ip, bp, address: 0, from_user: false, fact, when };
    let is_it = |what| what == Software::Sched(told.what());
    if let Some(context) = task.perf.get() {
        count(context, Some(&task), place, may_wake, is_it);
    }
    if let Ok(context) = context::of_cpu(percpu::cpu_id()) {
        count(context, Some(&task), place, may_wake, is_it);
    }
}

/// The running task makes way for another; `state` is what Linux calls `prev_state`. Interrupts are off.
pub(super) fn switched(prev: &Task, next: &Task, state: i64) {
    if is_wanted() {
        tell_noted(false);
        let (prev, next) = (Named::of(prev), Named::of(next));
        tell(&Told::Switch { prev, state, next }, None, false);
    }
}

/// The running task has made another one, which does not run yet.
pub(super) fn forked(maker: &Task, child: &Task) {
    let (parent, child) = (Named::of(maker), Named::of(child));
    tell_here(&Told::Fork { parent, child });
}

/// The running task executes another program.
pub(super) fn executed(task: &Task, name: &[u8], old_tid: i32) {
    tell_here(&Told::Exec { name, tid: task.tid(), old_tid });
}

/// The running task ends.
pub(super) fn ends(task: &Task) {
    tell_here(&Told::Exit(Named::of(task)));
}

/// Interrupts may be on.
fn tell_here(told: &Told<'_>) {
    if is_wanted() {
        tell_noted(true);
        cpu::without_interrupts(|| tell(told, None, true));
    }
}
