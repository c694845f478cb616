//! [`Ring`]: the buffer of an event that user space maps: a page of numbers, and pages of records.
//!
//! The kernel writes records and then says how far it has written; user space reads them, and says how far it has read. All
//! that user space writes may be wrong: it only decides whether there is room. Owns its frames, which stay as long as a mapping or an
//! event has it, and are held against their user as long. Never waits for a reader: what finds no room is counted. Locks: `Perf`, for who writes.

use super::locked::Locked;
use super::record::{Record, is_sample};
use crate::base::PAGE_SIZE;
use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::mm::{Frame, PageCache};
use crate::sync::{Pace, SpinLock, WaitQueue, level};
use abi::Result;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

/// Where numbers stand in the first page (`struct perf_event_mmap_page`).
mod at {
    pub const SIZE: usize = 72;
    pub const HEAD: usize = 1024;
    pub const TAIL: usize = 1032;
    pub const DATA_OFFSET: usize = 1040;
    pub const DATA_SIZE: usize = 1048;
}

/// What came of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// There was no room.
    Nothing,
    Quietly,
    /// Whoever waits for records is woken.
    Wakes,
}

/// How records follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Mapped read-only: the oldest records are overwritten.
    pub overwrites: bool,
    /// Each stands before the one that was written before it (`attr.write_backward`), so that who stops reads the newest first.
    pub backward: bool,
}

impl Way {
    /// The place so many bytes behind another one.
    fn beyond(self, from: u64, bytes: u64) -> u64 {
        if self.backward { from.wrapping_sub(bytes) } else { from.wrapping_add(bytes) }
    }

    /// What was written between two places.
    fn distance(self, from: u64, to: u64) -> u64 {
        if self.backward { from.wrapping_sub(to) } else { to.wrapping_sub(from) }
    }
}

struct Written {
    head: u64,
    lost: u64,
    /// What was written when somebody was woken.
    woken: u64,
    samples: u32,
}

/// One buffer.
pub(super) struct Ring {
    numbers: Frame,
    data: Vec<Frame>,
    cache: Arc<PageCache>,
    watermark: u64,
    way: Way,
    written: SpinLock<Written, level::Perf>,
    /// And those that are being made. Relaxed: who writes into one that nobody has writes for nobody.
    mappings: AtomicUsize,
    _locked: Locked,
    paused: AtomicBool,
    /// What the next poll says.
    ready: AtomicU32,
    /// Who polls is to be woken, and was not where that became so.
    owed: AtomicBool,
    pub readers: WaitQueue,
}

impl Ring {
    /// One of `pages` pages of records, a power of two or none.
    pub fn new(pages: usize, watermark: u64, way: Way, locked: Locked) -> Result<Arc<Self>> {
        let cache = PageCache::new();
        cache.set_size(((pages + 1) * PAGE_SIZE) as u64);
        let numbers = Frame::alloc_zeroed()?;
        cache.insert(0, numbers.clone())?;
        let mut data = Vec::with_room(pages)?;
        for index in (0..pages).paced() {
            let frame = Frame::alloc_zeroed()?;
            cache.insert(index as u64 + 1, frame.clone())?;
            data.try_push(frame)?;
        }
        numbers.write(at::SIZE, &(at::HEAD as u32).to_ne_bytes());
        numbers.write(at::DATA_OFFSET, &(PAGE_SIZE as u64).to_ne_bytes());
        numbers.write(at::DATA_SIZE, &((pages * PAGE_SIZE) as u64).to_ne_bytes());
        let written = Written { head: 0, lost: 0, woken: 0, samples: 0 };
        try_arc(Self {
            numbers,
            data,
            cache: try_arc(cache)?,
            watermark,
            way,
            written: SpinLock::new(written),
            mappings: AtomicUsize::new(0),
            _locked: locked,
            paused: AtomicBool::new(false),
            ready: AtomicU32::new(0),
            owed: AtomicBool::new(false),
            readers: WaitQueue::new(),
        })
    }

    /// Pages of records.
    pub fn pages(&self) -> usize {
        self.data.len()
    }

    /// Whether anybody has it mapped.
    pub fn is_mapped(&self) -> bool {
        self.mappings.load(Ordering::Relaxed) != 0
    }

    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Whether there is something new since this was asked last.
    pub fn take_ready(&self) -> bool {
        self.ready.swap(0, Ordering::Relaxed) != 0
    }

    fn size(&self) -> u64 {
        (self.data.len() * PAGE_SIZE) as u64
    }

    /// Writes a record; before it that records were lost, if any were, as `lost` makes it. Who polls is woken when it is time, also for every
    /// so many samples, unless the caller may wake nobody.
    pub fn write(
        &self,
        record: &[u64],
        every: u32,
        lost: impl Fn(u64) -> Record,
        may_wake: bool,
    ) -> Put {
        if self.data.is_empty() || !self.is_mapped() {
            return Put::Quietly;
        }
        let mut written = self.written.lock();
        // Relaxed: a setting.
        if self.paused.load(Ordering::Relaxed) {
            written.lost += 1;
            return Put::Nothing;
        }
        let told = (written.lost != 0).then(|| lost(written.lost));
        let told_words = told.as_ref().map_or(0, |told| told.words().len());
        let wanted = (record.len() + told_words) as u64 * 8;
        let mut tail = [0; 8];
        self.numbers.read(at::TAIL, &mut tail);
        // Acquire: what was read there is overwritten only now.
        fence(Ordering::Acquire);
        // Whoever reads may say how far he is in all, or where in the buffer. As in all rings of Linux one byte stays free.
        let used = self.way.distance(u64::from_ne_bytes(tail), written.head) % self.size();
        if !self.way.overwrites && used.saturating_add(wanted) >= self.size() {
            written.lost += 1;
            return Put::Nothing;
        }
        let start = match self.way.backward {
            true => written.head.wrapping_sub(wanted),
            false => written.head,
        };
        let mut end = start;
        if let Some(told) = &told {
            self.put(&mut end, told.words());
            written.lost = 0;
        }
        self.put(&mut end, record);
        written.head = if self.way.backward { start } else { end };
        // Release: the records, then how far they go.
        fence(Ordering::Release);
        self.numbers.write(at::HEAD, &written.head.to_ne_bytes());
        let wakes = self.is_time(&mut written, record, every);
        drop(written);
        if !wakes {
            return Put::Quietly;
        }
        self.ready.store(1, Ordering::Relaxed);
        if may_wake {
            self.readers.wake_all();
        } else {
            self.owed.store(true, Ordering::Relaxed);
        }
        Put::Wakes
    }

    /// So many records were not even made.
    pub fn lose(&self, number: u64) {
        self.written.lock().lost += number;
    }

    /// Wakes who polls, if that is owed. Relaxed: the CPU that owes looks itself.
    pub fn wake_owed(&self) {
        if self.owed.load(Ordering::Relaxed) && self.owed.swap(false, Ordering::Relaxed) {
            self.readers.wake_all();
        }
    }

    fn put(&self, at: &mut u64, mut words: &[u64]) {
        while !words.is_empty() {
            let place = (*at % self.size()) as usize;
            let places = &self.data[place / PAGE_SIZE].longs()[place % PAGE_SIZE / 8..];
            let (now, later) = words.split_at(words.len().min(places.len()));
            for (place, word) in places.iter().zip(now) {
                // Relaxed: who reads is told by the head, behind a fence.
                place.store(*word, Ordering::Relaxed);
            }
            *at = at.wrapping_add(now.len() as u64 * 8);
            words = later;
        }
    }

    /// Whether who polls is woken: after so many samples, if any number is given, and each time that the watermark is passed once more.
    fn is_time(&self, written: &mut Written, record: &[u64], every: u32) -> bool {
        let mut wakes = self.way.distance(written.woken, written.head) > self.watermark;
        if wakes {
            written.woken = self.way.beyond(written.woken, self.watermark);
        }
        if every != 0 && is_sample(record) {
            written.samples += 1;
            if written.samples >= every {
                written.samples = 0;
                wakes = true;
            }
        }
        wakes
    }
}

impl Ring {
    pub fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }

    /// There is one more mapping, or one less.
    pub fn count_mapping(&self, is_new: bool) {
        count(&self.mappings, is_new);
    }

    /// How long a mapping of all is, in bytes.
    pub fn mapped_size(&self) -> u64 {
        self.size() + PAGE_SIZE as u64
    }
}

/// Counts one more, or one less. Relaxed: a number alone.
pub(super) fn count(number: &AtomicUsize, is_new: bool) -> usize {
    if is_new {
        number.fetch_add(1, Ordering::Relaxed) + 1
    } else {
        number.fetch_sub(1, Ordering::Relaxed) - 1
    }
}
