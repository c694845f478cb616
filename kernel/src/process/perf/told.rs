//! What the tracepoints call: counts what happens.
//!
//! It runs in the switch from task to task and in page faults, where no spinlock is held that stands after `Perf`. It
//! allocates nothing, wakes nobody and touches no user memory. Owns nothing. Locks: `Perf`, of the lists that it goes through.

use super::context::{self, Context};
use super::record::Place;
use super::sampler;
use super::sched;
use super::tracepoint::{self, Call, Fact};
use crate::arch::entry::trap::PageFaultCode;
use crate::arch::stop::backtrace;
use crate::base::percpu;
use crate::process::task::current::{TASKS, current};
use crate::process::task::task::Task;
use crate::trace::{self, Subscriber};
use abi::perf::{Software, bit};

/// Fills the slot of the tracepoints.
pub(super) fn register() {
    trace::register(Subscriber::Perf, told);
    sampler::register();
}

fn told(event: &trace::Event<'_>) {
    // What else there is was not asked for; a switch is told of with both tasks, by `switched`.
    match *event {
        trace::Event::Fault { address, ip, bp, code, .. } => {
            let code = PageFaultCode::from_bits_retain(code);
            let from_user = code.contains(PageFaultCode::USER);
            fault(Place { ip, bp, address, from_user, fact: None, when: None });
        }
        trace::Event::Enter { number, args } => call(&Call { enters: true, number, values: args }),
        trace::Event::Leave { number, result, .. } => {
            call(&Call { enters: false, number, values: &[result.cast_unsigned()] });
        }
        trace::Event::Tick => {
            sampler::begin();
            sched::tell_noted(true);
        }
        _ => {}
    }
}

fn fault(place: Place<'_>) {
    let is_fault = |what| matches!(what, Software::Faults | Software::FaultsMinor);
    if TASKS.is_active()
        && let Some(context) = current().perf.get()
    {
        count(context, Some(&current()), place, true, is_fault);
    }
    of_this_cpu(place, true, is_fault);
}

fn call(call: &Call<'_>) {
    let task = current();
    let bp = backtrace::frame_pointer();
    let fact = Some(Fact::Call(call));
    let in_kernel = Place { ip: call_ip(), bp, address: 0, from_user: false, fact, when: None };
    // What is about one call is where the program makes it.
    let (ip, bp) = task.user_frame().map_or((0, 0), |frame| (frame.rip, frame.rbp));
    let in_user = Place { ip, bp, from_user: true, ..in_kernel };
    for (place, is_raw) in [(in_kernel, true), (in_user, false)] {
        let is_call = |what| call.is(what) && tracepoint::is_raw(what) == is_raw;
        if let Some(context) = task.perf.get() {
            count(context, Some(&task), place, true, is_call);
        }
        of_this_cpu(place, true, is_call);
    }
}

fn call_ip() -> u64 {
    call as *const () as u64
}

/// Counts one of what `is_meant` in a context.
pub(super) fn count(
    context: &Context,
    task: Option<&Task>,
    place: Place<'_>,
    may_wake: bool,
    is_meant: impl Fn(Software) -> bool,
) {
    let cpu = percpu::cpu_id();
    let excluded = if place.from_user { bit::EXCLUDE_USER } else { bit::EXCLUDE_KERNEL };
    context.for_each_of(|event, all| {
        let here = event.cpu.is_none_or(|own| own == cpu);
        let counts = here && event.is_counting() && is_meant(event.what);
        if counts && !event.attr.has(excluded) && place.fact.is_none_or(|fact| fact.passes(event)) {
            event.count_one(task, &place, all, may_wake);
        }
    });
}

fn of_this_cpu(place: Place<'_>, may_wake: bool, is_meant: impl Fn(Software) -> bool) {
    if let Ok(context) = context::of_cpu(percpu::cpu_id()) {
        let task = TASKS.is_active().then(current);
        count(context, task.as_deref(), place, may_wake, is_meant);
    }
}

/// This CPU goes from one task to another. Interrupts are off, and no run queue is locked.
#[cold]
pub(super) fn switched(prev: &Task, next: &Task, state: i64) {
    sched::switched(prev, next, state);
    let cpu = percpu::cpu_id();
    let is_switch = |what| what == Software::Switches;
    let ip = switched as *const () as u64;
    let bp = backtrace::frame_pointer();
    let place = Place { ip, bp, address: 0, from_user: false, fact: None, when: None };
    if let Some(context) = prev.perf.get() {
        count(context, Some(prev), place, false, is_switch);
        context.for_each(|event| event.switched(prev, cpu, false));
    }
    of_this_cpu(place, false, is_switch);
    if let Some(context) = next.perf.get() {
        context.for_each(|event| event.switched(next, cpu, true));
        if context.moves_to(cpu) {
            let is_move = |what| what == Software::Migrations;
            count(context, Some(next), place, false, is_move);
            of_this_cpu(place, false, is_move);
        }
    }
}
