//! Memory that lies in single pages is put into large ones: when a program asks (MADV_COLLAPSE), and by a thread that looks around from
//! time to time (khugepaged).
//!
//! Owns the settings and counts of that thread. Never takes a page from who else has a reference to it (a child does): it is copied. Never
//! lets a program write to a page while it is copied: the 2 MiB are taken out of the tables and of all TLBs first, and who touches them
//! waits for the lock. Never makes a large page of what may not be written (`LargeFlags`). Locks: the space's, which the thread
//! lets go after each large page that it makes.

use crate::mm::frames::{self, LARGE_PAGES, Pfn};
use crate::mm::space::huge::{self, Wanted};
use crate::mm::space::registry;
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::shootdown;
use crate::mm::space::table::{
    LEAF_SPAN, LargeFlags, LeafPart, LeafState, OWNED, Table, WRITABLE, ZERO, frame_of,
};
use crate::mm::space::vma::Vma;
use crate::sync::{Pace, cond_resched};
use abi::{Errno, Result};
use alea_ranges::Pos;
use core::sync::atomic::{AtomicU64, Ordering};

crate::setting! {
    /// Milliseconds between two rounds of the thread.
    pub static SCAN_SLEEP_MS = 10_000, 0..=i32::MAX;
    /// Pages that it looks at in a round.
    pub static PAGES_TO_SCAN = 8 * LARGE_PAGES as i32, 1..=i32::MAX;
    /// Most pages of a large one that may not have been there.
    pub static MAX_PTES_NONE = LARGE_PAGES as i32 - 1, 0..=LARGE_PAGES as i32 - 1;
    /// Most pages of a large one that others have, too.
    pub static MAX_PTES_SHARED = LARGE_PAGES as i32 / 2, 0..=LARGE_PAGES as i32 - 1;
}

/// Large pages that the thread made, and its rounds through all spaces. Relaxed: statistics.
static COLLAPSED: AtomicU64 = AtomicU64::new(0);
static FULL_SCANS: AtomicU64 = AtomicU64::new(0);

/// How many large pages the thread has made, and how often it has been through all spaces.
pub fn counts() -> (u64, u64) {
    (COLLAPSED.load(Ordering::Relaxed), FULL_SCANS.load(Ordering::Relaxed))
}

/// How long the thread sleeps between two rounds.
pub fn pause_ns() -> u64 {
    // Never so short that it would keep others from the memory that it looks at.
    u64::from(SCAN_SLEEP_MS.get().cast_unsigned()).max(1) * 1_000_000
}

/// Where the thread goes on.
#[derive(Debug, Default)]
pub struct Cursor {
    space: u64,
    addr: u64,
}

/// One round of the thread.
pub fn scan(cursor: &mut Cursor) {
    let mut left = PAGES_TO_SCAN.get().cast_unsigned() as usize;
    while left > 0 && huge::wanted() != Wanted::Never {
        cond_resched();
        let Some(space) = registry::at_or_after(cursor.space) else {
            *cursor = Cursor::default();
            FULL_SCANS.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if space.id != cursor.space {
            *cursor = Cursor { space: space.id, addr: 0 };
        }
        let looks = space.is_to_look_at() && space.allows_large();
        if !looks || !space.scan(&mut cursor.addr, &mut left) {
            *cursor = Cursor { space: cursor.space + 1, addr: 0 };
        }
    }
}

impl AddressSpace {
    /// Looks at memory from `addr` on, at most at so many pages as are `left`, and makes one large page at most: false when
    /// there is nothing more.
    fn scan(&self, addr: &mut u64, left: &mut usize) -> bool {
        let mut inner = self.inner.lock();
        while *left > 0 {
            cond_resched();
            let Some(pos) = inner.vmas.at_or_after(*addr) else { return false };
            let Some(vma) = inner.vmas.get(pos) else { return false };
            let Some(base) = vma
                .first_large(*addr)
                .filter(|_| vma.wants_large() && LargeFlags::of(vma).is_some())
            else {
                *addr = vma.end;
                continue;
            };
            let end = vma.end;
            let Some(part) = inner.table.next_leaf(base, end) else {
                *addr = end;
                continue;
            };
            *addr = part.addr_of(part.range.end);
            if part.range.len() < LARGE_PAGES {
                continue;
            }
            *left = left.saturating_sub(LARGE_PAGES);
            if part.state == LeafState::Own
                && Found::of(&part).is_worth_it()
                && inner.collapse(self, pos, part.addr).is_ok()
            {
                COLLAPSED.fetch_add(1, Ordering::Relaxed);
                // Those who fault meanwhile need not wait for more than one copy.
                return true;
            }
        }
        true
    }
}

impl Vma {
    /// Where the first large page from `addr` on that it holds would begin.
    fn first_large(&self, addr: u64) -> Option<u64> {
        let base = addr.max(self.start).checked_next_multiple_of(LEAF_SPAN)?;
        (base.checked_add(LEAF_SPAN)? <= self.end).then_some(base)
    }
}

/// What there is in a leaf table.
#[derive(Default)]
struct Found {
    pages: usize,
    /// Those of them that others have, too.
    shared: usize,
    /// Whether one of them may be written: what nobody has written to since the fork stays shared, as on Linux.
    is_written: bool,
}

impl Found {
    fn of(part: &LeafPart) -> Self {
        let mut found = Self::default();
        part.table.for_each(part.range.clone(), |_, entry| {
            if entry & OWNED != 0 {
                found.pages += 1;
                found.shared += usize::from(frame_of(entry).meta().refs() != 1);
                found.is_written |= entry & WRITABLE != 0;
            }
        });
        found
    }

    /// Whether the thread makes a large page of it, by its settings.
    fn is_worth_it(&self) -> bool {
        let most = |setting: i32| setting.cast_unsigned() as usize;
        self.is_written
            && LARGE_PAGES - self.pages <= most(MAX_PTES_NONE.get())
            && self.shared <= most(MAX_PTES_SHARED.get())
    }
}

impl Inner {
    /// MADV_COLLAPSE: makes large pages of all of `start..end`, a part of the mapping at `pos`, that can be in one.
    pub(in crate::mm::space) fn collapse_range(
        &mut self,
        space: &AddressSpace,
        pos: Pos,
        start: u64,
        end: u64,
    ) -> Result<()> {
        let vma = self.vmas.get(pos).ok_or(Errno::EINVAL)?;
        if !vma.can_be_large() || !vma.holds_any_large() || !space.allows_large() {
            return Err(Errno::EINVAL);
        }
        let first = start.next_multiple_of(LEAF_SPAN);
        let last = end & !(LEAF_SPAN - 1);
        if first > last {
            // As on Linux, where the number of large pages comes out below none.
            return Err(Errno::EINVAL);
        }
        let mut result = Ok(());
        for base in (first..last).step_by(LEAF_SPAN as usize).killable() {
            if let Err(error) = self.collapse(space, pos, base?) {
                result = Err(error);
            }
        }
        result
    }

    /// Makes a large page of what lies in the 2 MiB from `base` on: `EINVAL` if none of it may be written, `ENOMEM`.
    fn collapse(&mut self, space: &AddressSpace, pos: Pos, base: u64) -> Result<()> {
        if self.table.large_at(base).is_some() {
            return Ok(());
        }
        let flags = self.vmas.get(pos).and_then(LargeFlags::of).ok_or(Errno::EINVAL)?;
        if self.table.is_bare(base) {
            return Err(Errno::EINVAL);
        }
        // A table that is shared becomes the space's own; its pages may still be others' too.
        self.table.leaf_or_alloc(base, &space.cpus)?;
        let part = self.table.next_leaf(base, base + LEAF_SPAN).ok_or(Errno::EINVAL)?;
        let found = Found::of(&part);
        if !found.is_written {
            return Err(Errno::EINVAL);
        }
        let whole = if found.shared == 0 { part.table.block() } else { None };
        let first = whole.or_else(frames::alloc_large).or_else(|| {
            // Frames that CPUs keep may be all that is missing in a block.
            shootdown::drain_all();
            frames::alloc_large()
        });
        let first = first.ok_or(Errno::ENOMEM)?;
        let vma = self.vmas.get_mut(pos).ok_or(Errno::EINVAL)?;
        vma.flags.insert(VmFlags::HAS_ANON);
        let table = self.table.take_leaf(&part, &space.cpus);
        if whole.is_none() {
            gather_into(first, table);
        }
        self.table.put_large(base, first, flags, table);
        self.count_rss(VmFlags::empty(), true, (LARGE_PAGES - found.pages) as i64);
        Ok(())
    }
}

/// Moves the pages of a table that no CPU uses into a block, with zeros for those that are not there; the table is empty then.
fn gather_into(first: Pfn, table: Table) {
    for (frame, index) in (first.0..).map(Pfn).zip(0..LARGE_PAGES).paced() {
        let entry = table.get(index);
        debug_assert!(entry == 0 || entry & (OWNED | ZERO) != 0, "a file's page in private memory");
        table.replace(index, 0);
        if entry & OWNED == 0 {
            frame.clear();
        } else {
            frame.copy_from(frame_of(entry));
            frames::put(frame_of(entry));
        }
    }
}
