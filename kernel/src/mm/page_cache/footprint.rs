//! [`Footprint`]: which pages of a program programs touch, learnt from their faults.
//!
//! A page of the file that a fault had to map is remembered, and whether it had to be copied to be written; so are
//! the first pages of zeros that are written beside it. The next execution maps all of them in one step. Which
//! pages are written soon after a fork is remembered, too: a shell forks a few times in its life, too few to learn
//! it each time. So that old entries go, the record starts afresh every [`RENEWAL`] executions, which costs one of
//! them its faults. Only a hint: lost or stale bits cost time, never correctness, so all accesses are Relaxed.

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
/// Most pages written after a fork that are remembered.
const FORKS: usize = 12;

/// A page of a program wherever its parts lie: in its image, from the start of its heap, below the lowest page of its
/// arguments on the stack, or from there on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mm) enum ProgramPage {
    Image(u64),
    Heap(u64),
    Stack(u64),
    Arguments(u64),
}

impl ProgramPage {
    fn key(self) -> u64 {
        match self {
            Self::Image(page) => page << 3 | 1,
            Self::Heap(page) => page << 3 | 2,
            Self::Stack(page) => page << 3 | 3,
            Self::Arguments(page) => page << 3 | 4,
        }
    }

    fn from_key(key: u64) -> Option<Self> {
        match key & 7 {
            1 => Some(Self::Image(key >> 3)),
            2 => Some(Self::Heap(key >> 3)),
            3 => Some(Self::Stack(key >> 3)),
            4 => Some(Self::Arguments(key >> 3)),
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
        #[expect(clippy::disallowed_methods, reason = "there is room, and exactly that")]
        let words = {
            words.resize_with(len, || AtomicU64::new(0));
            words.into_boxed_slice()
        };
        Some(Self(words))
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
    forks: [AtomicU64; FORKS],
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
            forks: [const { AtomicU64::new(0) }; FORKS],
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
            self.zeros.iter().chain(&self.forks).for_each(|slot| slot.store(0, Ordering::Relaxed));
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
    pub fn zero(&self, page: ProgramPage, written: bool) {
        self.note(&self.zeros, page.key(), written);
    }

    /// A page was written soon after a fork, or (`false`) was copied ahead in vain.
    pub fn fork(&self, page: ProgramPage, written: bool) {
        self.note(&self.forks, page.key(), written);
    }

    fn note(&self, slots: &[AtomicU64], key: u64, written: bool) {
        let find = |key| slots.iter().find(|slot| slot.load(Ordering::Relaxed) == key);
        match (find(key), written) {
            (None, true) => {
                let victim = self.victim.load(Ordering::Relaxed);
                self.victim.store(victim.wrapping_add(1), Ordering::Relaxed);
                if let Some(slot) = find(0).or_else(|| slots.get(victim as usize % slots.len())) {
                    slot.store(key, Ordering::Relaxed);
                }
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
    pub fn zeros(&self) -> impl Iterator<Item = ProgramPage> {
        pages_in(&self.zeros)
    }

    /// The pages that are written soon after a fork.
    pub fn forks(&self) -> impl Iterator<Item = ProgramPage> {
        pages_in(&self.forks)
    }
}

fn pages_in(slots: &[AtomicU64]) -> impl Iterator<Item = ProgramPage> {
    slots.iter().filter_map(|slot| ProgramPage::from_key(slot.load(Ordering::Relaxed)))
}
