//! Parts of an event that know nothing of events: where its breakpoint looks ([`Aim`]), what its samples owe ([`Owed`]), how
//! long it counted and when it was sampled ([`Times`], [`Taken`]), and what a record of it is written with ([`Words`]).

mod aim;
mod owed;
mod times;
mod words;

pub(super) use aim::{Aim, Spot};
pub(super) use owed::{Listener, Owed};
pub(super) use times::{Taken, Times, Totals};
pub(super) use words::{Words, with_length};
