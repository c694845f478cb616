//! Classic BPF, as seccomp(2) has it: a filter of system calls.
//!
//! | module | what it is |
//! |---|---|
//! | [`insn`] | an instruction as a program hands it over, and the numbers of the opcodes |
//! | [`program`] | [`Program`]: instructions that have been checked; running them |
//! | `check` | the rules: Linux's `bpf_check_classic` and `seccomp_check_filter` |
//! | `op` | an instruction as it is run |
//! | `rows` | many comparisons in a row as a table |
//!
//! A [`Program`] is made by the check only. Running one cannot read out of bounds, panic or loop: jumps go forward only,
//! data and cells are found by an index that is always there, and lints refuse what could panic.
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]

extern crate alloc;

mod check;
pub mod insn;
mod op;
pub mod program;
mod rows;

pub use check::{Fault, Refusal};
pub use insn::Insn;
pub use op::Word;
pub use program::{Data, MAX_LEN, OnNumber, Program, Start};

/// Words of `struct seccomp_data`: number, architecture, instruction pointer and six arguments, low halves first.
pub const DATA_WORDS: usize = 16;
/// Scratch cells of a program.
pub const CELLS: usize = 16;
