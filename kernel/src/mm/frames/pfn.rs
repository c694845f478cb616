//! [`Pfn`]: the number of a page frame, and the metadata that the allocator keeps of each.
//!
//! Owns the place of the metadata array, which `boot` makes. A `Pfn` is a plain number: it never keeps its frame. Whoever
//! uses one holds a reference to the frame or a lock that somebody's reference is under. Locks: none.

use crate::base::page;
use crate::mm::layout::{DIRECT_MAP_BASE, PAGE_SHIFT};
use alea_frames::FrameMeta;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Start and length of the metadata array. Relaxed: written once in `boot::init`, before a second CPU runs.
pub(super) static META_START: AtomicPtr<FrameMeta> = AtomicPtr::new(core::ptr::null_mut());
pub(super) static META_LEN: AtomicUsize = AtomicUsize::new(0);

pub(super) fn metadata() -> &'static [FrameMeta] {
    let (start, len) = (META_START.load(Ordering::Relaxed), META_LEN.load(Ordering::Relaxed));
    if len == 0 {
        return &[];
    }
    // SAFETY: `boot::init` made an array of `len` entries at `start` that is never freed; the entries are
    // atomics, so shared references to them may coexist.
    unsafe { core::slice::from_raw_parts(start, len) }
}

/// The number of a page frame: its physical address divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pfn(pub u32);

impl Pfn {
    /// The frame that a page-table entry or an address points to.
    #[inline]
    pub fn of_phys(phys: u64) -> Self {
        Self((phys >> PAGE_SHIFT) as u32)
    }

    /// Its physical address.
    #[inline]
    pub fn phys(self) -> u64 {
        u64::from(self.0) << PAGE_SHIFT
    }

    /// Its first byte in the direct map.
    #[inline]
    pub fn ptr(self) -> *mut u8 {
        DIRECT_MAP_BASE.wrapping_add(self.phys()) as *mut u8
    }

    /// Its metadata.
    #[inline]
    pub fn meta(self) -> &'static FrameMeta {
        debug_assert!((self.0 as usize) < metadata().len(), "frame {:#x} is no RAM", self.0);
        // SAFETY: every `Pfn` in use came from the allocator or from a page table that was filled from it,
        // so it lies below the number of frames that the metadata array was made for in `boot::init`.
        unsafe { &*META_START.load(Ordering::Relaxed).wrapping_add(self.0 as usize) }
    }

    /// Fills it with zeros.
    #[inline]
    pub fn clear(self) {
        // SAFETY: the direct map covers every frame; the caller owns this one.
        unsafe { page::clear_page(self.ptr()) }
    }

    /// Copies a whole page from another frame.
    #[inline]
    pub fn copy_from(self, other: Pfn) {
        debug_assert!(self != other);
        // SAFETY: both are frames in the direct map and differ; the caller owns this one.
        unsafe { page::copy_page(self.ptr(), other.ptr()) }
    }
}

/// For what: user memory is refused first, while the kernel may still have some for its own objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mm) enum For {
    User,
    Kernel,
    /// Nothing yet: a frame that is made ready ahead.
    Stock,
}
