//! A task and its process: what they hold, who runs now (`current`), whom they count against (`users`, `limits`).

pub(super) mod caller;
mod chosen;
pub mod current;
mod ending;
pub(super) mod flags;
pub mod later;
pub mod limits;
pub(super) mod members;
pub(super) mod process;
pub mod registered;
pub mod rseq;
mod speculation;
pub(super) mod task;
pub(super) mod users;
pub(super) mod work;
