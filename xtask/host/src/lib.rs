//! The host that xtask runs on: where files lie (`paths`), other programs (`process`), what is shown to people (`table`,
//! `term`), what they type (`keys`), and how many checks passed (`tally`).
#![forbid(unsafe_code)]

pub mod keys;
pub mod paths;
pub mod process;
pub mod table;
pub mod tally;
pub mod term;
