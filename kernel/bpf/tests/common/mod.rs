//! What the tests of both kinds of programs share.

use alea_bpf::Insn;
use proptest::sample::Index;

/// Turns one bit of a program over: in which instruction.
pub fn flip(program: &mut [Insn], at: Index, bit: u32) -> usize {
    let at = at.index(program.len());
    let bits = u64::from_le_bytes(program[at].to_bytes()) ^ 1 << bit;
    program[at] = Insn::from_bytes(bits.to_le_bytes());
    at
}
