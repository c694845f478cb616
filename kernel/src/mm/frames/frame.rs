//! [`Frame`]: a counted reference to one 4 KiB page of physical memory.
//!
//! Invariant: a `Frame` holds one of the references that the frame's metadata counts, so the frame is not
//! freed while it lives. The contents are plain bytes that user space may be changing at the same time;
//! they are copied or reached as atomics, never borrowed. Owns that one reference. Locks: none; the count is an atomic.

use super::frames;
use super::pfn::{For, Pfn};
use crate::base::PAGE_SIZE;
use abi::{Errno, Result};
use alea_frames::Owner;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64};
use x86_64::PhysAddr;

/// A counted reference to one page frame; cloning adds a reference, dropping the last one frees it.
pub struct Frame {
    pfn: Pfn,
}

impl Frame {
    /// A frame with undefined contents; `ENOMEM` while only the kernel's reserve is left.
    pub fn alloc() -> Result<Self> {
        frames::alloc(Owner::Kernel, For::User).map(|pfn| Self { pfn }).ok_or(Errno::ENOMEM)
    }

    /// A frame of zeros; `ENOMEM` while only the kernel's reserve is left.
    pub fn alloc_zeroed() -> Result<Self> {
        frames::alloc_zeroed(Owner::Kernel, For::User).map(|pfn| Self { pfn }).ok_or(Errno::ENOMEM)
    }

    /// Takes over a reference that the caller has.
    pub(in crate::mm) fn from_raw(pfn: Pfn) -> Self {
        Self { pfn }
    }

    /// Gives the reference to the caller.
    pub(in crate::mm) fn into_raw(self) -> Pfn {
        let pfn = self.pfn;
        core::mem::forget(self);
        pfn
    }

    pub(in crate::mm) fn pfn(&self) -> Pfn {
        self.pfn
    }

    /// Its physical address.
    pub fn phys(&self) -> PhysAddr {
        PhysAddr::new_truncate(self.pfn.phys())
    }

    /// How many references exist.
    pub fn refcount(&self) -> u32 {
        self.pfn.meta().refs()
    }

    /// Copies bytes out from offset `off`; panics unless the range lies within the page.
    #[inline]
    pub fn read(&self, off: usize, dst: &mut [u8]) {
        let range = page_range(off, dst.len());
        // SAFETY: the range lies in this frame, which the direct map covers and our reference keeps; `dst` is
        // kernel memory and cannot be part of a frame that is reached through a `Frame`.
        unsafe {
            core::ptr::copy_nonoverlapping(
                self.pfn.ptr().add(range.start),
                dst.as_mut_ptr(),
                dst.len(),
            )
        }
    }

    /// Copies bytes in at offset `off`; panics unless the range lies within the page.
    #[inline]
    pub fn write(&self, off: usize, src: &[u8]) {
        let range = page_range(off, src.len());
        // SAFETY: as in `read`, the other way.
        unsafe {
            core::ptr::copy_nonoverlapping(src.as_ptr(), self.pfn.ptr().add(range.start), src.len())
        }
    }

    /// The page as words, which user space may change at any time.
    #[inline]
    pub fn words(&self) -> &[AtomicU32; PAGE_SIZE / size_of::<AtomicU32>()] {
        // SAFETY: the words are this frame, which the direct map covers and our reference keeps as long as we are borrowed; a page is
        // aligned, and every access to it through this is atomic.
        unsafe { &*self.pfn.ptr().cast() }
    }

    /// The page as words of eight bytes, as [`words`](Self::words).
    #[inline]
    pub fn longs(&self) -> &[AtomicU64; PAGE_SIZE / size_of::<AtomicU64>()] {
        // SAFETY: as in `words`.
        unsafe { &*self.pfn.ptr().cast() }
    }

    /// Zeros `len` bytes from `off`; panics unless the range lies within the page.
    pub fn zero(&self, off: usize, len: usize) {
        let range = page_range(off, len);
        // SAFETY: the range lies in this frame, which the direct map covers and our reference keeps.
        unsafe { core::ptr::write_bytes(self.pfn.ptr().add(range.start), 0, len) }
    }

    /// Overwrites `dst_off..` with `len` bytes of another page; panics unless both ranges lie within a page.
    pub fn copy_part(&self, dst_off: usize, other: &Frame, src_off: usize, len: usize) {
        let (dst, src) = (page_range(dst_off, len), page_range(src_off, len));
        // SAFETY: both ranges lie in frames that our references keep; `copy` allows them to be the same.
        unsafe {
            core::ptr::copy(other.pfn.ptr().add(src.start), self.pfn.ptr().add(dst.start), len)
        }
    }

    /// The first byte at `off`, for the user-copy code.
    pub(in crate::mm) fn ptr_at(&self, off: usize) -> *mut u8 {
        self.pfn.ptr().wrapping_add(off)
    }
}

/// Checks that `off..off + len` lies within a page.
pub(in crate::mm) fn page_range(off: usize, len: usize) -> Range<usize> {
    assert!(off <= PAGE_SIZE && len <= PAGE_SIZE - off, "access beyond the end of a frame");
    off..off + len
}

impl Clone for Frame {
    #[inline]
    fn clone(&self) -> Self {
        self.pfn.meta().get();
        Self { pfn: self.pfn }
    }
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        frames::put(self.pfn);
    }
}
