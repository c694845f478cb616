//! Who a record is of, and the way of the short ones into a session's rings.
//!
//! Owns nothing. Never called with interrupts on. Locks: none.

use super::record::{HEAD, Kind, first};
use super::ring::Ring;
use crate::base::{cpu, percpu, tsc};
use crate::process::task::task::Task;
use crate::trace::Mark;

/// The running task, as far as records tell of it.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub tid: i32,
    pub pid: i32,
    pub mark: Mark,
}

impl Who {
    #[inline]
    pub fn of(task: &Task) -> Self {
        Self { tid: task.tid(), pid: task.process().pid(), mark: task.watched.mark() }
    }
}

/// Most words of a record that is no system call, behind its head.
const SMALL: usize = 6;

/// Writes a record of now into the ring of this CPU.
pub(super) fn write(rings: &[Ring], kind: Kind, tid: i32, words: &[u64]) {
    debug_assert!(!cpu::interrupts_enabled() && words.len() <= SMALL);
    let here = percpu::cpu_id();
    let len = words.len().min(SMALL) + HEAD;
    let mut record = [0; SMALL + HEAD];
    record[0] = first(kind, here, len, tid);
    record[1] = tsc::read();
    for (to, from) in record[HEAD..].iter_mut().zip(words) {
        *to = *from;
    }
    if let Some(ring) = rings.get(here) {
        // Its readers look again by the clock: they cannot be woken from here.
        let _half_full = ring.write(&record[..len]);
    }
}
