//! Work for many machines: which part of it is this machine's (`shard`, `divide`), what came of a part (`results`, `junit`), how a
//! command asks for its part (`share`), how long pieces take (`stopwatch`), and one report of all parts (`merge`).
//!
//! Nothing here starts a machine or a guest: where parts run, and again if one dies, is the business of who starts them.
#![forbid(unsafe_code)]

pub mod commands;
pub mod divide;
pub mod junit;
pub mod merge;
pub mod results;
pub mod shard;
pub mod share;
pub mod stopwatch;
