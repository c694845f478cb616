//! `cargo xtask bench`: the same guest program on Linux and on Alea, boots interleaved.
//!
//! `bench` is the command and the boots, `results` what they gave, `goals` what the design asks for, `about` the
//! circumstances, `show` where figures go that stay.

mod about;
mod bench;
mod goals;
mod results;
mod show;

pub use bench::{Bench, Both, Kernel};
