//! Tests of the live memory code, run at boot when the command line has `alea.selftest`.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "self tests, at boot")]

mod figures;
mod isolated;
mod secret;
mod selftest;
mod spaces;
mod wipes;

pub use selftest::run;
