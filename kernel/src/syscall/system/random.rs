//! getrandom(2).
#![forbid(unsafe_code)]

use crate::random;
use abi::Returned;

/// Fills a user buffer with random bytes: their number.
#[inline]
pub fn getrandom(buf: u64, len: usize, flags: u64) -> Returned {
    random::getrandom(buf, len, flags)
}
