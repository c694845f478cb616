//! Parts of an event that know nothing of events: where its breakpoint looks ([`Aim`]), and what its samples owe ([`Owed`]).

mod aim;
mod owed;

pub(super) use aim::{Aim, Spot};
pub(super) use owed::{Listener, Owed};
