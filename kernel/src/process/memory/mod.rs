//! Memory of processes: what a fault means to them, and who has to go when there is none left.

pub mod fault;
pub(super) mod oom;
