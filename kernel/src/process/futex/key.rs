//! [`Key`]: what a futex is known by.

use crate::mm::{AddressSpace, user};
use abi::{Errno, Result};

/// What a futex is known by: its address in one address space, or its place in a shared object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    Private { space: usize, addr: u64 },
    Shared { object: u64, offset: u64 },
}

impl Key {
    /// The key of the word at `addr`.
    ///
    /// # Errors
    /// `EINVAL` if misaligned, `EFAULT` if nothing is mapped there, or what memfd_secret made is, for a shared futex.
    pub fn of(space: &AddressSpace, addr: u64, shared: bool) -> Result<Self> {
        if !addr.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        if !user::in_range(addr, 4) {
            return Err(Errno::EFAULT);
        }
        let private = Self::Private { space: core::ptr::from_ref(space).addr(), addr };
        if !shared {
            return Ok(private);
        }
        // Reading the word faults the page in, so that a bad address is EFAULT here.
        user::read_u32(addr)?;
        Ok(match space.shared_object_at(addr)? {
            Some((object, offset)) => Self::Shared { object, offset },
            // A page that only this space has must be writable, and is another futex than the private
            // one there: no address has the lowest bit set.
            None => {
                let value = user::read_u32(addr)?;
                user::cmpxchg_u32(addr, value, value)?;
                Self::Private { space: core::ptr::from_ref(space).addr(), addr: addr | 1 }
            }
        })
    }
}

impl alea_futexq::Key for Key {
    #[inline]
    fn hash(&self) -> u64 {
        let (a, b) = match *self {
            Self::Private { space, addr } => (space as u64, addr),
            Self::Shared { object, offset } => (object, offset),
        };
        (a ^ b.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
