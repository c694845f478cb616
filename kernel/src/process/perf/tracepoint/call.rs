//! Tracepoints of system calls: what is told of one, and whose calls are watched for them.
//!
//! The calls of a task are watched while an event of it is about calls, and those of all tasks while an event of a CPU is; who is not watched
//! pays nothing. Owns the count of the latter. Never touches user memory where a call is told. Locks: none.

use super::fields::COMMON;
use crate::process::perf::event::{Event, Subject};
use crate::process::task::current::current;
use crate::process::task::task::Task;
use crate::process::watch::{self, Reason};
use abi::perf::{Attr, Software};
use core::sync::atomic::{AtomicUsize, Ordering};

/// A system call that begins, or has ended.
#[derive(Debug)]
pub(in crate::process::perf) struct Call<'a> {
    pub enters: bool,
    pub number: u32,
    /// The arguments, or what it returns.
    pub values: &'a [u64],
}

impl Call<'_> {
    /// Whether an event is about it.
    pub fn is(&self, what: Software) -> bool {
        let number = match what {
            Software::Enter(number) if self.enters => number,
            Software::Leave(number) if !self.enters => number,
            _ => return false,
        };
        number.is_none_or(|number| u32::from(number) == self.number)
    }

    /// The values that filters know, in the order of `fields::known`.
    pub fn fill(&self, values: &mut [i64]) {
        let own = core::iter::once(u64::from(self.number)).chain(self.values.iter().copied());
        for (to, from) in values.iter_mut().skip(COMMON.len()).zip(own) {
            *to = from.cast_signed();
        }
    }

    /// The raw data, as the format in tracefs has it: its length in 32 bits, then itself, in words.
    pub fn raw(&self, attr: &Attr, mut put: impl FnMut(u64)) {
        // Length, type, task, number, values: all but the first three of 64 bits, so that there is an odd number of halves.
        let halves = 3 + 2 * (1 + self.values.len());
        let len = (halves + 1) * 4 - 4;
        put(len as u64 | attr.config << 32);
        let mut half = u64::from(current().tid().cast_unsigned());
        for value in core::iter::once(u64::from(self.number)).chain(self.values.iter().copied()) {
            put(half | value << 32);
            half = value >> 32;
        }
        put(half);
    }
}

/// Whether it is about all calls.
pub(in crate::process::perf) fn is_raw(what: Software) -> bool {
    matches!(what, Software::Enter(None) | Software::Leave(None))
}

/// The tracepoint of this number, if there is one.
pub(in crate::process::perf) fn find(config: u64) -> Option<Software> {
    let what = Software::tracepoint(config)?;
    match what {
        Software::Enter(Some(number)) | Software::Leave(Some(number)) => {
            (watch::name_of(number.into()) != "-").then_some(what)
        }
        what => Some(what),
    }
}

/// Events of CPUs that are about calls. Relaxed: changed with the mutex of all events held.
static OF_CPUS: AtomicUsize = AtomicUsize::new(0);

/// There is one more event about the calls of a task, or of a CPU.
pub(in crate::process::perf) fn watch(event: &Event, task: Option<&Task>) {
    match task {
        Some(task) => watch::watch_task(task, Reason::Perf, true),
        None => {
            event.watches_all.store(true, Ordering::Relaxed);
            if OF_CPUS.fetch_add(1, Ordering::Relaxed) == 0 {
                watch::watch_all(Reason::Perf, true);
            }
        }
    }
}

/// An event that was about calls stands in no list any more.
pub(in crate::process::perf) fn unwatch(event: &Event) {
    match &event.subject {
        Subject::Task(task) => {
            if let Some(task) = task.upgrade()
                && task.perf.get().is_none_or(|context| !context.has_calls())
            {
                watch::watch_task(&task, Reason::Perf, false);
            }
        }
        Subject::Cpu => {
            // One that could not be attached never watched.
            let did = event.watches_all.swap(false, Ordering::Relaxed);
            if did && OF_CPUS.fetch_sub(1, Ordering::Relaxed) == 1 {
                watch::watch_all(Reason::Perf, false);
            }
        }
    }
}
