//! [`Sink`] and [`Source`]: where a read puts its bytes and where a write takes them from.
//!
//! Either user memory (one buffer or an iovec array) or a kernel slice, so that a file's code is written
//! once. A fault after some bytes were moved gives the partial count; `EFAULT` only when nothing was.

use super::Frame;
use super::user::UserSlice;
use abi::Result;
use core::marker::PhantomData;

/// Destination of a read.
pub struct Sink<'a> {
    what: PhantomData<&'a mut [u8]>,
}

impl<'a> Sink<'a> {
    /// One user buffer. Lengths beyond Linux's `MAX_RW_COUNT` are cut.
    pub fn user(_addr: u64, _len: usize) -> Self {
        todo!()
    }

    /// Imported user buffers, see [`import_iovec`].
    pub fn iovec(_slices: &'a [UserSlice]) -> Self {
        todo!()
    }

    /// A kernel buffer.
    pub fn kernel(_dst: &'a mut [u8]) -> Self {
        todo!()
    }

    /// Bytes that still fit.
    pub fn remaining(&self) -> usize {
        todo!()
    }

    /// Bytes put so far.
    pub fn done(&self) -> usize {
        todo!()
    }

    /// Puts as much of `src` as fits and can be written: the count. `EFAULT` only if this call moved nothing
    /// because of a fault.
    pub fn put(&mut self, _src: &[u8]) -> Result<usize> {
        todo!()
    }

    /// Puts `len` bytes of `frame` from offset `off`.
    pub fn put_frame(&mut self, _frame: &Frame, _off: usize, _len: usize) -> Result<usize> {
        todo!()
    }

    /// Puts `len` zero bytes.
    pub fn put_zeros(&mut self, _len: usize) -> Result<usize> {
        todo!()
    }
}

/// Source of a write.
pub struct Source<'a> {
    what: PhantomData<&'a [u8]>,
}

impl<'a> Source<'a> {
    /// One user buffer. Lengths beyond Linux's `MAX_RW_COUNT` are cut.
    pub fn user(_addr: u64, _len: usize) -> Self {
        todo!()
    }

    /// Imported user buffers, see [`import_iovec`].
    pub fn iovec(_slices: &'a [UserSlice]) -> Self {
        todo!()
    }

    /// A kernel buffer.
    pub fn kernel(_src: &'a [u8]) -> Self {
        todo!()
    }

    /// Bytes not taken yet.
    pub fn remaining(&self) -> usize {
        todo!()
    }

    /// Bytes taken so far.
    pub fn done(&self) -> usize {
        todo!()
    }

    /// Takes up to `dst.len()` bytes: the count, 0 at the end. `EFAULT` only if this call moved nothing
    /// because of a fault.
    pub fn take(&mut self, _dst: &mut [u8]) -> Result<usize> {
        todo!()
    }

    /// Takes up to `len` bytes into `frame` at offset `off`.
    pub fn take_into_frame(&mut self, _frame: &Frame, _off: usize, _len: usize) -> Result<usize> {
        todo!()
    }
}

/// The buffers of an imported iovec array; few need no allocation.
pub type IoVec = smallvec::SmallVec<[UserSlice; 8]>;

/// Reads and checks a user iovec array: `EINVAL` for more than 1024 entries or a negative length, `EFAULT`;
/// the total is cut at Linux's `MAX_RW_COUNT`.
pub fn import_iovec(_addr: u64, _count: usize) -> Result<IoVec> {
    todo!()
}
