//! [`SockName`]: the bytes of a `sockaddr`, in no memory of their own, so that what was accepted or received always has its name.
//!
//! Owns nothing. Locks: none.

use abi::socket::UNIX_PATH_MAX;
use arrayvec::ArrayVec;
use core::ops::Deref;

/// The longest name: family, path, and a NUL behind it.
const LONGEST: usize = size_of::<u16>() + UNIX_PATH_MAX + 1;

/// A name, as programs are told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SockName(ArrayVec<u8, LONGEST>);

impl SockName {
    /// What consists of these parts. Those that may be longer than any name are not compiled.
    #[inline]
    pub fn of<const A: usize, const B: usize, const C: usize>(
        head: &[u8; A],
        middle: &ArrayVec<u8, B>,
        tail: &[u8; C],
    ) -> Self {
        const { assert!(A + B + C <= LONGEST, "a name longer than any") };
        let mut name = ArrayVec::new();
        for part in [head, &**middle, tail] {
            let _ = name.try_extend_from_slice(part); // there is room
        }
        Self(name)
    }
}

impl Deref for SockName {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
