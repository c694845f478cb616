//! When something went wrong: looking at other CPUs and stopping them, walking a stack, crashing on purpose.

pub mod backtrace;
pub mod crash;
mod stop;

pub(super) use stop::on_nmi;
pub use stop::{are_stopped, look, stop_when_seen};
