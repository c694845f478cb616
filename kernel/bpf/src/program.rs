//! [`Program`]: instructions that have been checked, and running them.

use crate::check::{Refusal, check};
use crate::insn::Insn;
use crate::op::Op;
use crate::rows::{self, Row};
use crate::{CELLS, DATA_WORDS};
use alloc::vec::Vec;

/// The most instructions of one program.
pub const MAX_LEN: usize = 4096;

/// Instructions that have been checked.
#[derive(Debug)]
pub struct Program {
    insns: Vec<Insn>,
    ops: Vec<Op>,
    rows: Vec<Row>,
    weight: usize,
}

impl Program {
    /// Checks instructions.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(insns: Vec<Insn>) -> Result<Self, Refusal> {
        let mut ops = check(&insns)?;
        let weight = ops.iter().map(|op| op.weight()).fold(3, usize::saturating_add);
        let rows = rows::find(&mut ops)?;
        Ok(Self { insns, ops, rows, weight })
    }

    /// The instructions that it was made of.
    pub fn instructions(&self) -> &[Insn] {
        &self.insns
    }

    /// How many instructions Linux counts, which runs it in another form: those, and three that begin.
    pub fn weight(&self) -> usize {
        self.weight
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
            // Each comparison jumps by itself: what it looks at is known where it is decoded.
            match *op {
                Op::EqK(jt, jf, k) => {
                    rest = after(next, if a == k { jt } else { jf });
                    rest = behind_others(rest, a);
                }
                Op::Row(number) => rest = self.behind_row(number, a),
                Op::GtK(jt, jf, k) => rest = after(next, if a > k { jt } else { jf }),
                Op::GeK(jt, jf, k) => rest = after(next, if a >= k { jt } else { jf }),
                Op::SetK(jt, jf, k) => rest = after(next, if a & k != 0 { jt } else { jf }),
                Op::EqX(jt, jf) => rest = after(next, if a == x { jt } else { jf }),
                Op::GtX(jt, jf) => rest = after(next, if a > x { jt } else { jf }),
                Op::GeX(jt, jf) => rest = after(next, if a >= x { jt } else { jf }),
                Op::SetX(jt, jf) => rest = after(next, if a & x != 0 { jt } else { jf }),
                Op::Jump(by) => rest = next.get(by as usize..).unwrap_or_default(),
                Op::ReturnK(k) => return Some(k),
                Op::ReturnA => return Some(a),
                Op::Load(word) => a = data.word(word.index())?,
                plain => match step(plain, a, &mut x, &mut cells) {
                    Some(value) => a = value,
                    None => return Some(0),
                },
            }
        }
        // Not reached: the last instruction returns. What a program without an answer would mean is the strictest action.
        Some(0)
    }
}

impl Program {
    /// Where a row of comparisons leads to.
    #[inline(always)]
    fn behind_row(&self, number: u16, a: u32) -> &[Op] {
        let target = self.rows.get(usize::from(number)).map(|row| row.target(a));
        target.and_then(|target| self.ops.get(target..)).unwrap_or_default()
    }
}

/// Behind the comparisons that stand in a row, say no, and then go on with the next one: what most of a filter is.
#[inline(always)]
fn behind_others(mut ops: &[Op], a: u32) -> &[Op] {
    while let Some((Op::EqK(_, 0, k), next)) = ops.split_first()
        && a != *k
    {
        ops = next;
    }
    ops
}

#[inline(always)]
fn after(ops: &[Op], by: u8) -> &[Op] {
    ops.get(usize::from(by)..).unwrap_or_default()
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
