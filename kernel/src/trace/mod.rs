//! Tracepoints: where the kernel tells what happens, to who asked for it.
//!
//! Each place in the kernel that can be watched asks [`wanted`] whether anybody wants to hear of it, which is one load from
//! the block of this CPU that every entry into the kernel touches, and a jump that is not taken. Then it makes an [`Event`],
//! which goes to each [`Subscriber`] that wants it: the sessions of /proc/alea/trace.
//!
//! Owns which points each subscriber wants, in the block of each CPU, and the slots of the subscribers. It knows no task:
//! who looks at an event finds the running task himself. Locks: none.

mod event;
mod hook;

pub use event::{Event, Mark, Point};
pub use hook::{Points, Subscriber, at, register, wanted, wanted_by_others, wants};
