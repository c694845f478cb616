//! The random subsystem of a kernel, without the kernel: pool, credit, health tests, generator and rules.
//!
//! Everything such a subsystem has to *decide* is here, and nothing it has to *touch*: no statics, no clock, no
//! instructions, no `unsafe`, no allocation. Sources, storage and time come in through traits and arguments, so the same code
//! runs in a kernel, on a microcontroller, on a host under `cargo test`, under Miri and under loom. It is the core of the
//! Alea kernel.
//!
//! **It is not** a source of entropy: a machine that gives it none stays [`Empty`](credit::State::Empty), and no call makes
//! up for that. It is no `Rng` to be constructed wherever one is wanted, no approved DRBG of NIST (ChaCha20 is on none of
//! their lists), and not audited by anybody but its authors.
//!
//! | module | what it decides |
//! |---|---|
//! | [`hardware`] | when a word from RDRAND, RDSEED or the like may be believed |
//! | [`device`], [`tpm`] | when the answer of a random number device or of a TPM may be |
//! | [`handed`] | where firmware and boot loaders leave seeds, and what those are worth |
//! | [`health`] | SP 800-90B repetition and proportion tests, and a lag test |
#![cfg_attr(
    feature = "jitter",
    doc = "| [`jitter`] | entropy from a cycle counter, for machines that have nothing else |"
)]
//! | [`fast_pool`] | interrupt times, stirred together in a few instructions |
//! | [`credit`] | how much entropy is accounted for: the states Empty, Early, Ready |
//! | [`boot`] | that the first key is made of all that the sources deliver at boot |
//! | [`known_answers`] | whether ciphers compute what everybody's do |
//! | [`pool`] | the BLAKE2s hashes that all sources are mixed into, and the keys they yield |
//! | [`crng`] | ChaCha20 with fast key erasure: base key, per-CPU keys, generations, batches |
//! | [`crng::handle`] | one CPU's generator, with the traits of rand_core if wanted |
//! | [`crng::twins`] | reseeds, and copies of the machine: no two of them hand out the same bytes |
//! | [`block`] | keys and keystream blocks; where a kernel plugs in its vector code |
//! | [`reseed`] | when the generator gets a new key |
#![cfg_attr(
    feature = "linux-abi",
    doc = "| [`request`] | flags, lengths, waiting, interruption and ioctls of Linux's interfaces |"
)]
#![cfg_attr(
    feature = "vdso",
    doc = "| [`vdso`] | getrandom in user space: layout, decisions, draw |"
)]
//! | [`splitmix64`] | a fast generator for what is no secret, and why it is none for secrets |
//!
//! # Example: mix, credit, make a key, draw
//!
//! On a host, so the source is the operating system's.
//!
//! ```
//! use std::sync::Mutex;
//! use alea_random::block::{Key, Portable};
//! use alea_random::credit::{Credit, EntropyBits, State};
//! use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, handle::CpuRng};
//! use alea_random::hardware::{self, HardwareRng};
//! use alea_random::pool::Pool;
//!
//! struct Rdseed; // a kernel executes the instruction here, and says None where the carry flag is clear
//! impl HardwareRng for Rdseed {
//!     fn next_u64(&mut self) -> Option<u64> {
//!         let mut word = [0; 8];
//!         std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").ok()?, &mut word).ok()?;
//!         Some(u64::from_ne_bytes(word))
//!     }
//! }
//!
//! struct Lock(Mutex<Base>); // a kernel has a spinlock here, with interrupts off
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
//! assert_eq!(credit.state(), State::Ready, "or whoever wants random bytes has to wait");
//!
//! // Ready: a first key, and from then on draws of any CPU.
//! let crng = Crng::new(Lock(Mutex::new(Base::vacant()))); // `const`: fit for a static
//! let mut seed = Key::vacant();
//! pool.extract(&[0; 4], &mut seed); // four fresh words of the hardware, where it has them
//! crng.reseed(&mut seed);           // again by the clock: see `reseed`
//! let mut this_cpu = CpuCrng::vacant();
//! let mut bytes = [0; 32];
//! CpuRng::new(&crng, &mut this_cpu, Portable).fill(&mut bytes).expect("there is a key");
//! # assert_ne!(bytes, [0; 32]);
//! # Ok::<(), hardware::HardwareFault>(())
//! ```
//!
//! # What the kernel around it owes
//!
//! - **Mix first, credit then, once.** Credit that reaches 256 bits makes the first key; what is mixed in afterwards is not in it.
//! - **Mix in pieces of some tens of bytes.** Each [`Pool::mix`](pool::Pool::mix) wipes 2 KiB of stack when it is done: Alea
//!   collects 64 samples of jitter in a buffer for each call.
//! - **A [`CpuCrng`](crng::CpuCrng) is one CPU's**, reached with preemption excluded and never from an interrupt handler. A kernel
//!   that preempts itself disables that around a draw; a handler that has to draw uses a
//!   vacant one of its own and throws it away.
//! - **The pool and the base key have a lock each**, with interrupts off where handlers mix. Never both at once.
//! - **Wait or refuse** while [`Crng::draw`](crng::Crng::draw) says [`NotSeeded`](crng::NotSeeded). There is no other way to a byte
//!   that looks random, but for [`Crng::fill_unseeded`](crng::Crng::fill_unseeded), which says so in its name.
//! - **Virtual machines** are saved and restored: whoever may run in one draws through a [`Machine`](crng::twins::Machine).
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
pub mod handed;
pub mod hardware;
pub mod health;
#[cfg(feature = "jitter")]
pub mod jitter;
pub mod known_answers;
pub mod pool;
#[cfg(feature = "linux-abi")]
pub mod request;
pub mod reseed;
pub mod splitmix64;
pub mod tpm;
#[cfg(feature = "vdso")]
pub mod vdso;

mod sync;
#[cfg(any(feature = "rand_core-0.9", feature = "rand_core-0.10"))]
mod traits;

/// The README's code is compiled and run by `cargo test`.
#[cfg(all(doctest, feature = "jitter"))]
#[doc = include_str!("../README.md")]
struct Readme;
