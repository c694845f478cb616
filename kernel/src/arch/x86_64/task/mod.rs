//! The machine's half of a task: its state (`task`), the switch (`switch`), its vector
//! registers (`fpu`), its breakpoints (`debug`).

pub mod debug;
pub mod fpu;
pub mod switch;
mod task;

pub use task::{Calls, Machine, OwnCalls, Running, Stack, Tasks, may_have_own_calls};
