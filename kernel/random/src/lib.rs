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
//! # Example: mix, credit, make a key, draw
//!
//! ```
//! use std::sync::Mutex;
//! use alea_random::block::{Key, Portable};
//! use alea_random::credit::{Credit, EntropyBits, State};
//! use alea_random::crng::{Base, CpuCrng, Crng, Exclusive};
//! use alea_random::hardware::{self, HardwareRng};
//! use alea_random::pool::Pool;
//!
//! struct Rdseed; // a kernel executes the instruction here
//! impl HardwareRng for Rdseed {
//!     fn next_u64(&mut self) -> Option<u64> {
//!         use std::hash::BuildHasher;
//!         Some(std::hash::RandomState::new().hash_one(0))
//!     }
//! }
//!
//! struct Lock(Mutex<Base>); // a kernel has a spinlock here
//! impl Exclusive<Base> for Lock {
//!     fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R { f(&mut self.0.lock().unwrap()) }
//! }
//!
//! // Boot: everything is mixed in before anything is credited (see `boot`).
//! let (mut pool, credit) = (Pool::new(), Credit::none());
//! hardware::self_test(&mut Rdseed)?;
//! let mut words = [0; 8];
//! let count = hardware::gather(&mut Rdseed, &mut words);
//! words[..count].iter().for_each(|word| pool.mix(&word.to_le_bytes()));
//! credit.add(EntropyBits(64 * count as u32));
//! assert_eq!(credit.state(), State::Ready, "or getrandom has to wait");
//!
//! // Ready: a first key, and from then on draws of any CPU.
//! let crng = Crng::new(Lock(Mutex::new(Base::vacant())));
//! let mut seed = Key::vacant();
//! pool.extract(&[0; 4], &mut seed); // four fresh words of the hardware, where it has them
//! crng.reseed(&mut seed);
//! let mut this_cpu = CpuCrng::vacant();
//! let mut bytes = [0; 32];
//! crng.draw(&mut this_cpu, &Portable, &mut bytes).expect("there is a key");
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
