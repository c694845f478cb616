//! What stands behind a large page: its leaf table, found by the metadata of its first frame; and how many large pages there are.
//!
//! Owns the numbers of large pages. Never looks at a directory: `large` makes, opens and takes out their entries. Locks: the space's, which the
//! caller holds.

use super::entries::{Table, frame_of};
use crate::mm::frames::{self, LARGE_PAGES, Pfn};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const _: () = assert!(LARGE_PAGES == 512, "one table stands behind a large page");

/// How many are mapped in the machine. Relaxed: a statistic.
static MAPPED: AtomicI64 = AtomicI64::new(0);
/// How many were opened since boot. Relaxed: a statistic.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// How many large pages are mapped in the machine.
pub fn mapped() -> u64 {
    MAPPED.load(Ordering::Relaxed).max(0) as u64
}

/// How many large pages were opened since boot.
pub fn opened() -> u64 {
    OPENED.load(Ordering::Relaxed)
}

/// Counts large pages in or out.
pub(super) fn count(pages: i64) {
    if pages != 0 {
        MAPPED.fetch_add(pages, Ordering::Relaxed);
    }
}

/// Counts one that was opened.
pub(super) fn count_opened() {
    count(-1);
    OPENED.fetch_add(1, Ordering::Relaxed);
}

/// Says which table stands behind the large page that begins with a frame.
pub(super) fn set_behind(first: Pfn, table: Table) {
    first.meta().set_word(u64::from(table.0.0));
}

/// The table behind a large page's entry.
#[inline]
pub(super) fn behind(entry: u64) -> Table {
    Table(Pfn(frame_of(entry).meta().word() as u32))
}

/// Gives back a large page, which no CPU has any more, and its table.
pub(super) fn release(table: Table) {
    let first = frame_of(table.get(0));
    table.clear_all();
    frames::free_table(table.0);
    frames::put_large(first);
}
