//! `cargo xtask ci`, which uses all other libraries of xtask.
#![forbid(unsafe_code)]

pub mod ci;
pub mod commands;
mod newcomer;
