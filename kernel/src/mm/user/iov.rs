//! [`Sink`] and [`Source`]: where a read puts its bytes and where a write takes them from.
//!
//! Either user memory (one buffer or an iovec array) or a kernel slice, so that a file's code is written
//! once. A fault after some bytes were moved gives the partial count; `EFAULT` only when nothing was.
//!
//! Owns nothing: it counts along addresses. Never used with a spinlock or a space's lock held, since user memory may
//! fault. Locks: none.

use super::user::{self, UserSlice};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::frames::frame::{Frame, page_range};
use abi::{Errno, Result};
use alloc::vec::Vec;
use zerocopy::IntoBytes;

/// Most bytes that one call moves, as on Linux.
pub const MAX_RW_COUNT: usize = alea_random::request::MAX_LEN;
/// Most buffers in an iovec array.
const IOV_MAX: usize = 1024;

/// Where user bytes go or come from.
enum User<'a> {
    One(u64),
    /// The buffers not used up, and how much of the first is.
    Many(&'a [UserSlice], usize),
}

impl User<'_> {
    /// Moves up to `want` bytes by `copy(address, bytes already moved, length) -> bytes moved`.
    #[inline]
    fn transfer(
        &mut self,
        want: usize,
        mut copy: impl FnMut(u64, usize, usize) -> usize,
    ) -> Result<usize> {
        let (slices, used) = match self {
            Self::One(addr) => {
                let moved = copy(*addr, 0, want);
                *addr = addr.wrapping_add(moved as u64);
                return if moved == 0 && want != 0 { Err(Errno::EFAULT) } else { Ok(moved) };
            }
            Self::Many(slices, used) => (slices, used),
        };
        let mut done = 0;
        while done < want {
            let Some((first, rest)) = slices.split_first() else { break };
            let len = (first.len - *used).min(want - done);
            let moved = copy(first.addr.wrapping_add(*used as u64), done, len);
            done += moved;
            if moved < len {
                *used += moved;
                return if done == 0 { Err(Errno::EFAULT) } else { Ok(done) };
            }
            if *used + moved < first.len {
                *used += moved;
                break;
            }
            (*slices, *used) = (rest, 0);
        }
        Ok(done)
    }
}

enum To<'a> {
    User(User<'a>),
    Kernel(&'a mut [u8]),
}

enum From<'a> {
    User(User<'a>),
    Kernel(&'a [u8]),
}

fn total(slices: &[UserSlice]) -> usize {
    slices.iter().fold(0usize, |sum, slice| sum.saturating_add(slice.len)).min(MAX_RW_COUNT)
}

/// Destination of a read.
pub struct Sink<'a> {
    to: To<'a>,
    remaining: usize,
    done: usize,
}

impl<'a> Sink<'a> {
    /// One user buffer. Lengths beyond Linux's `MAX_RW_COUNT` are cut.
    #[inline]
    pub fn user(addr: u64, len: usize) -> Self {
        Self { to: To::User(User::One(addr)), remaining: len.min(MAX_RW_COUNT), done: 0 }
    }

    /// Imported user buffers, see [`import_iovec`].
    pub fn iovec(slices: &'a [UserSlice]) -> Self {
        Self { to: To::User(User::Many(slices, 0)), remaining: total(slices), done: 0 }
    }

    /// A kernel buffer.
    pub fn kernel(dst: &'a mut [u8]) -> Self {
        let remaining = dst.len();
        Self { to: To::Kernel(dst), remaining, done: 0 }
    }

    /// Bytes that still fit.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Bytes put so far.
    #[inline]
    pub fn done(&self) -> usize {
        self.done
    }

    /// Puts as much of `src` as fits and can be written: the count. `EFAULT` only if this call moved nothing
    /// because of a fault.
    #[inline]
    pub fn put(&mut self, src: &[u8]) -> Result<usize> {
        // SAFETY: `src` is valid for its length.
        unsafe { self.put_raw(src.as_ptr(), src.len()) }
    }

    /// Has `make` write the next `len` bytes where they belong, given the address. False if there is no such run of user
    /// memory, or when `make` says that not all of it was written: nothing is put then.
    #[inline]
    pub fn put_in_place(&mut self, len: usize, make: impl FnOnce(u64) -> bool) -> bool {
        let To::User(User::One(addr)) = &mut self.to else { return false };
        if len > self.remaining || !make(*addr) {
            return false;
        }
        *addr = addr.wrapping_add(len as u64);
        self.remaining -= len;
        self.done += len;
        true
    }

    /// Puts `len` bytes of `frame` from offset `off`; panics unless they lie within the page.
    #[inline(always)]
    pub fn put_frame(&mut self, frame: &Frame, off: usize, len: usize) -> Result<usize> {
        let range = page_range(off, len);
        // SAFETY: the range lies in the frame, which the reference keeps.
        unsafe { self.put_raw(frame.ptr_at(range.start), len) }
    }

    /// # Safety
    /// `src` is valid for reads of `len` bytes.
    #[inline(always)]
    unsafe fn put_raw(&mut self, src: *const u8, len: usize) -> Result<usize> {
        let To::User(User::One(addr)) = &mut self.to else {
            // SAFETY: passed on.
            return unsafe { self.put_raw_slowly(src, len) };
        };
        let want = len.min(self.remaining);
        // SAFETY: the caller vouches for `len` bytes, which `want` does not exceed.
        let moved = unsafe { user::copy_out(*addr, src, want) };
        *addr = addr.wrapping_add(moved as u64);
        self.remaining -= moved;
        self.done += moved;
        if moved == 0 && want != 0 { Err(Errno::EFAULT) } else { Ok(moved) }
    }

    /// As [`put_raw`](Self::put_raw), for all kinds.
    ///
    /// # Safety
    /// `src` is valid for reads of `len` bytes.
    #[inline(never)]
    unsafe fn put_raw_slowly(&mut self, src: *const u8, len: usize) -> Result<usize> {
        let want = len.min(self.remaining);
        let count = match &mut self.to {
            // SAFETY: `done + len <= want`, so the piece lies in what the caller vouches for.
            To::User(user) => user.transfer(want, |addr, done, len| unsafe {
                user::copy_out(addr, src.add(done), len)
            })?,
            To::Kernel(dst) => {
                let (head, tail) = core::mem::take(dst).split_at_mut(want);
                // SAFETY: `head` has `want` bytes of exclusively borrowed memory, `src` at least as many.
                unsafe { core::ptr::copy_nonoverlapping(src, head.as_mut_ptr(), want) };
                *dst = tail;
                want
            }
        };
        self.moved(count);
        Ok(count)
    }

    /// Puts `len` zero bytes, as far as they fit.
    pub fn put_zeros(&mut self, len: usize) -> Result<usize> {
        let want = len.min(self.remaining);
        let count = match &mut self.to {
            To::User(user) => user.transfer(want, |addr, _, len| user::zero_partial(addr, len))?,
            To::Kernel(dst) => {
                let (head, tail) = core::mem::take(dst).split_at_mut(want);
                head.fill(0);
                *dst = tail;
                want
            }
        };
        self.moved(count);
        Ok(count)
    }

    #[inline]
    fn moved(&mut self, count: usize) {
        self.remaining -= count;
        self.done += count;
    }
}

/// Source of a write.
pub struct Source<'a> {
    from: From<'a>,
    remaining: usize,
    done: usize,
}

impl<'a> Source<'a> {
    /// One user buffer. Lengths beyond Linux's `MAX_RW_COUNT` are cut.
    #[inline]
    pub fn user(addr: u64, len: usize) -> Self {
        Self { from: From::User(User::One(addr)), remaining: len.min(MAX_RW_COUNT), done: 0 }
    }

    /// Imported user buffers, see [`import_iovec`].
    pub fn iovec(slices: &'a [UserSlice]) -> Self {
        Self { from: From::User(User::Many(slices, 0)), remaining: total(slices), done: 0 }
    }

    /// A kernel buffer.
    pub fn kernel(src: &'a [u8]) -> Self {
        Self { from: From::Kernel(src), remaining: src.len(), done: 0 }
    }

    /// Bytes not taken yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Bytes taken so far.
    #[inline]
    pub fn done(&self) -> usize {
        self.done
    }

    /// Takes up to `dst.len()` bytes: the count, 0 at the end. `EFAULT` only if this call moved nothing
    /// because of a fault.
    #[inline]
    pub fn take(&mut self, dst: &mut [u8]) -> Result<usize> {
        // SAFETY: `dst` is valid for its length.
        unsafe { self.take_raw(dst.as_mut_ptr(), dst.len()) }
    }

    /// Takes `len` bytes into memory of their own: `EFAULT` if not all can be read, `ENOMEM`.
    pub fn take_vec(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_room(len)?;
        bytes.try_resize(len, 0)?;
        let mut at = 0;
        while at < len {
            match self.take(&mut bytes[at..])? {
                0 => return Err(Errno::EFAULT),
                n => at += n,
            }
        }
        Ok(bytes)
    }

    /// Takes up to `len` bytes into `frame` at offset `off`; panics unless they lie within the page.
    #[inline(always)]
    pub fn take_into_frame(&mut self, frame: &Frame, off: usize, len: usize) -> Result<usize> {
        let range = page_range(off, len);
        // SAFETY: the range lies in the frame, which the reference keeps.
        unsafe { self.take_raw(frame.ptr_at(range.start), len) }
    }

    /// # Safety
    /// `dst` is valid for writes of `len` bytes.
    #[inline(always)]
    unsafe fn take_raw(&mut self, dst: *mut u8, len: usize) -> Result<usize> {
        let From::User(User::One(addr)) = &mut self.from else {
            // SAFETY: passed on.
            return unsafe { self.take_raw_slowly(dst, len) };
        };
        let want = len.min(self.remaining);
        // SAFETY: the caller vouches for `len` bytes, which `want` does not exceed.
        let moved = unsafe { user::copy_in(dst, *addr, want) };
        *addr = addr.wrapping_add(moved as u64);
        self.remaining -= moved;
        self.done += moved;
        if moved == 0 && want != 0 { Err(Errno::EFAULT) } else { Ok(moved) }
    }

    /// As [`take_raw`](Self::take_raw), for all kinds.
    ///
    /// # Safety
    /// `dst` is valid for writes of `len` bytes.
    #[inline(never)]
    unsafe fn take_raw_slowly(&mut self, dst: *mut u8, len: usize) -> Result<usize> {
        let want = len.min(self.remaining);
        let count = match &mut self.from {
            // SAFETY: `done + len <= want`, so the piece lies in what the caller vouches for.
            From::User(user) => user.transfer(want, |addr, done, len| unsafe {
                user::copy_in(dst.add(done), addr, len)
            })?,
            From::Kernel(src) => {
                let (head, tail) = src.split_at(want);
                // SAFETY: `head` has `want` bytes, `dst` room for at least as many.
                unsafe { core::ptr::copy_nonoverlapping(head.as_ptr(), dst, want) };
                *src = tail;
                want
            }
        };
        self.remaining -= count;
        self.done += count;
        Ok(count)
    }
}

/// The buffers of an imported iovec array; few need no allocation.
pub type IoVec = smallvec::SmallVec<[UserSlice; 8]>;

/// Another list of the same buffers.
pub fn copy_of(slices: &[UserSlice]) -> Result<IoVec> {
    let mut copy = IoVec::new();
    copy.try_room(slices.len())?;
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    copy.extend_from_slice(slices);
    Ok(copy)
}

/// Reads a user iovec array into `slices`, which are empty, and checks it: `EINVAL` for more than 1024 entries or a negative
/// length, `EFAULT` for buffers outside user space; the total is cut at Linux's `MAX_RW_COUNT`. They are the caller's: what is
/// returned is copied on its way.
pub fn import_iovec(slices: &mut IoVec, addr: u64, count: usize) -> Result<()> {
    if count > IOV_MAX {
        return Err(Errno::EINVAL);
    }
    slices.try_room(count)?;
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    slices.resize(count, UserSlice::new(0, 0));
    let size = count * size_of::<UserSlice>();
    let read = user::read_partial(addr, slices.as_mut_slice().as_mut_bytes());
    let mut room = MAX_RW_COUNT;
    // As on Linux a negative length comes before an entry behind it that cannot be read, and before any buffer outside.
    let (mut is_negative, mut is_outside) = (false, read < size);
    for slice in slices.iter_mut().take(read / size_of::<UserSlice>()) {
        is_negative |= slice.len > isize::MAX as usize;
        is_outside |= !user::in_range(slice.addr, slice.len);
        slice.len = slice.len.min(room);
        room -= slice.len;
    }
    match (is_negative, is_outside) {
        (true, _) => Err(Errno::EINVAL),
        (_, true) => Err(Errno::EFAULT),
        _ => Ok(()),
    }
}
