//! [`Footprint`]: which pages of a program programs touch, learnt from their faults.
//!
//! A page of the file that a fault had to map is remembered, and whether it had to be copied to be written; so
//! are the first pages of zeros that are written beside it. The next execution maps all of them in one step.
//! So that old habits fade, the record starts afresh every [`RENEWAL`] executions, which costs one of them
//! its faults. Only a hint: lost or stale bits cost time, never correctness, so all accesses are Relaxed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Executions between fresh starts.
const RENEWAL: u32 = 128;
/// Files with more pages are recorded up to here.
const MAX_PAGES: u64 = 16 * 1024;
/// Most pages of zeros that are remembered.
const ZEROS: usize = 24;

/// Which page of zeros: in the program's image, from the start of its heap, or below its arguments on the
/// stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mm) enum ZeroPage {
    Image(u64),
    Heap(u64),
    Stack(u64),
}

impl ZeroPage {
    fn key(self) -> u64 {
        match self {
            Self::Image(page) => page << 2 | 1,
            Self::Heap(page) => page << 2 | 2,
            Self::Stack(page) => page << 2 | 3,
        }
    }

    fn from_key(key: u64) -> Option<Self> {
        match key & 3 {
            1 => Some(Self::Image(key >> 2)),
            2 => Some(Self::Heap(key >> 2)),
            3 => Some(Self::Stack(key >> 2)),
            _ => None,
        }
    }
}

/// A set of page indices.
struct Bits(Box<[AtomicU64]>);

impl Bits {
    fn new(pages: u64) -> Option<Self> {
        let mut words = Vec::new();
        let len = pages.div_ceil(64) as usize;
        words.try_reserve_exact(len).ok()?;
        words.resize_with(len, || AtomicU64::new(0));
        Some(Self(words.into_boxed_slice()))
    }

    fn put(&self, index: u64, set: bool) {
        if let Some(word) = self.0.get((index / 64) as usize) {
            let old = word.load(Ordering::Relaxed);
            let bit = 1 << (index % 64);
            word.store(if set { old | bit } else { old & !bit }, Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Visits the runs of set bits in `range`.
    #[inline]
    fn runs(&self, range: Range<u64>, mut visit: impl FnMut(Range<u64>)) {
        let mut at = range.start;
        while at < range.end {
            let Some(word) = self.0.get((at / 64) as usize) else { return };
            let rest = word.load(Ordering::Relaxed) >> (at % 64);
            if rest == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            let start = at + u64::from(rest.trailing_zeros());
            let len = u64::from((rest >> rest.trailing_zeros()).trailing_ones());
            if start < range.end {
                visit(start..(start + len).min(range.end));
            }
            at = start + len;
        }
    }
}

/// Which pages of a program programs touch.
pub(in crate::mm) struct Footprint {
    touched: Bits,
    written: Bits,
    zeros: [AtomicU64; ZEROS],
    /// Which of them makes room next.
    victim: AtomicU32,
    uses: AtomicU32,
}

impl Footprint {
    /// An empty record for a file of `pages` pages; nothing if there is no memory.
    pub fn new(pages: u64) -> Option<Self> {
        let pages = pages.clamp(1, MAX_PAGES);
        Some(Self {
            touched: Bits::new(pages)?,
            written: Bits::new(pages)?,
            zeros: [const { AtomicU64::new(0) }; ZEROS],
            victim: AtomicU32::new(0),
            uses: AtomicU32::new(0),
        })
    }

    /// Counts an execution.
    pub fn count_use(&self) {
        let uses = self.uses.load(Ordering::Relaxed).wrapping_add(1);
        self.uses.store(uses, Ordering::Relaxed);
        if uses.is_multiple_of(RENEWAL) {
            self.touched.clear();
            self.written.clear();
            self.zeros.iter().for_each(|zero| zero.store(0, Ordering::Relaxed));
        }
    }

    /// A fault mapped page `index`.
    pub fn touch(&self, index: u64) {
        self.touched.put(index, true);
    }

    /// Page `index` was copied to be written, or (`false`) was copied ahead in vain.
    pub fn write(&self, index: u64, written: bool) {
        self.written.put(index, written);
    }

    /// A page of zeros was made to be written, or (`false`) was made ahead in vain.
    pub fn zero(&self, page: ZeroPage, written: bool) {
        let key = page.key();
        let find = |key| self.zeros.iter().find(|slot| slot.load(Ordering::Relaxed) == key);
        match (find(key), written) {
            (None, true) => {
                let victim = self.victim.load(Ordering::Relaxed);
                self.victim.store(victim.wrapping_add(1), Ordering::Relaxed);
                let slot = find(0).unwrap_or(&self.zeros[victim as usize % ZEROS]);
                slot.store(key, Ordering::Relaxed);
            }
            (Some(slot), false) => slot.store(0, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Whether any page of `range` was touched.
    pub fn any_touched(&self, range: Range<u64>) -> bool {
        let words = self.touched.0.get((range.start / 64) as usize..);
        let count = (range.end.div_ceil(64) - range.start / 64) as usize;
        // At the ends neighbours may be taken for pages of the range: that costs a look.
        words.is_some_and(|words| words.iter().take(count).any(|w| w.load(Ordering::Relaxed) != 0))
    }

    /// Visits the touched pages of `range` by words: the first index and which of the up to 64 from there.
    #[inline]
    pub fn touched(&self, range: Range<u64>, mut visit: impl FnMut(u64, u64)) {
        let mut at = range.start;
        while at < range.end {
            let Some(word) = self.touched.0.get((at / 64) as usize) else { return };
            let bits = word.load(Ordering::Relaxed) >> (at % 64);
            let next = (at / 64 + 1) * 64;
            if bits != 0 {
                let beyond = next.saturating_sub(range.end).saturating_add(at % 64);
                visit(at, bits & u64::MAX.wrapping_shr(beyond as u32));
            }
            at = next;
        }
    }

    /// Visits the runs of written pages in `range`.
    pub fn written(&self, range: Range<u64>, visit: impl FnMut(Range<u64>)) {
        self.written.runs(range, visit);
    }

    /// The pages of zeros.
    pub fn zeros(&self) -> impl Iterator<Item = ZeroPage> {
        self.zeros.iter().filter_map(|slot| ZeroPage::from_key(slot.load(Ordering::Relaxed)))
    }
}
