//! Futexes: waiting on a word (`futex`; `key` says which, `waits` is what a task keeps), lending priority (`pi`, over the
//! table `contended`), locks that a thread leaves (`robust`), and waits without a thread (`distant`).

mod contended;
mod distant;
mod futex;
mod key;
pub mod pi;
mod robust;
mod waits;

pub use distant::Distant;
pub use futex::{BITSET_MATCH_ANY, requeue, wait, wake};
pub use robust::ROBUST_LIST_HEAD_LEN;
pub(super) use robust::leave_locks;
pub(super) use waits::Waits;
