//! getrandom(2).
#![forbid(unsafe_code)]

use crate::random;
use abi::Result;

/// Fills a user buffer with random bytes: their number.
#[inline]
pub fn getrandom(buf: u64, len: usize, flags: u64) -> Result<usize> {
    random::getrandom(buf, len, flags)
}
