//! Semaphores: sets of them and operations (`set`), semctl (`control`), what the end of a process takes back (`undo`).

mod control;
mod set;
mod undo;

pub use control::{
    all_values, count, info, limits, most_ops, pid_of, remove, set_all, set_owner, set_value, stat,
    value, waiting,
};
pub use set::{for_each, get, operate};
pub use undo::{Undo, UndoList};
