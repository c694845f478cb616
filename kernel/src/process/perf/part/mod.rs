//! Parts of an event that know nothing of events: where its breakpoint looks ([`Aim`]), what its samples owe ([`Owed`]), and how
//! long it counted ([`Times`]).

mod aim;
mod owed;
mod times;

pub(super) use aim::{Aim, Spot};
pub(super) use owed::{Listener, Owed};
pub(super) use times::Times;
