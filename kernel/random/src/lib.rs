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
//! | [`service`] | all of it behind one name, what a kernel begins with; with the traits of rand_core if wanted |
//! | [`credit`] | how much entropy is accounted for: the states Empty, Early, Ready |
//! | [`boot`] | that the first key is made of all that the sources deliver at boot |
//! | [`known_answers`] | whether ciphers compute what everybody's do |
//! | [`pool`] | the BLAKE2s hashes that all sources are mixed into, and the keys they yield |
//! | [`crng`] | ChaCha20 with fast key erasure: base key, per-CPU keys, generations, batches |
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
//! The parts make a subsystem in [`service`], whose page has an example to begin with: everything mixed in, credited, and a
//! key drawn from in some thirty lines, most of them a lock.
//!
//! # What the kernel around it owes
//!
//! - **Mix first, credit then, once.** Credit that reaches 256 bits makes the first key; what is mixed in afterwards is not in it.
//!   [`Service::start`](service::Service::start) does it in this order.
//! - **Mix in pieces of some tens of bytes.** Each [`Pool::mix`](pool::Pool::mix) wipes 2 KiB of stack when it is done:
//!   samples of jitter are collected in a buffer for each call.
//! - **16 KiB of stack**, and `[profile.dev.package.blake2] opt-level = 1` in its manifest: where `blake2` is not optimised it alone
//!   takes 40 KiB, and the wipes do not reach that far.
//! - **A [`CpuCrng`](crng::CpuCrng) is one CPU's**, reached with preemption excluded and never from an interrupt handler
//!   ([`Platform::with_cpu`](service::Platform::with_cpu)). A handler that draws gets a key of its own, which is thrown away.
//! - **The pools and the base key have a lock each**, with interrupts off where handlers mix. Never both at once.
//! - **Wait or refuse** while [`Service::fill`](service::Service::fill) says [`NotSeeded`](crng::NotSeeded). There is no other way
//!   to a byte that looks random, but for [`fill_unseeded`](service::Service::fill_unseeded), which says so in its name.
//! - **Virtual machines** are saved and restored: whoever may run in one says which copy it is ([`Platform::id`](service::Platform::id)).
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
pub mod service;
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
