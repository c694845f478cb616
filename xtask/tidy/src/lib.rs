//! The house rules (`tidy`, one file a rule in `rules`), and the pages of docs that are made from data (`shown`, `runs`,
//! `words`, `syscalls`).
#![forbid(unsafe_code)]

pub mod commands;
mod data;
mod faults;
mod graph;
pub mod injected;
mod marked;
mod rules;
pub mod runs;
mod scan;
pub mod shown;
pub mod shrink;
pub mod syscalls;
pub mod tidy;
mod tree;
mod words;
