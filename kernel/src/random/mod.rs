//! The live entropy service: everything that has to be touched so that `alea-random` can decide.
//!
//! Owns the pool, the credit, the generator and its per-CPU state, the sources and the rules by which
//! user space is served. All randomness of the kernel comes from here. It must never hand out bytes as
//! random that are not, except where Linux's interface says so (`GRND_INSECURE`, an early read of
//! urandom, the kernel's own needs before it is ready: logged).
//!
//! ```text
//! sources/* --mix--> pool --extract--> CRNG base key --> per-CPU key --> batch --> draws
//!          --credit--> state (Empty, Early, Ready)                       stream --> long requests
//! ```
//!
//! Locks: the pool and the base key, each a spinlock of level `Random` with interrupts off for about a
//! microsecond, never both. A draw takes neither, unless a reseed came between. User memory is only
//! touched with nothing held.
#![deny(unsafe_code)]

mod caller;
mod early;
mod generator;
mod known_answers;
mod live;
mod report;
mod schedule;
pub mod selftest;
mod service;
mod shown;
mod sources;
mod stats;
mod user;

pub use caller::{Caller, register_caller};
pub use report::report;
pub use selftest::test_on_demand;
pub use service::{credited, init, secret_words, show_to_programs, state, uuid};
pub use sources::jitter::{raw_samples, sample as sample_when_idle};
pub use sources::show_interrupts_if_asked;
pub use user::{device_ioctl, device_poll, device_read, device_write, getrandom};
