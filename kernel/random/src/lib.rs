//! The entropy core of the Alea kernel: generators, pool, credit, health tests and user rules.
//!
//! Everything a kernel's random subsystem has to *decide* is here, and nothing it has to *touch*:
//! no statics, no clock, no instructions, no `unsafe`. Sources, storage and time come in through
//! traits and arguments, so the same code runs in a kernel, on a host under `cargo test`, under
//! Miri and under loom.
//!
//! | module | what it decides |
//! |---|---|
//! | [`splitmix64`] | the lock-free generator of the first moments of boot; never for secrets |
//! | [`hardware`] | when a word from RDRAND or RDSEED may be believed |
//! | [`health`] | SP 800-90B repetition and proportion tests, and a lag test |
//! | [`credit`] | how much entropy is accounted for: the states Empty, Early, Ready |
//! | [`boot`] | that the first key is made of all that the sources deliver at boot |
//! | [`jitter`] | entropy from the cycle counter, for machines that have nothing else |
//! | [`fast_pool`] | interrupt times, stirred together in a few instructions |
//! | [`pool`] | the BLAKE2s hash that all sources are mixed into, and the keys it yields |
//! | [`crng`] | ChaCha20 with fast key erasure: base key, per-CPU keys, generations, batches |
//! | [`crng::twins`] | reseeds, and copies of the machine: no two of them hand out the same bytes |
//! | [`block`] | keys and keystream blocks; where a kernel plugs in its vector code |
//! | [`reseed`] | when the generator gets a new key |
//! | [`vdso`] | getrandom in user space: layout, decisions, draw |
//! | [`request`] | flags, lengths, waiting, interruption and ioctls of Linux's interfaces |
//!
//! # Example: seed once, then draw from any number of CPUs
//!
//! ```
//! use alea_random::hardware::{self, HardwareRng};
//! use alea_random::splitmix64::AtomicSplitMix64;
//!
//! struct Rdrand(u64); // a kernel executes the instruction here
//! impl HardwareRng for Rdrand {
//!     fn next_u64(&mut self) -> Option<u64> {
//!         self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
//!         Some(self.0)
//!     }
//! }
//!
//! static EARLY: AtomicSplitMix64 = AtomicSplitMix64::unseeded();
//!
//! let mut rdrand = Rdrand(1);
//! hardware::self_test(&mut rdrand)?;
//! let generator = EARLY.seed(hardware::draw(&mut rdrand)?).expect("nobody seeded it before");
//! let mut bytes = [0; 16];
//! generator.fill(&mut bytes);
//! assert!(EARLY.seed(7).is_err(), "a second seed would repeat the stream");
//! # Ok::<(), hardware::HardwareFault>(())
//! ```
//!
//! # Locks
//!
//! The crate holds none. What is shared is atomic and says which ordering pairs with which.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod block;
pub mod boot;
pub mod credit;
pub mod crng;
pub mod device;
pub mod fast_pool;
pub mod hardware;
pub mod health;
pub mod jitter;
pub mod pool;
pub mod request;
pub mod reseed;
pub mod splitmix64;
pub mod vdso;

mod sync;
