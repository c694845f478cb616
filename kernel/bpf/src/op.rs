//! An instruction as it is run: what it does is told by one look, and every index is one that is there.

use crate::insn::{Insn, code};
use crate::{CELLS, DATA_WORDS};

/// Which word of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u8);

impl Word {
    /// By its offset in bytes, if it is aligned and inside.
    pub(crate) fn at(offset: u32) -> Option<Self> {
        let word = u8::try_from(offset / 4).ok()?;
        (offset.is_multiple_of(4) && usize::from(word) < DATA_WORDS).then_some(Self(word))
    }

    /// Its place, which is one that is there.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0) % DATA_WORDS
    }
}

/// Which scratch cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell(u8);

impl Cell {
    pub(crate) fn at(index: u32) -> Option<Self> {
        let cell = u8::try_from(index).ok()?;
        (usize::from(cell) < CELLS).then_some(Self(cell))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0) % CELLS
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    /// Of packets' filters alone.
    Mod,
    Or,
    And,
    Lsh,
    Rsh,
    Xor,
}

impl Alu {
    /// `None` for a division by zero, which ends the program with 0.
    #[inline(always)]
    pub(crate) fn apply(self, a: u32, by: u32) -> Option<u32> {
        Some(match self {
            Self::Add => a.wrapping_add(by),
            Self::Sub => a.wrapping_sub(by),
            Self::Mul => a.wrapping_mul(by),
            Self::Div => return a.checked_div(by),
            Self::Mod => return a.checked_rem(by),
            Self::Or => a | by,
            Self::And => a & by,
            // The low five bits count, as where Linux compiles it.
            Self::Lsh => a.wrapping_shl(by),
            Self::Rsh => a.wrapping_shr(by),
            Self::Xor => a ^ by,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Load(Word),
    Imm(u32),
    ImmX(u32),
    Mem(Cell),
    MemX(Cell),
    Store(Cell),
    StoreX(Cell),
    Tax,
    Txa,
    Neg,
    AluK(Alu, u32),
    AluX(Alu),
    Jump(u32),
    EqK(u8, u8, u32),
    /// The first comparison of a row, which is looked up in this table.
    Row(u16),
    GtK(u8, u8, u32),
    GeK(u8, u8, u32),
    SetK(u8, u8, u32),
    EqX(u8, u8),
    GtX(u8, u8),
    GeX(u8, u8),
    SetX(u8, u8),
    ReturnK(u32),
    ReturnA,
}

const _: () = assert!(size_of::<Op>() == 8);

/// Where an instruction can go on, counted from the next one.
pub(crate) enum Flow {
    Next,
    To(u32),
    Either(u8, u8),
    Ends,
}

/// What is wrong with one instruction, seen by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An opcode that seccomp does not allow, or that does not exist.
    Opcode,
    /// A word of the data that is not there, or not aligned.
    Data,
    /// A scratch cell that is not there.
    Cell,
    /// A division by the constant zero, or a shift by 32 or more.
    Constant,
}

impl Op {
    pub(crate) fn decode(insn: &Insn) -> Result<Self, Fault> {
        let Insn { code, jt, jf, k } = *insn;
        let cell = || Cell::at(k).ok_or(Fault::Cell);
        Ok(match code {
            code::LD_W_ABS => Self::Load(Word::at(k).ok_or(Fault::Data)?),
            code::LD_W_LEN => Self::Imm(DATA_BYTES),
            code::LDX_W_LEN => Self::ImmX(DATA_BYTES),
            code::LD_IMM => Self::Imm(k),
            code::LDX_IMM => Self::ImmX(k),
            code::LD_MEM => Self::Mem(cell()?),
            code::LDX_MEM => Self::MemX(cell()?),
            code::ST => Self::Store(cell()?),
            code::STX => Self::StoreX(cell()?),
            code::RET_K => Self::ReturnK(k),
            code::RET_A => Self::ReturnA,
            code::TAX => Self::Tax,
            code::TXA => Self::Txa,
            code::NEG => Self::Neg,
            code::JA => Self::Jump(k),
            _ if code & 7 == 5 => Self::comparison(code, jt, jf, k).ok_or(Fault::Opcode)?,
            _ => {
                let alu = alu(code & !code::X).ok_or(Fault::Opcode)?;
                let wrong = match alu {
                    Alu::Div => k == 0,
                    Alu::Lsh | Alu::Rsh => k >= 32,
                    _ => false,
                };
                match code & code::X != 0 {
                    true => Self::AluX(alu),
                    false if wrong => return Err(Fault::Constant),
                    false => Self::AluK(alu, k),
                }
            }
        })
    }

    fn comparison(code: u16, jt: u8, jf: u8, k: u32) -> Option<Self> {
        let by_x = code & code::X != 0;
        Some(match (code & !code::X, by_x) {
            (code::JEQ_K, false) => Self::EqK(jt, jf, k),
            (code::JGT_K, false) => Self::GtK(jt, jf, k),
            (code::JGE_K, false) => Self::GeK(jt, jf, k),
            (code::JSET_K, false) => Self::SetK(jt, jf, k),
            (code::JEQ_K, true) => Self::EqX(jt, jf),
            (code::JGT_K, true) => Self::GtX(jt, jf),
            (code::JGE_K, true) => Self::GeX(jt, jf),
            (code::JSET_K, true) => Self::SetX(jt, jf),
            _ => return None,
        })
    }

    /// How many instructions Linux makes of it before it runs it, which is what its limit counts.
    pub(crate) fn weight(self) -> usize {
        match self {
            // The quotient, after a look whether it divides by zero.
            Self::AluX(Alu::Div | Alu::Mod) => 5,
            Self::ReturnK(_) => 2,
            // A constant that looks negative is loaded first; a jump that goes on nowhere with the next one is two, and so is
            // one whose comparison has no opposite.
            Self::EqK(jt, jf, k) | Self::GtK(jt, jf, k) | Self::GeK(jt, jf, k) => {
                two_ways(jt, jf).saturating_add(usize::from(k >> 31 != 0))
            }
            Self::SetK(_, jf, k) => two_ways(1, jf).saturating_add(usize::from(k >> 31 != 0)),
            Self::EqX(jt, jf) | Self::GtX(jt, jf) | Self::GeX(jt, jf) => two_ways(jt, jf),
            Self::SetX(_, jf) => two_ways(1, jf),
            _ => 1,
        }
    }

    pub(crate) fn flow(self) -> Flow {
        match self {
            Self::Jump(by) => Flow::To(by),
            Self::EqK(jt, jf, _) | Self::GtK(jt, jf, _) => Flow::Either(jt, jf),
            Self::GeK(jt, jf, _) | Self::SetK(jt, jf, _) => Flow::Either(jt, jf),
            Self::EqX(jt, jf) | Self::GtX(jt, jf) => Flow::Either(jt, jf),
            Self::GeX(jt, jf) | Self::SetX(jt, jf) => Flow::Either(jt, jf),
            Self::ReturnK(_) | Self::ReturnA => Flow::Ends,
            _ => Flow::Next,
        }
    }
}

fn two_ways(jt: u8, jf: u8) -> usize {
    if jt == 0 || jf == 0 { 1 } else { 2 }
}

/// What `BPF_LEN` gives.
const DATA_BYTES: u32 = 64;

fn alu(code: u16) -> Option<Alu> {
    Some(match code {
        code::ADD_K => Alu::Add,
        code::SUB_K => Alu::Sub,
        code::MUL_K => Alu::Mul,
        code::DIV_K => Alu::Div,
        code::OR_K => Alu::Or,
        code::AND_K => Alu::And,
        code::LSH_K => Alu::Lsh,
        code::RSH_K => Alu::Rsh,
        code::XOR_K => Alu::Xor,
        _ => return None,
    })
}
