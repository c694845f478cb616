//! Whether the time-stamp counters of two CPUs agree.
//!
//! While a CPU starts, it and the boot CPU take turns, in any order, in looking at their counters under one
//! lock; a look that is earlier than the one before it shows how far they are apart. Owns the record of one
//! such check at a time.
//!
//! Never corrects a counter: it only tells. Locks: `Leaf`, for the record.

use crate::base::tsc;
use crate::sync::{SpinLock, level};

/// Looks that the new CPU takes.
pub(in crate::arch) const ROUNDS: usize = 500;

struct Record {
    last: u64,
    worst: u64,
}

static RECORD: SpinLock<Record, level::Leaf> = SpinLock::new(Record { last: 0, worst: 0 });

/// Starts a new check.
pub(in crate::arch) fn begin() {
    *RECORD.lock() = Record { last: 0, worst: 0 };
}

/// One look.
pub(in crate::arch) fn look() {
    let mut record = RECORD.lock();
    let now = tsc::read_ordered();
    record.worst = record.worst.max(record.last.saturating_sub(now));
    record.last = record.last.max(now);
}

/// How many ticks one counter was seen behind the other, if it was.
pub(in crate::arch) fn result() -> Option<u64> {
    let worst = RECORD.lock().worst;
    (worst > 0).then_some(worst)
}
