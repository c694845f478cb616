//! What the sources deliver at boot, and the first key that is made of it.
//!
//! Owns one rule: everything that can be had is mixed in before anything is credited. Credit makes the first key, so a
//! source that was credited as soon as it was mixed in would make it alone, and init's secrets would hang on that
//! source: what came after it would count from the next reseed on. Lock rules: none.

use crate::credit::EntropyBits;

/// A source at boot: told what those before it are worth, it mixes in what it has and says what that is worth.
pub type Source<'a> = &'a mut dyn FnMut(EntropyBits) -> EntropyBits;

/// Asks every source; what all of them together are worth, to be credited at once.
///
/// ```
/// use alea_random::{boot, credit::EntropyBits};
/// let sum = boot::collect(&mut [
///     &mut |_| EntropyBits(64), // RDRAND, one word
///     &mut |so_far| if so_far < EntropyBits::READY { EntropyBits(256) } else { EntropyBits(0) }, // jitter
/// ]);
/// assert_eq!(sum, EntropyBits(320));
/// ```
#[must_use = "credits nothing by itself"]
pub fn collect(sources: &mut [Source<'_>]) -> EntropyBits {
    sources.iter_mut().fold(EntropyBits(0), |sum, source| sum.saturating_add(source(sum)))
}
