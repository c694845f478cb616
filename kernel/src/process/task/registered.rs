//! [`Registered`]: the rings of io_uring that a thread enters by a number of its own, not by a descriptor.
//!
//! Owns references to their files, until the thread takes them back, ends or runs another program. Never more than [`MOST`]. Locks:
//! `Owned`, to replace the list.

use crate::base::current::Current;
use crate::mm::fallible::TryVec;
use crate::sync::OwnerCell;
use crate::vfs::OpenFile;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Most rings of a thread (IO_RINGFD_REG_MAX).
pub const MOST: usize = 16;

/// A thread's part.
pub struct Registered(OwnerCell<Vec<Option<Arc<OpenFile>>>>);

impl Registered {
    pub(super) const fn new() -> Self {
        Self(OwnerCell::new(Vec::new()))
    }
}

/// What only the thread itself may do.
impl Current<Registered> {
    /// The file of a ring.
    pub fn ring(self, number: u32) -> Result<Arc<OpenFile>> {
        let number = number as usize;
        if number >= MOST {
            return Err(Errno::EINVAL);
        }
        let rings = self.map(|own| &own.0).borrow();
        rings.get(number).and_then(Clone::clone).ok_or(Errno::EBADF)
    }

    /// Gives a ring the number `wanted`, or without one the lowest that is free: `EBUSY` if there is none.
    pub fn put(self, file: Arc<OpenFile>, wanted: Option<usize>) -> Result<usize> {
        let mut rings = self.map(|own| &own.0).replace(Vec::new());
        let grown = match rings.len() {
            0 => rings.try_resize(MOST, None),
            _ => Ok(()),
        };
        let is_free = |&at: &usize| rings.get(at).is_some_and(Option::is_none);
        let at = match wanted {
            Some(at) => Some(at).filter(is_free),
            None => (0..MOST).find(is_free),
        };
        if let Some(at) = at {
            rings[at] = Some(file);
        }
        drop(self.map(|own| &own.0).replace(rings));
        grown?;
        at.ok_or(Errno::EBUSY)
    }

    /// Takes a number back.
    pub fn remove(self, number: usize) {
        let mut rings = self.map(|own| &own.0).replace(Vec::new());
        let gone = rings.get_mut(number).and_then(Option::take);
        drop(self.map(|own| &own.0).replace(rings));
        // Last, as a ring may go with it.
        drop(gone);
    }

    /// Takes all back.
    #[inline]
    pub(in crate::process) fn clear(self) {
        if !self.map(|own| &own.0).borrow().is_empty() {
            drop(self.map(|own| &own.0).replace(Vec::new()));
        }
    }
}
