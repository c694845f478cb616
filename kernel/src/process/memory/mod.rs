//! Memory of processes: what a fault means to them, and who has to go when there is none left.

pub mod fault;
pub(super) mod oom;
pub use oom::{KILL_ALLOCATING_TASK, PANIC_ON_OOM, kill_on_demand};
