//! What becomes of events when tasks are made, execute and end, and when descriptors are closed.
//!
//! Runs in the task that does it, with nothing locked. Owns nothing. Locks: the mutex of all events.

use super::context::{self, Context};
use super::event::{Changes, Event, Subject, changes};
use super::{breakpoint, emit, pay, read, sched, told, tracepoint};
use crate::mm::fallible::try_arc;
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use crate::process::watch::{self, Reason};
use crate::trace::{self, Point};
use abi::perf::{Software, bit};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{Ordering, fence};

/// A child is being made: it gets what its maker's events hand down. It is in no list yet.
///
/// # Errors
/// `ENOMEM`: the child must not be.
#[cold]
pub(in crate::process) fn inherit(maker: &Task, child: &Arc<Task>, is_thread: bool) -> Result<()> {
    let changes = changes();
    let Some(context) = maker.perf.get() else { return Ok(()) };
    let mut at = 0;
    while let Some(event) = context.nth(at) {
        at += 1;
        let leads = event.links.lock().leader.is_none();
        let to_threads = event.attr.has(bit::INHERIT_THREAD);
        if leads && event.attr.has(bit::INHERIT) && (is_thread || !to_threads) {
            hand_down_group(&event, child, &changes)?;
        }
    }
    Ok(())
}

fn hand_down_group(leader: &Arc<Event>, child: &Arc<Task>, changes: &Changes) -> Result<()> {
    let new = hand_down(leader, child, changes)?;
    for member in &leader.links.lock().members {
        let new_member = hand_down(member, child, changes)?;
        new_member.join(&new, changes)?;
        new_member.follow(changes);
    }
    Ok(())
}

fn hand_down(event: &Arc<Event>, child: &Arc<Task>, changes: &Changes) -> Result<Arc<Event>> {
    let first = event.parent.as_ref().unwrap_or(event);
    let subject = Subject::Task(Arc::downgrade(child));
    let new = Event::new(event.attr, event.what, event.cpu, subject, Some(first.clone()));
    let new = try_arc(new.with_samples()?)?;
    new.aim.copy(&event.aim);
    context::of_task(child)?.add(&new)?;
    first.add_child(&new, changes)?;
    if new.what.is_call() {
        watch::watch_new(child, Reason::Perf);
    }
    new.set_on(changes, event.is_on());
    Ok(new)
}

/// The running task ends, and says so already: nothing more is counted of it.
#[inline]
pub(in crate::process) fn leave(task: Current) {
    // SeqCst, with that in `attach`: either the event is seen here, or that the task ends is seen there.
    fence(Ordering::SeqCst);
    if task.perf.is_used() || trace::wanted(Point::Exit) {
        ends(task);
    }
}

#[cold]
fn ends(task: Current) {
    emit::ends(&task);
    pay::pay(task);
    if let Some(context) = task.perf.get() {
        end_all(context);
    }
    // As on Linux, where none of its own events hear of it any more.
    sched::ends(&task);
}

#[cold]
fn end_all(context: &Context) {
    let changes = changes();
    let events = context.take();
    for event in &events {
        end(event, &changes);
    }
    drop(events);
    changes.subscribe();
}

/// The child of the running task is in all lists.
#[inline]
pub(in crate::process) fn forked(maker: &Task, child: &Task) {
    if maker.perf.is_used() || trace::wanted(Point::Fork) {
        emit::forked(maker, child);
        sched::forked(maker, child);
    }
}

/// This CPU goes from one task to another; `state` is what Linux calls `prev_state`. Interrupts are off, and no run queue is locked.
#[cold]
pub(in crate::process) fn switched(prev: &Task, next: &Task, state: i64) {
    emit::switched(prev, next, state == 0);
    breakpoint::collect(prev);
    told::switched(prev, next, state);
    pay::hand_over(next);
}

/// The running task has a new name, not by exec.
pub fn named(task: &Task) {
    if task.perf.is_used() || trace::wanted(Point::Exec) {
        emit::named(task, false);
    }
}

/// The running task has mapped a file, to execute it, at `addr`.
pub fn mapped(task: Current, addr: u64) {
    if task.perf.is_used() || trace::wanted(Point::Exec) {
        emit::mapped_at(task, addr);
    }
}

/// An event whose task counts no more; one that is inherited, and that nobody has a descriptor of, is gone.
fn end(event: &Event, changes: &Changes) {
    event.end(changes);
    // Who polls looks again.
    event.first().ends.wake_all();
    if event.parent.is_some() {
        event.part(changes);
    }
}

/// The running task executes another program: some events begin, some end; all do if it may not be looked into any more.
#[inline]
pub(in crate::process) fn exec_done(task: Current, name: &[u8], old_tid: i32) {
    if task.perf.is_used() || trace::wanted(Point::Exec) {
        executed(task, name, old_tid);
    }
}

#[cold]
fn executed(task: Current, name: &[u8], old_tid: i32) {
    if let Some(context) = task.perf.get() {
        // Relaxed: a setting.
        if task.process().dumpable.load(Ordering::Relaxed) == 1 {
            turn(context);
        } else {
            end_all(context);
        }
    }
    emit::named(&task, true);
    emit::mapped_all(task);
    sched::executed(&task, name, old_tid);
}

fn turn(context: &Context) {
    let changes = changes();
    let mut at = 0;
    while let Some(event) = context.nth(at) {
        if event.attr.has(bit::REMOVE_ON_EXEC) {
            context.remove(&event);
            end(&event, &changes);
            // Another one stands in its place now.
            continue;
        }
        if event.take_enable_on_exec() {
            event.set_on(&changes, true);
        }
        at += 1;
    }
}

/// Lets an event count from now on.
///
/// # Errors
/// `ENOMEM`, `E2BIG`, or `ESRCH` if its task ends meanwhile.
pub(super) fn attach(
    event: &Arc<Event>,
    leader: Option<&Arc<Event>>,
    changes: &Changes,
) -> Result<()> {
    let task = event.task();
    let context = match &event.subject {
        Subject::Task(_) => context::of_task(task.as_deref().ok_or(Errno::ESRCH)?)?,
        Subject::Cpu => context::of_cpu(event.cpu.ok_or(Errno::EINVAL)?)?,
    };
    if event.what == Software::Breakpoint
        && let Some(task) = &task
    {
        breakpoint::Slots::new(task, changes).check_event(context, event.cpu)?;
    }
    if let Some(leader) = leader {
        read::check_size(leader, &event.attr, changes)?;
    }
    context.add(event)?;
    let joined = leader.map_or(Ok(()), |leader| event.join(leader, changes));
    // SeqCst: see `leave`.
    fence(Ordering::SeqCst);
    let ends = task.as_ref().is_some_and(|task| task.is_exiting());
    if let Err(error) = joined.and(if ends { Err(Errno::ESRCH) } else { Ok(()) }) {
        event.part(changes);
        context.remove(event);
        return Err(error);
    }
    changes.subscribe();
    if event.what.is_call() {
        tracepoint::watch(event, task.as_deref());
    }
    if let Some(task) = &task {
        event.settle_where(task);
    }
    event.set_on(changes, !event.attr.has(bit::DISABLED));
    Ok(())
}

/// The last descriptor of an event is closed: it goes, and with it those that are inherited from it.
pub(super) fn release(event: &Event) {
    let changes = changes();
    let detach = |event: &Event| {
        event.set_on(&changes, false);
        event.with_context(|context| context.remove(event));
        event.part(&changes);
        if event.what.is_call() {
            tracepoint::unwatch(event);
        }
    };
    let heirs = core::mem::take(&mut event.links.lock().children);
    for heir in heirs.iter().filter_map(Weak::upgrade) {
        detach(&heir);
    }
    detach(event);
    changes.subscribe();
}
