//! [`Slots`]: the debug registers of a thread, which its tracer and its events share: who takes one holds this.
//!
//! Owns nothing: the tracer's places say which are his, the list of the thread's events which of them are of breakpoints. Locks: the mutex
//! of all events, for as long as there is one of these; so of two who find one register left only one takes it.

use super::super::context::Context;
use super::super::event::{Changes, changes};
use crate::arch::task::debug::PLACES;
use crate::base::percpu;
use crate::process::task::task::Task;
use abi::perf::Software;
use abi::{Errno, Result};

/// The registers of one thread, in the hands of who may take some.
pub(in crate::process) struct Slots<'a> {
    task: &'a Task,
    _changes: &'a Changes,
}

/// Calls `take` with the registers of a thread, from which no other takes any meanwhile.
pub(in crate::process) fn with_slots<R>(task: &Task, take: impl FnOnce(&Slots<'_>) -> R) -> R {
    take(&Slots::new(task, &changes()))
}

impl<'a> Slots<'a> {
    pub(in crate::process::perf) fn new(task: &'a Task, changes: &'a Changes) -> Self {
        Self { task, _changes: changes }
    }

    /// Those that events have, on the CPU where they have most.
    pub fn of_events(&self) -> usize {
        let most =
            |context| (0..percpu::cpus_online()).map(|cpu| taken(context, cpu)).max().unwrap_or(0);
        self.task.perf.get().map_or(0, most)
    }

    /// Whether there is one left for an event of the thread on a CPU, or on all.
    ///
    /// # Errors
    /// `ENOSPC`.
    pub(in crate::process::perf) fn check_event(
        &self,
        context: &Context,
        cpu: Option<usize>,
    ) -> Result<()> {
        let events = cpu.map_or_else(|| self.of_events(), |cpu| taken(context, cpu));
        let all = events + self.task.tracing.breakpoints.places();
        if all >= PLACES { Err(Errno::ENOSPC) } else { Ok(()) }
    }
}

/// Registers that the events of a context have on a CPU.
fn taken(context: &Context, cpu: usize) -> usize {
    let mut number = 0;
    context.for_each(|event| {
        let here = event.cpu.is_none_or(|own| own == cpu);
        number += usize::from(here && event.what == Software::Breakpoint);
    });
    number
}
