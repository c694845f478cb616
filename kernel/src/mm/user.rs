//! User memory access: the only way that kernel code reads or writes user space.
//!
//! A [`UserPtr`] or [`UserSlice`] is an allegation: a number that user space gave. Every access checks the
//! range once and copies through `arch::usercopy`, whose faults come back as `EFAULT` or a partial count.
//! No spinlock and no address-space lock may be held across any of these calls: they may fault and sleep.

use abi::Result;
use alloc::vec::Vec;
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A user address that is said to point to a `T`.
#[derive(Debug)]
pub struct UserPtr<T> {
    addr: u64,
    what: PhantomData<fn() -> T>,
}

impl<T> Clone for UserPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for UserPtr<T> {}

impl<T> UserPtr<T> {
    /// Wraps an address that user space gave.
    pub const fn new(addr: u64) -> Self {
        Self { addr, what: PhantomData }
    }

    /// The address.
    pub const fn addr(self) -> u64 {
        self.addr
    }

    /// Whether it is NULL: many calls give NULL a meaning of its own.
    pub const fn is_null(self) -> bool {
        self.addr == 0
    }

    /// `Some(self)` unless it is NULL.
    pub const fn non_null(self) -> Option<Self> {
        if self.addr == 0 { None } else { Some(self) }
    }

    /// The pointer `count` elements further; wraps, as nothing is accessed yet.
    pub const fn index(self, count: u64) -> Self {
        Self::new(self.addr.wrapping_add(count.wrapping_mul(size_of::<T>() as u64)))
    }

    /// The same address as a pointer to something else.
    pub const fn cast<U>(self) -> UserPtr<U> {
        UserPtr::new(self.addr)
    }
}

impl<T: FromBytes> UserPtr<T> {
    /// Reads the value; `EFAULT`.
    pub fn read(self) -> Result<T> {
        todo!()
    }
}

impl<T: IntoBytes + Immutable> UserPtr<T> {
    /// Writes the value; `EFAULT`.
    pub fn write(self, _value: &T) -> Result<()> {
        todo!()
    }
}

/// A user address and a length.
#[derive(Clone, Copy, Debug)]
pub struct UserSlice {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: usize,
}

impl UserSlice {
    /// Wraps what user space gave.
    pub const fn new(addr: u64, len: usize) -> Self {
        Self { addr, len }
    }
}

/// Fills `dst` from user space; `EFAULT` if not all of it could be read.
pub fn read_bytes(_addr: u64, _dst: &mut [u8]) -> Result<()> {
    todo!()
}

/// Copies `src` to user space; `EFAULT` if not all of it could be written.
pub fn write_bytes(_addr: u64, _src: &[u8]) -> Result<()> {
    todo!()
}

/// Reads as far as possible; the number of bytes done.
pub fn read_partial(_addr: u64, _dst: &mut [u8]) -> usize {
    todo!()
}

/// Writes as far as possible; the number of bytes done.
pub fn write_partial(_addr: u64, _src: &[u8]) -> usize {
    todo!()
}

/// Zeros user memory; `EFAULT` if not all of it could be written.
pub fn zero(_addr: u64, _len: usize) -> Result<()> {
    todo!()
}

/// Reads a NUL-terminated string into `dst` and gives its length without the NUL; `Ok(None)` when `dst`
/// is full before a NUL was seen; `EFAULT`.
pub fn read_cstr_into(_addr: u64, _dst: &mut [u8]) -> Result<Option<usize>> {
    todo!()
}

/// Reads a NUL-terminated string of fewer than `max` bytes; `ENAMETOOLONG` if it has no NUL by then;
/// `EFAULT`, `ENOMEM`.
pub fn read_cstr(_addr: u64, _max: usize) -> Result<Vec<u8>> {
    todo!()
}

/// Atomically loads a futex word; `EFAULT`. The address is aligned (the caller checked).
pub fn load_u32(_addr: u64) -> Result<u32> {
    todo!()
}

/// Compares and swaps a futex word; the value found; `EFAULT`. The address is aligned.
pub fn cmpxchg_u32(_addr: u64, _expected: u32, _new: u32) -> Result<u32> {
    todo!()
}

/// As [`load_u32`], but gives `EFAULT` instead of sleeping in a page fault: may be called with a
/// spinlock held.
pub fn load_u32_atomic(_addr: u64) -> Result<u32> {
    todo!()
}
