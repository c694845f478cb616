//! User memory access: the only way that kernel code reads or writes user space.
//!
//! A [`UserPtr`] or [`UserSlice`] is an allegation: a number that user space gave. What lies above user space is
//! found by the fault that it meets: every access is bounded where it is done, which holds for a CPU that runs ahead of a check
//! too; what must be whole is checked before. Accesses copy through `arch::copy::usercopy`, whose faults come back as `EFAULT` or a partial count.
//! Owns nothing. Never called with a spinlock or an address space's lock held: a call may fault and sleep. Only
//! [`write_keystream`] and [`peek`] do not wait. Locks: none of its own.

use crate::arch::copy::{chacha20, usercopy as raw};
use crate::base::page::USER_END;
use crate::mm::fallible::TryVec;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

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

    /// Checks the range; of one that is `short`, for which there is a primitive of its own, that finds it by the fault that
    /// it meets.
    #[inline]
    fn may_be_accessed(self, short: bool) -> Result<()> {
        if short {
            crate::sync::assert_may_block();
            return Ok(());
        }
        check(self.addr, size_of::<T>())
    }

    /// The same address as a pointer to something else.
    pub const fn cast<U>(self) -> UserPtr<U> {
        UserPtr::new(self.addr)
    }
}

impl<T: FromBytes> UserPtr<T> {
    /// Reads the value; `EFAULT`.
    #[inline]
    pub fn read(self) -> Result<T> {
        self.may_be_accessed(matches!(size_of::<T>(), 2 | 4 | 8))?;
        let mut value = MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr();
        // SAFETY: `to` has room for a `T`; the range was checked, or is short; a one-word read writes exactly its bytes.
        let done = unsafe {
            match size_of::<T>() {
                2 => raw::get_u16(self.addr)
                    .map(|word| to.cast::<u16>().write_unaligned(word))
                    .is_some(),
                4 => raw::get_u32(self.addr)
                    .map(|word| to.cast::<u32>().write_unaligned(word))
                    .is_some(),
                8 => raw::get_u64(self.addr)
                    .map(|word| to.cast::<u64>().write_unaligned(word))
                    .is_some(),
                len => raw::copy_from_user(to.cast(), self.addr, len) == 0,
            }
        };
        // SAFETY: all bytes were written, and any bytes are a `T` by its `FromBytes`.
        if done { Ok(unsafe { value.assume_init() }) } else { Err(Errno::EFAULT) }
    }
}

impl<T: IntoBytes + Immutable> UserPtr<T> {
    /// Writes the value; `EFAULT`.
    #[inline]
    pub fn write(self, value: &T) -> Result<()> {
        self.may_be_accessed(matches!(size_of::<T>(), 2 | 4 | 8 | 16))?;
        let from = core::ptr::from_ref(value);
        // SAFETY: `from` is valid for a `T`, which has no padding by its `IntoBytes`; the range was checked, or is short.
        let done = unsafe {
            match size_of::<T>() {
                2 => raw::put_u16(self.addr, from.cast::<u16>().read_unaligned()),
                4 => raw::put_u32(self.addr, from.cast::<u32>().read_unaligned()),
                8 => raw::put_u64(self.addr, from.cast::<u64>().read_unaligned()),
                16 => raw::put_pair(self.addr, from.cast::<[u64; 2]>().read_unaligned()),
                len => raw::copy_to_user(self.addr, from.cast(), len) == 0,
            }
        };
        if done { Ok(()) } else { Err(Errno::EFAULT) }
    }
}

/// A user address and a length: a `struct iovec` as user space writes it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
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

/// Whether `addr..addr + len` lies in user space.
#[inline]
pub fn in_range(addr: u64, len: usize) -> bool {
    len as u64 <= USER_END && addr <= USER_END - len as u64
}

#[inline]
fn check(addr: u64, len: usize) -> Result<()> {
    // It may fault, and a fault may sleep.
    crate::sync::assert_may_block();
    if in_range(addr, len) { Ok(()) } else { Err(Errno::EFAULT) }
}

/// How much of `addr..addr + len` lies in user space, from its start.
#[inline]
fn within(addr: u64, len: usize) -> usize {
    crate::sync::assert_may_block();
    len.min(usize::try_from(USER_END.saturating_sub(addr)).unwrap_or(0))
}

#[inline]
fn all(done: usize, len: usize) -> Result<()> {
    if done == len { Ok(()) } else { Err(Errno::EFAULT) }
}

/// Brings in what a write of `addr..addr + len` would fault on, by zeroing the first and the last byte: all of it, if
/// that is at most a page. False if it cannot be written.
#[inline]
pub fn fault_in(addr: u64, len: usize) -> bool {
    let Some(last) = len.checked_sub(1) else { return true };
    // SAFETY: `within` limits the first, and both are asked for only if all of it lies in user space.
    within(addr, len) == len
        && unsafe { raw::clear_user(addr, 1) == 0 && raw::clear_user(addr + last as u64, 1) == 0 }
}

/// Makes `groups` groups of ChaCha20 keystream in place. False if the place is not in user space, or some of it is not
/// there to be written: then any of it may be overwritten. Does not wait for pages, so locks may be held.
#[inline]
pub fn write_keystream(addr: u64, groups: usize, key: &[u8; 32], counter: u32) -> bool {
    // SAFETY: the range is checked.
    in_range(addr, groups.saturating_mul(chacha20::GROUP))
        && unsafe { chacha20::keystream_to_user(key, counter, addr, groups) }
}

/// Reads a structure that grows with versions: `size` bytes, the rest of a shorter one zeros.
///
/// # Errors
/// `E2BIG` if bytes that a longer one has beyond a `T` are not zeros, `EFAULT`.
pub fn read_extensible<T: FromBytes + IntoBytes>(addr: u64, size: usize) -> Result<T> {
    let mut value = T::new_zeroed();
    let known = size.min(size_of::<T>());
    // As on Linux, what is too much is found first, and before what cannot be read behind it.
    let mut at = known;
    while at < size {
        let mut rest = [0; 64];
        let rest = &mut rest[..(size - at).min(64)];
        let from = addr.wrapping_add(at as u64);
        check(from, rest.len())?;
        let read = read_partial(from, rest);
        if rest[..read].iter().any(|&byte| byte != 0) {
            return Err(Errno::E2BIG);
        }
        all(read, rest.len())?;
        at += rest.len();
    }
    read_bytes(addr, &mut value.as_mut_bytes()[..known])?;
    Ok(value)
}

/// Fills `dst` from user space; `EFAULT` if not all of it could be read.
#[inline]
pub fn read_bytes(addr: u64, dst: &mut [u8]) -> Result<()> {
    check(addr, dst.len())?;
    all(read_partial(addr, dst), dst.len())
}

/// Copies `src` to user space; `EFAULT` if not all of it could be written.
#[inline]
pub fn write_bytes(addr: u64, src: &[u8]) -> Result<()> {
    check(addr, src.len())?;
    all(write_partial(addr, src), src.len())
}

/// Reads a word if it is mapped and present right now. It never waits, so it may be asked for in interrupt handlers and with locks
/// held.
#[inline]
pub fn peek(addr: u64) -> Option<u64> {
    if !in_range(addr, size_of::<u64>()) {
        return None;
    }
    // SAFETY: the range was checked.
    unsafe { raw::peek_user(addr) }
}

/// Reads as far as possible; the number of bytes done.
#[inline]
pub fn read_partial(addr: u64, dst: &mut [u8]) -> usize {
    // SAFETY: `dst` is kernel memory of that length.
    unsafe { copy_in(dst.as_mut_ptr(), addr, dst.len()) }
}

/// Writes as far as possible; the number of bytes done.
#[inline]
pub fn write_partial(addr: u64, src: &[u8]) -> usize {
    // SAFETY: `src` is kernel memory of that length.
    unsafe { copy_out(addr, src.as_ptr(), src.len()) }
}

/// Zeros as far as possible; the number of bytes done.
pub fn zero_partial(addr: u64, len: usize) -> usize {
    crate::sync::assert_may_block();
    // SAFETY: what does not lie in user space faults.
    len - unsafe { raw::clear_user(addr, len) }
}

/// Copies from user space to kernel memory as far as possible: the bytes done.
///
/// # Safety
/// `dst` is valid for writes of `len` bytes.
#[inline]
pub(super) unsafe fn copy_in(dst: *mut u8, addr: u64, len: usize) -> usize {
    crate::sync::assert_may_block();
    // SAFETY: the caller vouches for `dst`; what does not lie in user space faults.
    len - unsafe { raw::copy_from_user(dst, addr, len) }
}

/// Copies from kernel memory to user space as far as possible: the bytes done.
///
/// # Safety
/// `src` is valid for reads of `len` bytes.
#[inline]
pub(super) unsafe fn copy_out(addr: u64, src: *const u8, len: usize) -> usize {
    crate::sync::assert_may_block();
    // SAFETY: the caller vouches for `src`; what does not lie in user space faults.
    len - unsafe { raw::copy_to_user(addr, src, len) }
}

/// Reads a NUL-terminated string into `dst` and gives its length without the NUL; `Ok(None)` when `dst`
/// is full before a NUL was seen; `EFAULT`.
pub fn read_cstr_into(addr: u64, dst: &mut [u8]) -> Result<Option<usize>> {
    let room = within(addr, dst.len());
    // SAFETY: `dst` has `room` bytes and the range lies in user space.
    let len =
        unsafe { raw::strncpy_from_user(dst.as_mut_ptr(), addr, room) }.ok_or(Errno::EFAULT)?;
    if len < room {
        return Ok(Some(len));
    }
    // Cut short by the end of user space rather than by `dst`: the next byte cannot be read.
    if room < dst.len() { Err(Errno::EFAULT) } else { Ok(None) }
}

/// Reads a NUL-terminated string of fewer than `max` bytes; `ENAMETOOLONG` if it has no NUL by then;
/// `EFAULT`, `ENOMEM`.
pub fn read_cstr(addr: u64, max: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut chunk = 128usize;
    loop {
        let have = text.len();
        let room = chunk.min(max.saturating_sub(have));
        if room == 0 {
            return Err(Errno::ENAMETOOLONG);
        }
        text.try_reserve_exact(room).map_err(|_| Errno::ENOMEM)?;
        text.try_resize(have + room, 0)?;
        match read_cstr_into(addr.saturating_add(have as u64), &mut text[have..])? {
            Some(len) => {
                text.truncate(have + len);
                return Ok(text);
            }
            None => chunk = chunk.saturating_mul(4),
        }
    }
}

/// Reads a word that need not be aligned; `EFAULT`.
pub fn read_u32(addr: u64) -> Result<u32> {
    UserPtr::<u32>::new(addr).read()
}

fn futex_word(addr: u64) -> Result<()> {
    if !addr.is_multiple_of(4) { Err(Errno::EINVAL) } else { check(addr, 4) }
}

/// Atomically loads a futex word; `EFAULT`, `EINVAL` if it is not aligned.
pub fn load_u32(addr: u64) -> Result<u32> {
    futex_word(addr)?;
    // SAFETY: an aligned word in user space.
    unsafe { raw::atomic_load_u32(addr) }.ok_or(Errno::EFAULT)
}

/// Compares and swaps a futex word: the value found; `EFAULT`, `EINVAL` if it is not aligned.
pub fn cmpxchg_u32(addr: u64, expected: u32, new: u32) -> Result<u32> {
    futex_word(addr)?;
    // SAFETY: an aligned word in user space.
    unsafe { raw::atomic_cmpxchg_u32(addr, expected, new) }.ok_or(Errno::EFAULT)
}
