//! What /proc shows of processes: fills the slot of procfs.
//!
//! Every text is made in one go from what the process says at that moment. A task is named by its number; one that is
//! gone meanwhile is `ESRCH`.

pub mod log;
pub(super) mod memory;
mod misc;
mod objects;
mod phases;
pub(super) mod processes;
mod shown;
mod stat;
mod status;
mod symbols;
mod totals;

pub(super) use processes::register;
