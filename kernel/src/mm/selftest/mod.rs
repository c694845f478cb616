//! Tests of the live memory code, run at boot when the command line has `alea.selftest`.

mod figures;
mod selftest;
mod spaces;

pub use selftest::run;
