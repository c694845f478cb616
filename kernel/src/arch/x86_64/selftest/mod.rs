//! Tests of this floor, run at boot when the command line has `alea.selftest`; `user` is the program that they run.

mod bounds;
mod selftest;
mod shift;
mod sites;
mod user;

pub use selftest::run;
