//! Classic BPF: a filter of system calls, as seccomp(2) has it, and a filter of packets, as sockets have it.
//!
//! | module | what it is |
//! |---|---|
//! | [`insn`] | an instruction as a program hands it over, and the numbers of the opcodes |
//! | [`program`] | [`Program`]: instructions that have been checked; running them |
//! | [`filter`] | [`Filter`]: the same for packets, with loads from them and of what Linux tells of them |
//! | [`packet`] | [`Packet`]: what a filter of packets looks at |
//! | `check` | the rules: Linux's `bpf_check_classic` and `seccomp_check_filter` |
//! | `op` | an instruction as it is run |
//! | `rows` | many comparisons in a row as a table |
//!
//! A [`Program`] or [`Filter`] is made by the check only. Running one cannot read out of bounds, panic or loop: jumps go forward only,
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
pub mod filter;
pub mod insn;
mod op;
pub mod packet;
pub mod program;
mod rows;

pub use check::{Fault, Refusal};
pub use filter::Filter;
pub use insn::Insn;
pub use op::Word;
pub use packet::{Device, Facts, Packet};
pub use program::{Data, MAX_LEN, OnNumber, Program, Start};

/// Words of `struct seccomp_data`: number, architecture, instruction pointer and six arguments, low halves first.
pub const DATA_WORDS: usize = 16;
/// Scratch cells of a program.
pub const CELLS: usize = 16;
