//! [`Program`]: instructions that have been checked, and running them.

use crate::check::{Refusal, check};
use crate::insn::Insn;
use crate::op::{Alu, Op, Word};
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
        self.run_from(Start::default(), data)
    }

    /// The same from a start that [`Program::on_number`] gave for the number and the architecture of this call.
    #[inline]
    pub fn run_from(&self, start: Start, data: &impl Data) -> u32 {
        let ops = self.ops.get(usize::from(start.0)..).unwrap_or_default();
        match self.run_plain(ops, data) {
            Some(said) => said,
            None => self.run_whole(ops, data),
        }
    }

    /// Runs `ops` as long as they are what most of a filter is, for which A is all that there is to keep.
    #[inline(always)]
    fn run_plain(&self, ops: &[Op], data: &impl Data) -> Option<u32> {
        let mut a = 0u32;
        let mut rest = ops;
        // Each round leaves less of `rest`.
        while let Some((op, next)) = rest.split_first() {
            rest = match *op {
                Op::Load(word) => {
                    a = data.word(word);
                    next
                }
                Op::AluK(Alu::And, k) => {
                    a &= k;
                    next
                }
                Op::EqK(jt, jf, k) => behind_others(after(next, if a == k { jt } else { jf }), a),
                Op::Row(number) => self.behind_row(number, a),
                Op::GtK(jt, jf, k) => after(next, if a > k { jt } else { jf }),
                Op::GeK(jt, jf, k) => after(next, if a >= k { jt } else { jf }),
                Op::SetK(jt, jf, k) => after(next, if a & k != 0 { jt } else { jf }),
                Op::ReturnK(k) => return Some(k),
                _ => return None,
            };
        }
        None
    }

    /// The same for all instructions there are.
    #[inline(never)]
    fn run_whole(&self, ops: &[Op], data: &impl Data) -> u32 {
        // All words are there, so there is always an answer.
        self.run_on(ops, &All(data)).said.unwrap_or(0)
    }

    /// What is known of all calls with this number and architecture: what it says, if it looks at nothing else, and
    /// where to start.
    pub fn on_number(&self, number: u32, arch: u32) -> OnNumber {
        let end = self.run_on(&self.ops, &Head { number, arch });
        // An instruction that returns a number says so from the start, and one that loads needs nothing of what was before
        // if the rest is as it was at the beginning.
        let place = match self.ops.len().saturating_sub(end.left) {
            at if end.is_untouched => u16::try_from(at).unwrap_or(0),
            _ => 0,
        };
        OnNumber { said: end.said, start: Start(place) }
    }

    /// Runs `ops`, which are its last ones.
    #[inline(always)]
    fn run_on(&self, ops: &[Op], data: &impl Words) -> End {
        let (mut a, mut x, mut cells) = (0u32, 0u32, [0u32; CELLS]);
        let mut rest = ops;
        // Each round leaves less of `rest`.
        while let Some((op, next)) = rest.split_first() {
            let left = rest.len();
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
                Op::ReturnK(k) => return End { said: Some(k), left, is_untouched: true },
                Op::ReturnA => return End { said: Some(a), left, is_untouched: false },
                Op::Load(word) => match data.word(word) {
                    Some(value) => a = value,
                    None => {
                        let is_untouched = x == 0 && cells == [0; CELLS];
                        return End { said: None, left, is_untouched };
                    }
                },
                plain => match step(plain, a, &mut x, &mut cells) {
                    Some(value) => a = value,
                    None => return End { said: Some(0), left, is_untouched: false },
                },
            }
        }
        // Not reached: the last instruction returns. What a program without an answer would mean is the strictest action.
        End { said: Some(0), left: 0, is_untouched: false }
    }
}

/// How a run ended.
struct End {
    /// What it says; `None` if it asked for a word that is not known.
    said: Option<u32>,
    /// Instructions from the last one on.
    left: usize,
    /// That one does the same if the program begins with it.
    is_untouched: bool,
}

/// Where a program can start for all calls of one number; the default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start(u16);

/// What a program does with all calls of one number.
#[derive(Clone, Copy, Debug)]
pub struct OnNumber {
    /// What it says of them all, if it looks at nothing but number and architecture.
    pub said: Option<u32>,
    /// Where it can start for them.
    pub start: Start,
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
pub(crate) fn step(op: Op, a: u32, x: &mut u32, cells: &mut [u32; CELLS]) -> Option<u32> {
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

/// The data of a call, `struct seccomp_data`.
pub trait Data {
    /// One of its words.
    fn word(&self, word: Word) -> u32;
}

impl Data for [u32; DATA_WORDS] {
    #[inline(always)]
    fn word(&self, word: Word) -> u32 {
        self.get(word.index()).copied().unwrap_or(0)
    }
}

/// What is known of a call.
trait Words {
    fn word(&self, word: Word) -> Option<u32>;
}

struct All<'a, T>(&'a T);

impl<T: Data> Words for All<'_, T> {
    #[inline(always)]
    fn word(&self, word: Word) -> Option<u32> {
        Some(self.0.word(word))
    }
}

struct Head {
    number: u32,
    arch: u32,
}

impl Words for Head {
    fn word(&self, word: Word) -> Option<u32> {
        match word.index() {
            0 => Some(self.number),
            1 => Some(self.arch),
            _ => None,
        }
    }
}
