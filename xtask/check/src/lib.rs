//! Boots and tests of our own: a shell (`run`), any kernel (`boot`, `image`), gdb (`debug`), the ABI programs (`abi`), the fuzzer (`fuzz`),
//! a timeline of a program (`trace`), everything at once (`soak`), memory that runs out (`exhaust`), two boots of a machine without entropy (`twins`), twins of a machine that was saved (`snapshots`),
//! all tests (`test`), Miri, proofs, mutants, the kernel that checks itself (`checking`), and alea-random as others use it (`adopters`,
//! `bare`).
#![forbid(unsafe_code)]

pub mod abi;
pub mod adopters;
pub mod bare;
pub mod boot;
pub mod checking;
pub mod commands;
pub mod debug;
pub mod exhaust;
pub mod fuzz;
pub mod image;
pub mod miri;
pub mod mutants;
pub mod proofs;
pub mod residue;
pub mod run;
pub mod snapshots;
pub mod soak;
pub mod test;
pub mod trace;
pub mod twins;
