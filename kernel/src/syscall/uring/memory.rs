//! [`Shared`]: the memory of a ring, which user space maps and may write at any time.
//!
//! Each number of user space's is read once, and whoever reads it masks it; an entry is copied before it is looked at. Owns
//! the frames, which stay as long as the ring or a mapping. Never knows what an entry means. Locks: none.

use crate::base::PAGE_SIZE;
use crate::mm::fallible::{TryGrow, TryVec, try_arc, try_string};
use crate::mm::space::request::{Prot, VmFlags};
use crate::mm::{Frame, MapSource, PageCache};
use crate::sync::Pace;
use abi::uring::{CqOffsets, Cqe, Params, SqOffsets, Sqe, offset, op, setup};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use zerocopy::IntoBytes;

/// Where numbers stand in the first page (`struct io_rings` of Linux).
mod at {
    pub const SQ_HEAD: u32 = 0;
    pub const SQ_TAIL: u32 = 4;
    pub const CQ_HEAD: u32 = 8;
    pub const CQ_TAIL: u32 = 12;
    pub const SQ_MASK: u32 = 16;
    pub const CQ_MASK: u32 = 20;
    pub const SQ_ENTRIES: u32 = 24;
    pub const CQ_ENTRIES: u32 = 28;
    pub const SQ_DROPPED: u32 = 32;
    pub const SQ_FLAGS: u32 = 36;
    pub const CQ_FLAGS: u32 = 40;
    pub const CQ_OVERFLOW: u32 = 44;
    pub const CQES: u32 = 64;
}

/// Pages behind one of the offsets of `mmap`.
struct Pages {
    frames: Vec<Frame>,
}

impl Pages {
    fn new(bytes: usize) -> Result<Self> {
        let count = bytes.div_ceil(PAGE_SIZE);
        let mut frames = Vec::with_room(count)?;
        for _ in (0..count).paced() {
            frames.try_push(Frame::alloc_zeroed()?)?;
        }
        Ok(Self { frames })
    }

    fn bytes(&self) -> u64 {
        (self.frames.len() * PAGE_SIZE) as u64
    }

    /// Nothing that is read or written crosses a page.
    #[inline]
    fn read(&self, at: usize, to: &mut [u8]) {
        if let Some(frame) = self.frames.get(at / PAGE_SIZE) {
            frame.read(at % PAGE_SIZE, to);
        }
    }

    /// A number that user space may change at any time; nothing beyond the end.
    #[inline]
    fn word(&self, at: u32) -> Option<&AtomicU32> {
        let at = at as usize;
        self.frames.get(at / PAGE_SIZE).map(|frame| &frame.words()[at % PAGE_SIZE / 4])
    }

    /// The words from there to the end of the page.
    #[inline]
    fn words_from(&self, at: usize) -> &[AtomicU32] {
        let frame = self.frames.get(at / PAGE_SIZE);
        frame.map_or(&[], |frame| &frame.words()[at % PAGE_SIZE / 4..])
    }

    /// As [`words_from`](Self::words_from), of eight bytes.
    #[inline]
    fn longs_from(&self, at: usize) -> &[AtomicU64] {
        let frame = self.frames.get(at / PAGE_SIZE);
        frame.map_or(&[], |frame| &frame.longs()[at % PAGE_SIZE / 8..])
    }

    /// What a mapping from byte `base` shows: these pages, and nothing before or behind them.
    fn mapped_from(&self, base: u64) -> Result<Arc<dyn MapSource>> {
        let cache = PageCache::new();
        cache.set_size(base + self.bytes());
        for (index, frame) in self.frames.iter().enumerate() {
            cache.insert(base / PAGE_SIZE as u64 + index as u64, frame.clone())?;
        }
        Ok(try_arc(Mapped(try_arc(cache)?))?)
    }
}

/// The first page of a ring, with its numbers.
#[derive(Clone, Copy)]
pub struct Front<'a>(&'a [AtomicU32; PAGE_SIZE / size_of::<AtomicU32>()]);

impl Front<'_> {
    #[inline]
    fn get(self, at: u32) -> u32 {
        // Acquire: what user space wrote before this number is read after it.
        self.0[at as usize / 4].load(Ordering::Acquire)
    }

    #[inline]
    fn put(self, at: u32, value: u32) {
        // Release: pairs with user space's acquire of the number.
        self.0[at as usize / 4].store(value, Ordering::Release);
    }

    /// How many entries user space says it has submitted behind `head`.
    #[inline]
    pub fn submitted(self, head: u32) -> u32 {
        self.get(at::SQ_TAIL).wrapping_sub(head)
    }

    /// Entries before this one are taken.
    #[inline]
    pub fn set_sq_head(self, head: u32) {
        self.put(at::SQ_HEAD, head);
    }

    /// How many completions before `tail` user space has not taken: any number, if it likes.
    #[inline]
    pub fn untaken(self, tail: u32) -> u32 {
        tail.wrapping_sub(self.get(at::CQ_HEAD))
    }

    #[inline]
    pub fn set_cq_tail(self, tail: u32) {
        self.put(at::CQ_TAIL, tail);
    }
}

/// The memory of one ring.
pub struct Shared {
    /// The first page of `rings`, with the numbers.
    head: Frame,
    rings: Pages,
    sqes: Pages,
    /// One less than how many entries there are, a power of two: what remains of an index.
    sq_mask: u32,
    cq_mask: u32,
    /// Where the indices of submitted entries stand, if there are any.
    array: Option<u32>,
    sources: [(u64, Arc<dyn MapSource>); 3],
}

impl Shared {
    /// Memory for so many entries, both powers of two.
    pub fn new(sq_entries: u32, cq_entries: u32, flags: u32) -> Result<Self> {
        let cqes_end = at::CQES + cq_entries * size_of::<Cqe>() as u32;
        let array = (flags & setup::NO_SQARRAY == 0).then_some(cqes_end);
        let end = cqes_end + if array.is_some() { sq_entries * 4 } else { 0 };
        let rings = Pages::new(end as usize)?;
        let sqes = Pages::new(sq_entries as usize * size_of::<Sqe>())?;
        let sources = [
            (offset::SQ_RING, rings.mapped_from(offset::SQ_RING)?),
            (offset::CQ_RING, rings.mapped_from(offset::CQ_RING)?),
            (offset::SQES, sqes.mapped_from(offset::SQES)?),
        ];
        let head = rings.frames.first().ok_or(Errno::EINVAL)?.clone();
        let (sq_mask, cq_mask) = (sq_entries - 1, cq_entries - 1);
        let shared = Self { head, rings, sqes, sq_mask, cq_mask, array, sources };
        shared.front().put(at::SQ_MASK, sq_mask);
        shared.front().put(at::CQ_MASK, cq_mask);
        shared.front().put(at::SQ_ENTRIES, sq_entries);
        shared.front().put(at::CQ_ENTRIES, cq_entries);
        Ok(shared)
    }

    /// Tells where what stands.
    pub fn describe(&self, params: &mut Params) {
        params.sq_off = SqOffsets {
            head: at::SQ_HEAD,
            tail: at::SQ_TAIL,
            ring_mask: at::SQ_MASK,
            ring_entries: at::SQ_ENTRIES,
            flags: at::SQ_FLAGS,
            dropped: at::SQ_DROPPED,
            array: self.array.unwrap_or(0),
            ..SqOffsets::default()
        };
        params.cq_off = CqOffsets {
            head: at::CQ_HEAD,
            tail: at::CQ_TAIL,
            ring_mask: at::CQ_MASK,
            ring_entries: at::CQ_ENTRIES,
            overflow: at::CQ_OVERFLOW,
            cqes: at::CQES,
            flags: at::CQ_FLAGS,
            ..CqOffsets::default()
        };
    }

    /// What a mapping from this offset shows.
    pub fn source(&self, offset: u64) -> Result<Arc<dyn MapSource>> {
        let found = self.sources.iter().find(|(base, _)| *base == offset);
        found.map(|(_, source)| source.clone()).ok_or(Errno::ENOMEM)
    }

    #[inline]
    pub fn sq_entries(&self) -> u32 {
        self.sq_mask + 1
    }

    #[inline]
    pub fn cq_entries(&self) -> u32 {
        self.cq_mask + 1
    }

    #[inline]
    pub fn front(&self) -> Front<'_> {
        Front(self.head.words())
    }

    /// Which entry is submitted at `head`, if user space names one.
    #[inline]
    fn index(&self, head: u32) -> Option<u32> {
        self.said_index(head).filter(|&index| index <= self.sq_mask)
    }

    /// What user space says is the index of the entry at `head`.
    #[inline]
    fn said_index(&self, head: u32) -> Option<u32> {
        let place = head & self.sq_mask;
        let index = match self.array {
            Some(array) => self.rings.word(array.wrapping_add(place << 2))?.load(Ordering::Acquire),
            None => place,
        };
        Some(index)
    }

    /// Whether user space says that all entries are submitted and none was taken.
    pub fn is_full(&self) -> bool {
        let front = self.front();
        front.submitted(front.get(at::SQ_HEAD)) == self.sq_entries()
    }

    /// Copies the entry at `head`; false if the index is none.
    #[inline]
    pub fn read_entry(&self, head: u32, sqe: &mut Sqe) -> bool {
        let Some(index) = self.index(head) else { return false };
        self.sqes.read(index as usize * size_of::<Sqe>(), sqe.as_mut_bytes());
        true
    }

    /// Completes the entries from `head` on that do nothing and say nothing else, with completions from `tail` on: up to `most`, and
    /// up to the end of a page or of a ring. How many.
    #[inline]
    pub fn pass_nops(&self, head: u32, tail: u32, most: u32) -> u32 {
        let first = head & self.sq_mask;
        let place = tail & self.cq_mask;
        let most = most.min(self.sq_entries() - first).min(self.cq_entries() - place);
        let slots = self.rings.longs_from(at::CQES as usize + place as usize * size_of::<Cqe>());
        let slots = slots.as_chunks().0.iter().take(most as usize);
        match self.array {
            None => self.pass(slots, first..self.sq_entries()),
            Some(array) => {
                let indices = self.rings.words_from((array + first * 4) as usize);
                // Acquire: as in `get`.
                self.pass(slots, indices.iter().map(|index| index.load(Ordering::Acquire)))
            }
        }
    }

    #[inline]
    fn pass<'a>(
        &self,
        slots: impl Iterator<Item = &'a [AtomicU64; 2]>,
        indices: impl Iterator<Item = u32>,
    ) -> u32 {
        let mut passed = 0;
        for ([user_data, rest], index) in slots.zip(indices) {
            let Some(nop) = self.nop(index) else { break };
            // Relaxed: the tail says when they may be read.
            user_data.store(nop, Ordering::Relaxed);
            rest.store(0, Ordering::Relaxed);
            passed += 1;
        }
        passed
    }

    /// As [`nop`](Self::nop), of the entry that is submitted at `head`.
    #[inline]
    pub fn nop_at(&self, head: u32) -> Option<u64> {
        // `nop` looks whether it is one.
        self.nop(self.said_index(head)?)
    }

    /// What the entry at `index` is called (its `user_data`), if it does nothing and says nothing else.
    #[inline]
    fn nop(&self, index: u32) -> Option<u64> {
        const LONGS: usize = size_of::<Sqe>() / 8;
        const OPERATION: usize = offset_of!(Sqe, opcode) / 8;
        const LEN_FLAGS: usize = offset_of!(Sqe, len) / 8;
        const USER_DATA: usize = offset_of!(Sqe, user_data) / 8;
        const PERSONALITY: usize = offset_of!(Sqe, buf_index) / 8;
        // What is looked at: operation, flags and priority; the operation's flags; the personality.
        const LOOKED_AT: [(usize, u64); 3] =
            [(OPERATION, 0xffff_ffff), (LEN_FLAGS, 0xffff_ffff << 32), (PERSONALITY, 0xffff_0000)];
        const { assert!(op::NOP == 0 && offset_of!(Sqe, op_flags) == 28) };
        const { assert!(offset_of!(Sqe, fd) == 4 && offset_of!(Sqe, personality) == 42) };
        let index = if index <= self.sq_mask { index as usize } else { return None };
        let longs = self.sqes.frames.get(index / (PAGE_SIZE / size_of::<Sqe>()))?.longs();
        let at = index % (PAGE_SIZE / size_of::<Sqe>()) * LONGS;
        // Relaxed: each is read once, after the tail.
        let read = |long: usize| longs[at + long].load(Ordering::Relaxed);
        let is_nop = LOOKED_AT.iter().all(|&(long, mask)| read(long) & mask == 0);
        is_nop.then(|| read(USER_DATA))
    }

    /// One more entry had an index that is none. The kernel alone counts.
    pub fn count_dropped(&self, dropped: u32) {
        self.front().put(at::SQ_DROPPED, dropped);
    }

    pub fn count_overflow(&self, lost: u32) {
        self.front().put(at::CQ_OVERFLOW, lost);
    }

    pub fn set_sq_flags(&self, flags: u32) {
        self.front().put(at::SQ_FLAGS, flags);
    }

    /// Bits that user space sets.
    pub fn cq_flags(&self) -> u32 {
        self.front().get(at::CQ_FLAGS)
    }

    /// Writes a completion, which user space sees when the tail says so.
    #[inline]
    pub fn put_completion(&self, tail: u32, cqe: &Cqe) {
        const PER_PAGE: usize = PAGE_SIZE / size_of::<Cqe>();
        const { assert!((at::CQES as usize).is_multiple_of(size_of::<Cqe>())) };
        let place = (tail & self.cq_mask) as usize + at::CQES as usize / size_of::<Cqe>();
        let Some(frame) = self.rings.frames.get(place / PER_PAGE) else { return };
        let [user_data, result] = &frame.longs().as_chunks().0[place % PER_PAGE];
        // Relaxed: the tail says when they may be read.
        user_data.store(cqe.user_data, Ordering::Relaxed);
        let [res, flags] = [cqe.res.cast_unsigned(), cqe.flags].map(u64::from);
        result.store(res | flags << 32, Ordering::Relaxed);
    }
}

/// Pages behind mappings.
struct Mapped(Arc<PageCache>);

impl MapSource for Mapped {
    fn cache(&self) -> &Arc<PageCache> {
        &self.0
    }
    fn name(&self) -> Result<String> {
        try_string("anon_inode:[io_uring]")
    }
    fn dev_ino(&self) -> (u64, u64) {
        (0, 0)
    }
    fn rights(&self, shared: bool, _: Prot) -> Result<VmFlags> {
        // A private mapping would be a copy that nobody reads.
        if shared { Ok(VmFlags::MAY_READ | VmFlags::MAY_WRITE) } else { Err(Errno::EINVAL) }
    }
    fn punch(&self, _: Range<u64>) -> Result<()> {
        // The kernel goes on writing into its pages.
        Err(Errno::EINVAL)
    }
}
