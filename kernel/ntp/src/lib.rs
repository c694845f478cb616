//! The clock discipline: what adjtimex(2) asks for, and how fast the clock runs for it.
//!
//! Owns the state that Linux 6.12 keeps in `kernel/time/ntp.c`: the phase-locked and the frequency-locked loop of RFC 5905's
//! kernel discipline, the slew of adjtime(3), the errors that only grow, and leap seconds. All of it changes once a second of
//! the wall clock, by [`Discipline::pass`]. It must never read a clock itself: the caller says what second it is, and makes
//! its clock run at [`Discipline::rate`].
//!
//! | module | what it decides |
//! |---|---|
//! | [`discipline`] | what each second does |
//! | [`request`] | what a call may ask for, and does |
//!
//! # Locks
//!
//! None: everything is a value.
#![no_std]
#![forbid(unsafe_code)]

pub mod discipline;
pub mod request;

pub use discipline::{Discipline, Rate};
pub use request::Permission;
