//! Locks, wait queues and once-cells.
//!
//! The kernel is not preempted while it runs, so a [`SpinLock`] needs no preemption count; what a lock disables is in
//! its level type ([`level`]), and debug builds check that locks are taken in rank order. Owns the locks' types, their
//! order and the slots. Never knows a task: [`Mutex`] and [`WaitQueue`] sleep through a slot that the process floor
//! fills at boot.

pub mod counted;
mod lent;
pub mod level;
mod mutex;
mod owner;
pub mod pace;
mod part;
mod slots;
mod spin;
pub mod wait;

pub use ::spin::Once;
pub use lent::{Borrowed, Guarded, Own, PartLock};
pub use mutex::{Mutex, MutexGuard};
pub use owner::{ArcSlot, OwnerCell, OwnerRef};
pub use pace::{Pace, cond_resched, killable};
pub use part::{Ended, Part, Parted, Parts};
pub use slots::Slots;
pub use spin::{SpinGuard, SpinLock, assert_may_block};
pub use wait::{BY_RING, PollTable, Registrations, WaitQueue, Wake};
