//! What samples owe: the signal of a descriptor that has O_ASYNC, and SIGTRAP to the task that was sampled (`attr.sigtrap`).
//!
//! A sample is taken where no signal can be sent: in interrupts, and with lists locked. So what is owed is noted with the event, and sent
//! when the task that runs goes to user mode or ends, or its CPU has gone to another one. Owns the notes. Never sends anything with a
//! list locked. Locks: `Perf`, for a note; the mutex of all events, while it changes whom to tell.

use super::context::{self, Context};
use super::event::{Event, changes};
use super::record::Place;
use crate::base::percpu;
use crate::process::signal;
use crate::process::task::current::{Current, TASKS, current, current_arc};
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::sync::{SpinLock, level};
use crate::vfs::OpenFile;
use crate::vfs::object::owner::SignalOwner;
use abi::fs::OpenFlags;
use abi::perf::bit;
use abi::signal::code::{POLL_HUP, POLL_IN};
use abi::signal::{SigInfo, Signal};

/// The bits of poll(2) that go with POLL_IN and with POLL_HUP.
const BAND_IN: u64 = 0x41;
const BAND_HUP: u64 = 0x18;

/// Whom the descriptor's signal goes to, and by which number.
#[derive(Clone, Copy)]
struct Listener {
    owner: SignalOwner,
    fd: i32,
}

struct Note {
    /// There is one while the descriptor has O_ASYNC.
    listener: Option<Listener>,
    /// POLL_*, or 0 if nothing is owed.
    reason: i32,
    /// SIGTRAP is, with this address.
    trap: Option<u64>,
}

/// The part of an event.
pub(super) struct Owed(SpinLock<Note, level::Perf>);

impl Owed {
    pub const fn new() -> Self {
        Self(SpinLock::new(Note { listener: None, reason: 0, trap: None }))
    }
}

/// O_ASYNC of the event's file was set or taken away through `fd`, or its owner has changed.
pub(super) fn listen(event: &Event, file: &OpenFile, fd: Option<i32>) {
    // Two of these leave what the later one has found.
    let _changes = changes();
    let owner = file.signal_owner();
    let is_wanted = file.flags().contains(OpenFlags::ASYNC);
    let mut note = event.owed.0.lock();
    let fd = fd.or(note.listener.map(|listener| listener.fd));
    note.listener = fd.filter(|_| is_wanted).map(|fd| Listener { owner, fd });
}

/// The running task, if it is a program's, pays on its way there.
fn ask() {
    if TASKS.is_active() && !current().is_kernel_thread() {
        current().set_work(work::PERF);
    }
}

impl Event {
    /// The one that has the descriptor.
    fn first(&self) -> &Self {
        self.parent.as_deref().unwrap_or(self)
    }

    /// The descriptor's signal is owed to whoever wants it.
    pub fn owe(&self, is_last: bool) {
        let mut note = self.first().owed.0.lock();
        if note.listener.is_some() {
            note.reason = note.reason.max(if is_last { POLL_HUP } else { POLL_IN });
            drop(note);
            ask();
        }
    }

    /// SIGTRAP is owed to the task for a sample. One that is owed already is not owed twice.
    pub fn owe_trap(&self, place: &Place<'_>) {
        if self.attr.has(bit::SIGTRAP) {
            let is_shown = place.from_user || !self.attr.has(bit::EXCLUDE_KERNEL);
            let address = if is_shown { place.address } else { 0 };
            self.owed.0.lock().trap.get_or_insert(address);
            ask();
        }
    }

    fn take_signal(&self) -> Option<(Listener, i32)> {
        let mut note = self.first().owed.0.lock();
        let reason = core::mem::take(&mut note.reason);
        note.listener.filter(|_| reason != 0).map(|listener| (listener, reason))
    }

    fn owes(&self) -> bool {
        self.first().owed.0.lock().reason != 0
    }

    fn take_trap(&self) -> Option<(u64, u64)> {
        let address = self.owed.0.lock().trap.take()?;
        Some((address, self.aim.sig_data()))
    }
}

/// Sends the signals that the events of a context owe.
fn pay_signals(context: &Context) {
    while let Some((Listener { owner, fd }, reason)) = context.find_map(Event::take_signal) {
        let band = if reason == POLL_HUP { BAND_HUP } else { BAND_IN };
        signal::tell(&owner, fd, reason, band);
    }
}

/// Sends the running task what its samples owe it. One that ends gets none.
fn pay_traps(task: Current, context: &Context) {
    let take = |event: &Event| event.take_trap().map(|trap| (trap, event.attr.kind));
    while let Some(((address, data), kind)) = context.find_map(take) {
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
        && context.find_map(|event| event.owes().then_some(())).is_some()
    {
        next.set_work(work::PERF);
    }
}

/// This CPU has gone away from `prev`. Interrupts are off, and nothing is locked.
pub(super) fn pay_behind(prev: &Task) {
    if let Some(context) = prev.perf.get() {
        pay_signals(context);
    }
    if let Ok(context) = context::of_cpu(percpu::cpu_id()) {
        pay_signals(context);
    }
}
