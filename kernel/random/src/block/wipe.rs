//! Wiping, in one place: so that this crate's own tests see that it happens, which no test from outside can.
//!
//! Owns nothing. What is wiped is gone when these return; that no other copy was made is not theirs to know. Lock rules:
//! none.

use zeroize::{Zeroize, zeroize_stack};

/// Overwrites a secret that is not needed any more.
#[inline(always)]
pub(crate) fn wipe<T: Zeroize + ?Sized>(secret: &mut T) {
    secret.zeroize();
    #[cfg(all(test, not(alea_loom)))]
    tests::note(size_of_val(secret));
}

/// Overwrites `BYTES` of the stack below the caller's frame, where what it has called left its words.
#[inline(always)]
pub(crate) fn wipe_stack<const BYTES: usize>() {
    zeroize_stack::<BYTES>();
    #[cfg(all(test, not(alea_loom)))]
    tests::note(BYTES);
}

#[cfg(all(test, not(alea_loom)))]
mod tests;
