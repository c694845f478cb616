//! `cargo xtask bench`: the same guest program on Linux and on Alea, boots interleaved.
//!
//! `bench` is the command and the boots, `results` what they gave, `goals` what the design asks for, `mission` the comparison that a
//! test makes of them, `about` the circumstances, `model` what hardware pays for, `part` the rows of one machine of several, `show` where figures go that stay.

mod about;
mod bench;
mod goals;
mod mission;
mod model;
mod part;
mod results;
mod show;

pub use bench::{Bench, Both, Kernel, SETTLE};
pub use mission::{Ratio, mission};
