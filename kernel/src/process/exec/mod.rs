//! exec: `exec` is the way; `image` maps, `args` gathers strings, `stack` lays out what the program finds (`block`), `script`
//! follows `#!`, `threads` ends the others, `commit` is the point of no return.

mod args;
mod block;
mod commit;
mod cred;
mod exec;
mod image;
mod layout;
mod open;
mod program;
mod script;
mod stack;
mod threads;

pub use args::UserStrings;
pub use exec::{ExecRequest, execve};
pub(in crate::process) use layout::{LEGACY_VA_LAYOUT, RANDOMIZE_VA_SPACE};
pub use program::Program;
