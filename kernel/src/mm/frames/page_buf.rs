//! [`PageBuf`]: one page of zeros to be filled in before anyone else sees it.
//!
//! Invariant: the frame has exactly one reference, this one, and no page table points to it, so its bytes
//! may be borrowed until it becomes a plain [`Frame`].
//!
//! Owns that reference. Never shows the page to anybody before `into_frame`. Locks: none.

use super::frame::Frame;
use crate::base::PAGE_SIZE;
use crate::mm::layout::phys_to_virt;
use abi::Result;
use core::ops::{Deref, DerefMut};

/// A page that only its owner can see.
pub struct PageBuf(Frame);

impl PageBuf {
    /// A page of zeros; `ENOMEM`.
    pub fn alloc() -> Result<Self> {
        Frame::alloc_zeroed().map(Self)
    }

    /// Gives up the right to borrow the bytes.
    pub fn into_frame(self) -> Frame {
        self.0
    }

    fn place(&self) -> *mut [u8; PAGE_SIZE] {
        phys_to_virt(self.0.phys()).as_mut_ptr()
    }
}

impl Deref for PageBuf {
    type Target = [u8; PAGE_SIZE];
    fn deref(&self) -> &Self::Target {
        // SAFETY: the direct map covers the frame, its contents are initialised, and nobody else has it (see
        // the file's invariant).
        unsafe { &*self.place() }
    }
}

impl DerefMut for PageBuf {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: as in `deref`, and the owner is borrowed exclusively.
        unsafe { &mut *self.place() }
    }
}
