//! What the crates of the Rust Rand project expect of a generator, in two versions of `rand_core`.
//!
//! Owns nothing. It must never turn [`NotSeeded`] into bytes: whoever wants a generator that cannot fail wraps it in that
//! crate's `UnwrapErr` once there is a key. Lock rules: those of [`crate::service`].

use crate::crng::NotSeeded;
use crate::service::{Platform, Service};

/// The three methods are named alike in both versions; only the traits are not.
macro_rules! implement {
    ($rng:path, $crypto:path) => {
        impl<P: Platform> $rng for &Service<P> {
            type Error = NotSeeded;

            fn try_next_u32(&mut self) -> Result<u32, NotSeeded> {
                let mut bytes = [0; 4];
                self.fill(&mut bytes)?;
                Ok(u32::from_le_bytes(bytes))
            }

            fn try_next_u64(&mut self) -> Result<u64, NotSeeded> {
                let mut bytes = [0; 8];
                self.fill(&mut bytes)?;
                Ok(u64::from_le_bytes(bytes))
            }

            fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), NotSeeded> {
                self.fill(out)
            }
        }

        impl<P: Platform> $crypto for &Service<P> {}
    };
}

#[cfg(feature = "rand_core-0.9")]
implement!(rand_core_0_9::TryRngCore, rand_core_0_9::TryCryptoRng);
#[cfg(feature = "rand_core-0.10")]
implement!(rand_core_0_10::TryRng, rand_core_0_10::TryCryptoRng);
