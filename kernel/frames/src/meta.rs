//! [`FrameMeta`]: sixteen bytes of metadata for each page frame.
//!
//! What the fields mean depends on who has the frame:
//!
//! | state            | refs                     | info                  | word                          |
//! |------------------|--------------------------|-----------------------|-------------------------------|
//! | free block head  | 0                        | FREE, order           | next and previous head        |
//! | inside a block   | 0                        | anything without FREE | -                             |
//! | page of data     | references               | owner                 | the table of a large page that begins with it |
//! | page table       | owner's own bits         | owner, sharers        | which groups of 8 may be set  |
//! | slab             | free count and list head | owner, size class     | next and previous partial slab|
//!
//! All accesses are Relaxed except those of the reference count and of a page table's sharers: the buddy's
//! fields are guarded by its lock, a page table's by its address space's, a slab's by its class's.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a frame in use is used for; also what the statistics count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Owner {
    /// Free, or never given to the allocator.
    None = 0,
    /// Private user memory.
    Anon = 1,
    /// Pages of files and shared memory.
    PageCache = 2,
    /// User page tables.
    PageTable = 3,
    /// The kernel heap: slabs and large objects.
    Slab = 4,
    /// Kernel stacks.
    KernelStack = 5,
    /// Everything else the kernel holds.
    Kernel = 6,
}

impl Owner {
    /// How many kinds there are.
    pub const COUNT: usize = 7;

    #[inline]
    const fn from_tag(tag: u8) -> Self {
        match tag {
            1 => Self::Anon,
            2 => Self::PageCache,
            3 => Self::PageTable,
            4 => Self::Slab,
            5 => Self::KernelStack,
            6 => Self::Kernel,
            _ => Self::None,
        }
    }
}

/// Marks the head of a free block in `info`; owners never set it.
const FREE: u32 = 1 << 31;

/// The metadata of one page frame.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub struct FrameMeta {
    refs: AtomicU32,
    info: AtomicU32,
    word: AtomicU64,
}

impl FrameMeta {
    /// Metadata of a frame that nobody has.
    pub const fn new() -> Self {
        Self { refs: AtomicU32::new(0), info: AtomicU32::new(0), word: AtomicU64::new(0) }
    }

    /// Gives the frame to `owner` with one reference.
    #[inline]
    pub fn set_owner(&self, owner: Owner) {
        self.set_owner_tagged(owner, 0);
    }

    /// As [`set_owner`](Self::set_owner), with 16 bits for the owner's own use.
    #[inline]
    pub fn set_owner_tagged(&self, owner: Owner, tag: u16) {
        self.info.store(u32::from(tag) << 8 | owner as u32, Ordering::Relaxed);
        self.refs.store(1, Ordering::Relaxed);
    }

    /// Changes what the frame counts as, keeping its references.
    #[inline]
    pub fn change_owner(&self, owner: Owner) {
        self.info.store(owner as u32, Ordering::Relaxed);
    }

    /// Makes it a frame inside a block that nobody has. The caller has its only reference.
    #[inline]
    pub fn release(&self) {
        self.info.store(0, Ordering::Relaxed);
        self.refs.store(0, Ordering::Relaxed);
    }

    /// Who has it.
    #[inline]
    pub fn owner(&self) -> Owner {
        let info = self.info.load(Ordering::Relaxed);
        if info & FREE != 0 { Owner::None } else { Owner::from_tag(info as u8) }
    }

    /// The owner's own 16 bits.
    #[inline]
    pub fn tag(&self) -> u16 {
        (self.info.load(Ordering::Relaxed) >> 8) as u16
    }

    /// How many address spaces have this page table, if it is shared: kept in the owner's 16 bits.
    #[inline]
    pub fn sharers(&self) -> u16 {
        // Acquire: pairs with the Release in `drop_sharer`: the only one left sees what the others did.
        (self.info.load(Ordering::Acquire) >> 8) as u16
    }

    /// A page table that was one space's own becomes shared by two.
    #[inline]
    pub fn begin_sharing(&self) {
        // Relaxed: nobody else has it yet.
        let owner = self.info.load(Ordering::Relaxed) & 0xff;
        self.info.store(2 << 8 | owner, Ordering::Relaxed);
    }

    /// One sharer more; the caller is one, and has seen that the 16 bits have room.
    #[inline]
    pub fn add_sharer(&self) {
        // Relaxed: as in `get`.
        let was = self.info.fetch_add(1 << 8, Ordering::Relaxed);
        debug_assert!(was >> 8 & 0xffff != 0, "a page table shared without begin_sharing");
    }

    /// One sharer less; `true` when it was the last, and the caller has the page table alone.
    #[inline]
    pub fn drop_sharer(&self) -> bool {
        // AcqRel: Release pairs with the Acquire here and in `sharers` of whoever is left.
        let was = self.info.fetch_sub(1 << 8, Ordering::AcqRel);
        debug_assert!(was >> 8 & 0xffff != 0, "a page table has fewer sharers than none");
        was >> 8 & 0xffff == 1
    }

    /// The number of references.
    #[inline]
    pub fn refs(&self) -> u32 {
        // Acquire: pairs with the Release in `put`: who sees itself as the sole owner also sees what the
        // former owners did to the page.
        self.refs.load(Ordering::Acquire)
    }

    /// One reference more.
    #[inline]
    pub fn get(&self) {
        // Relaxed: the caller has a reference already, so nothing is published by taking another.
        let was = self.refs.fetch_add(1, Ordering::Relaxed);
        debug_assert!(was != 0 && was < u32::MAX / 2, "reference taken on a frame that has none");
    }

    /// One reference less; `true` when it was the last and the caller must free the frame.
    #[inline]
    pub fn put(&self) -> bool {
        // Acquire: pairs with the Release of the other owners' `put`. A sole owner needs no atomic
        // subtraction: nobody else can take a reference from it.
        if self.refs.load(Ordering::Acquire) == 1 {
            self.refs.store(0, Ordering::Relaxed);
            return true;
        }
        // AcqRel: Release pairs with the Acquire of whoever frees the frame; Acquire when that is us.
        let was = self.refs.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(was != 0, "reference dropped on a frame that has none");
        was == 1
    }

    /// The reference field as plain storage, for owners that do not count (slabs).
    #[inline]
    pub fn refs_raw(&self) -> u32 {
        self.refs.load(Ordering::Relaxed)
    }

    /// Stores to the reference field as plain storage.
    #[inline]
    pub fn set_refs_raw(&self, value: u32) {
        self.refs.store(value, Ordering::Relaxed);
    }

    /// The owner's 64-bit word.
    #[inline]
    pub fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// Stores the owner's 64-bit word.
    #[inline]
    pub fn set_word(&self, value: u64) {
        self.word.store(value, Ordering::Relaxed);
    }

    /// The order of the free block that this frame heads.
    #[inline]
    pub(crate) fn free_order(&self) -> Option<usize> {
        let info = self.info.load(Ordering::Relaxed);
        (info & FREE != 0).then_some((info & 0xff) as usize)
    }

    /// Makes it the head of a free block, or an inner frame.
    #[inline]
    pub(crate) fn set_free(&self, order: Option<usize>) {
        let info = order.map_or(0, |order| FREE | order as u32);
        self.info.store(info, Ordering::Relaxed);
        self.refs.store(0, Ordering::Relaxed);
    }

    /// (next, previous) in the free list.
    #[inline]
    pub(crate) fn links(&self) -> (u32, u32) {
        let word = self.word();
        (word as u32, (word >> 32) as u32)
    }

    #[inline]
    pub(crate) fn set_links(&self, next: u32, prev: u32) {
        self.set_word(u64::from(prev) << 32 | u64::from(next));
    }
}
