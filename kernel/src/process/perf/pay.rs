//! Sends what samples owe ([`Owed`](super::part::Owed)): when the task that runs goes to user mode or ends, or its CPU has gone to another
//! one.
//!
//! Owns nothing. Never sends anything with a list locked. Locks: the mutex of all events, while it changes whom to tell.

use super::context::{self, Context};
use super::event::{Event, changes};
use super::part::Listener;
use crate::base::percpu;
use crate::process::signal;
use crate::process::task::current::{Current, current_arc};
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::vfs::OpenFile;
use abi::fs::OpenFlags;
use abi::signal::code::POLL_HUP;
use abi::signal::{SigInfo, Signal};

/// The bits of poll(2) that go with POLL_IN and with POLL_HUP.
const BAND_IN: u64 = 0x41;
const BAND_HUP: u64 = 0x18;

/// O_ASYNC of the event's file was set or taken away through `fd`, or its owner has changed.
pub(super) fn listen(event: &Event, file: &OpenFile, fd: Option<i32>) {
    // Two of these leave what the later one has found.
    let _changes = changes();
    let owner = file.signal_owner();
    let is_wanted = file.flags().contains(OpenFlags::ASYNC);
    event.owed.listen(owner, fd, is_wanted);
}

/// Sends the signals that the events of a context owe.
fn pay_signals(context: &Context) {
    let take = |event: &Event| event.first().owed.take_signal();
    while let Some((Listener { owner, fd }, reason)) = context.find_map(take) {
        let band = if reason == POLL_HUP { BAND_HUP } else { BAND_IN };
        signal::tell(&owner, fd, reason, band);
    }
}

/// Sends the running task what its samples owe it. One that ends gets none.
fn pay_traps(task: Current, context: &Context) {
    let take = |event: &Event| {
        let address = event.owed.take_trap()?;
        Some((address, event.aim.sig_data(), event.attr.kind))
    };
    while let Some((address, data, kind)) = context.find_map(take) {
        if !task.is_exiting() {
            let is_blocked = task.signals.blocked().contains(Signal::SIGTRAP);
            let info = SigInfo::perf(address, data, kind, is_blocked);
            // One that is pending already is enough.
            let _sent = signal::send_to_task(&current_arc(), Signal::SIGTRAP, info);
        }
    }
}

/// The running task sends what is owed, on its way to user mode or when it ends.
#[cold]
pub(in crate::process) fn pay(task: Current) {
    task.clear_work(work::PERF);
    if let Some(context) = task.perf.get() {
        pay_traps(task, context);
        pay_signals(context);
    }
    if let Ok(context) = context::of_cpu(percpu::cpu_id()) {
        pay_signals(context);
    }
}

/// This CPU is about to go to `next`, which pays for what was told of that.
pub(super) fn hand_over(next: &Task) {
    if let Some(context) = next.perf.get()
        && !next.is_kernel_thread()
        && context.find_map(|event| event.first().owed.owes_signal().then_some(())).is_some()
    {
        next.set_work(work::PERF);
    }
}

/// This CPU has gone away from `prev`, and is on another stack: who waits for what was told of it meanwhile is woken, and what is owed is
/// sent. Interrupts are off, and nothing is locked.
#[cold]
#[inline(never)]
pub(in crate::process) fn has_switched(prev: &Task) {
    let of_cpu = context::of_cpu(percpu::cpu_id()).ok();
    for context in [prev.perf.get(), of_cpu].into_iter().flatten() {
        context.for_each(Event::wake_owed);
    }
    for context in [prev.perf.get(), of_cpu].into_iter().flatten() {
        pay_signals(context);
    }
}
