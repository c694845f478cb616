//! The host that xtask runs on: where files lie (`paths`), other programs (`process`), what is shown to people (`table`,
//! `term`), what they type (`keys`), what room its disk has (`disk`), how many checks passed (`tally`), and what all programs of xtask share
//! (`commands`).
#![forbid(unsafe_code)]

pub mod commands;
pub mod disk;
pub mod keys;
pub mod paths;
pub mod process;
pub mod table;
pub mod tally;
pub mod term;
