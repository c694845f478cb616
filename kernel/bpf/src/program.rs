//! [`Program`]: instructions that have been checked, and running them.

use crate::check::{Refusal, check};
use crate::insn::Insn;
use crate::op::Op;
use crate::{CELLS, DATA_WORDS};
use alloc::vec::Vec;

/// The most instructions of one program.
pub const MAX_LEN: usize = 4096;

/// Instructions that have been checked.
#[derive(Debug)]
pub struct Program {
    insns: Vec<Insn>,
    ops: Vec<Op>,
}

impl Program {
    /// Checks instructions.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(insns: Vec<Insn>) -> Result<Self, Refusal> {
        let ops = check(&insns)?;
        Ok(Self { insns, ops })
    }

    /// The instructions that it was made of.
    pub fn instructions(&self) -> &[Insn] {
        &self.insns
    }

    /// How many instructions Linux counts, which runs it in another form: those, and three that begin.
    pub fn weight(&self) -> usize {
        self.ops.iter().map(|op| op.weight()).fold(3, usize::saturating_add)
    }

    /// What it says of a call.
    #[inline]
    pub fn run(&self, data: &[u32; DATA_WORDS]) -> u32 {
        // `All` has every word, so there is always an answer.
        self.run_on(&All(data)).unwrap_or(0)
    }

    /// What it says of every call with this number and architecture, if that is the same for all: it looks at
    /// nothing else.
    pub fn run_on_number(&self, number: u32, arch: u32) -> Option<u32> {
        self.run_on(&Head { number, arch })
    }

    #[inline(always)]
    fn run_on(&self, data: &impl Words) -> Option<u32> {
        let (mut a, mut x, mut cells) = (0u32, 0u32, [0u32; CELLS]);
        let mut rest = self.ops.as_slice();
        // Each round leaves less of `rest`.
        while let Some((op, next)) = rest.split_first() {
            rest = next;
            let (jt, jf, holds) = match *op {
                Op::EqK(jt, jf, k) => (jt, jf, a == k),
                Op::GtK(jt, jf, k) => (jt, jf, a > k),
                Op::GeK(jt, jf, k) => (jt, jf, a >= k),
                Op::SetK(jt, jf, k) => (jt, jf, a & k != 0),
                Op::EqX(jt, jf) => (jt, jf, a == x),
                Op::GtX(jt, jf) => (jt, jf, a > x),
                Op::GeX(jt, jf) => (jt, jf, a >= x),
                Op::SetX(jt, jf) => (jt, jf, a & x != 0),
                Op::Jump(by) => {
                    rest = after(next, by as usize);
                    continue;
                }
                Op::ReturnK(k) => return Some(k),
                Op::ReturnA => return Some(a),
                Op::Load(word) => {
                    a = data.word(word.index())?;
                    continue;
                }
                plain => {
                    let Some(value) = step(plain, a, &mut x, &mut cells) else { return Some(0) };
                    a = value;
                    continue;
                }
            };
            rest = after(next, usize::from(if holds { jt } else { jf }));
        }
        // Not reached: the last instruction returns. What a program without an answer would mean is the strictest action.
        Some(0)
    }
}

#[inline(always)]
fn after(ops: &[Op], by: usize) -> &[Op] {
    ops.get(by..).unwrap_or_default()
}

/// An instruction that goes on with the next one: what A is after it, or `None` if it divides by zero.
#[inline(always)]
fn step(op: Op, a: u32, x: &mut u32, cells: &mut [u32; CELLS]) -> Option<u32> {
    match op {
        Op::Imm(k) => return Some(k),
        Op::ImmX(k) => *x = k,
        Op::Mem(cell) => return Some(cells.get(cell.index()).copied().unwrap_or(0)),
        Op::MemX(cell) => *x = cells.get(cell.index()).copied().unwrap_or(0),
        Op::Store(cell) => put(cells, cell.index(), a),
        Op::StoreX(cell) => put(cells, cell.index(), *x),
        Op::Tax => *x = a,
        Op::Txa => return Some(*x),
        Op::Neg => return Some(a.wrapping_neg()),
        Op::AluK(alu, k) => return alu.apply(a, k),
        Op::AluX(alu) => return alu.apply(a, *x),
        // Loads, jumps and returns are `run_on`'s.
        _ => {}
    }
    Some(a)
}

#[inline(always)]
fn put(cells: &mut [u32; CELLS], at: usize, value: u32) {
    if let Some(cell) = cells.get_mut(at) {
        *cell = value;
    }
}

/// What is known of a call.
trait Words {
    /// One word of its data, which are [`DATA_WORDS`].
    fn word(&self, at: usize) -> Option<u32>;
}

struct All<'a>(&'a [u32; DATA_WORDS]);

impl Words for All<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> Option<u32> {
        self.0.get(at).copied()
    }
}

struct Head {
    number: u32,
    arch: u32,
}

impl Words for Head {
    fn word(&self, at: usize) -> Option<u32> {
        match at {
            0 => Some(self.number),
            1 => Some(self.arch),
            _ => None,
        }
    }
}
