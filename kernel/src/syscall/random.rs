//! getrandom(2).
#![forbid(unsafe_code)]

use crate::random;

/// Fills a user buffer with random bytes: their number or a negative errno.
#[inline]
pub fn getrandom(buf: u64, len: usize, flags: u64) -> i64 {
    random::getrandom(buf, len, flags)
}
