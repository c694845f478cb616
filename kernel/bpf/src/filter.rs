//! [`Filter`]: a filter of packets, as sockets have it: the check, and running it.
//!
//! Owns the instructions as they came and as they are run. Its rules are Linux's `bpf_check_classic` and `bpf_convert_filter`.

use crate::CELLS;
use crate::check::{Refusal, check_flow};
use crate::insn::{Insn, code, packet_code as more};
use crate::op::{Alu, Fault, Op};
use crate::packet::{MOST_ATTRIBUTES, Packet, Size};
use crate::program::{self, MAX_LEN};
use alloc::vec::Vec;

/// What Linux tells of a packet (`SKF_AD_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Protocol,
    /// Pkttype, queue and VLAN: nothing here has any, or another than 0. With what Linux makes of it.
    None(u8),
    Index,
    Attribute,
    Nested,
    Mark,
    Kind,
    Hash,
    Cpu,
    XorX,
    Payload,
    Random,
}

/// Offsets from here on are no offsets (`SKF_AD_OFF`).
const TOLD: u32 = 0xffff_f000;

impl Told {
    fn of(offset: u32) -> Option<Self> {
        Some(match offset.checked_sub(TOLD)? {
            0 => Self::Protocol,
            4 => Self::None(2),
            8 => Self::Index,
            12 => Self::Attribute,
            16 => Self::Nested,
            20 => Self::Mark,
            24 => Self::None(1),
            28 => Self::Kind,
            32 => Self::Hash,
            36 => Self::Cpu,
            40 => Self::XorX,
            44 => Self::None(1),
            48 => Self::None(3),
            52 => Self::Payload,
            56 => Self::Random,
            60 => Self::None(2),
            _ => return None,
        })
    }

    /// How many instructions Linux makes of it.
    fn weight(self) -> usize {
        match self {
            Self::None(weight) => weight.into(),
            Self::Protocol => 2,
            Self::Mark | Self::Hash | Self::XorX => 1,
            _ => 4,
        }
    }
}

/// An instruction of a filter of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Plain(Op),
    Absolute(Size, i32),
    /// From X on.
    Indirect(Size, u32),
    /// X is the length in an IP header at this offset.
    HeaderLength(i32),
    Told(Told),
    Length,
    LengthX,
}

impl Step {
    fn decode(insn: &Insn) -> Result<Self, Fault> {
        let Insn { code, k, .. } = *insn;
        let absolute = |size| match Told::of(k) {
            Some(told) => Ok(Self::Told(told)),
            None if k >= TOLD => Err(Fault::Data),
            None => Ok(Self::Absolute(size, k.cast_signed())),
        };
        Ok(match code {
            code::LD_W_ABS => absolute(Size::Word)?,
            more::LD_H_ABS => absolute(Size::Half)?,
            more::LD_B_ABS => absolute(Size::Byte)?,
            more::LD_W_IND => Self::Indirect(Size::Word, k),
            more::LD_H_IND => Self::Indirect(Size::Half, k),
            more::LD_B_IND => Self::Indirect(Size::Byte, k),
            more::LDX_B_MSH => Self::HeaderLength(k.cast_signed()),
            code::LD_W_LEN => Self::Length,
            code::LDX_W_LEN => Self::LengthX,
            more::MOD_K if k == 0 => return Err(Fault::Constant),
            more::MOD_K => Self::Plain(Op::AluK(Alu::Mod, k)),
            _ if code == more::MOD_K | code::X => Self::Plain(Op::AluX(Alu::Mod)),
            _ => Self::Plain(Op::decode(insn)?),
        })
    }

    /// The same for who looks at cells and jumps alone.
    fn plain(self) -> Op {
        match self {
            Self::Plain(op) => op,
            _ => Op::Neg,
        }
    }

    fn is_load(self) -> bool {
        matches!(self, Self::Absolute(..) | Self::Indirect(..) | Self::HeaderLength(_))
    }

    /// How many instructions Linux makes of it, whose number a socket is charged for.
    fn weight(self) -> usize {
        match self {
            Self::Plain(op) => op.weight(),
            Self::Absolute(size, offset) => absolute_weight(size, offset),
            Self::HeaderLength(offset) => absolute_weight(Size::Byte, offset).saturating_add(6),
            Self::Indirect(_, offset) => 8usize.saturating_add((offset != 0).into()),
            Self::Told(told) => told.weight(),
            Self::Length | Self::LengthX => 1,
        }
    }
}

/// A call that looks everywhere, and before it what reads straight from the data.
fn absolute_weight(size: Size, offset: i32) -> usize {
    let straight = match offset {
        ..0 => return 8,
        0 => 4,
        1..=0x7fff => 5,
        _ => 7usize,
    };
    straight.saturating_add((size != Size::Byte).into()).saturating_add(8)
}

/// Instructions that have been checked.
#[derive(Debug)]
pub struct Filter {
    insns: Vec<Insn>,
    steps: Vec<Step>,
    weight: usize,
}

impl Filter {
    /// Checks instructions.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(insns: Vec<Insn>) -> Result<Self, Refusal> {
        if insns.is_empty() || insns.len() > MAX_LEN {
            return Err(Refusal::Length);
        }
        let mut steps = Vec::new();
        steps.try_reserve_exact(insns.len()).map_err(|_| Refusal::NoMemory)?;
        for (at, insn) in insns.iter().enumerate() {
            steps.push(Step::decode(insn).map_err(|fault| Refusal::Instruction(at, fault))?);
        }
        check_flow(steps.iter().map(|step| step.plain()))?;
        let begin = if steps.iter().any(|step| step.is_load()) { 7 } else { 3 };
        let weight = steps.iter().map(|step| step.weight()).fold(begin, usize::saturating_add);
        Ok(Self { insns, steps, weight })
    }

    /// The instructions that it was made of.
    pub fn instructions(&self) -> &[Insn] {
        &self.insns
    }

    /// How many instructions Linux counts, which runs it in another form.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// How many bytes of a packet it lets through; 0 for none.
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        let (mut a, mut x, mut cells) = (0u32, 0u32, [0u32; CELLS]);
        let (mut rest, mut attributes) = (self.steps.as_slice(), MOST_ATTRIBUTES);
        // Each round leaves less of `rest`.
        while let Some((step, next)) = rest.split_first() {
            rest = next;
            let loaded = match *step {
                Step::Plain(Op::ReturnK(k)) => return k,
                Step::Plain(Op::ReturnA) => return a,
                Step::Plain(op) => match skipped(op, a, x) {
                    Some(by) => {
                        rest = next.get(by..).unwrap_or_default();
                        continue;
                    }
                    None => program::step(op, a, &mut x, &mut cells),
                },
                Step::Absolute(size, offset) => packet.load(offset, size),
                Step::Indirect(size, k) => packet.load(x.wrapping_add(k).cast_signed(), size),
                Step::HeaderLength(offset) => packet.load(offset, Size::Byte).map(|byte| {
                    x = (byte & 0xf) << 2;
                    a
                }),
                Step::Length => Some(packet.len()),
                Step::LengthX => {
                    x = packet.len();
                    Some(a)
                }
                Step::Told(Told::Attribute) => packet.attribute(a, x, false, &mut attributes),
                Step::Told(Told::Nested) => packet.attribute(a, x, true, &mut attributes),
                Step::Told(told) => match tell(told, packet, a, x) {
                    Some(value) => Some(value),
                    // As on Linux, A is what it says then.
                    None => return a,
                },
            };
            match loaded {
                Some(value) => a = value,
                None => return 0,
            }
        }
        // Not reached: the last instruction returns.
        0
    }
}

/// What a jump passes over; `None` for what is no jump.
fn skipped(op: Op, a: u32, x: u32) -> Option<usize> {
    let (holds, jt, jf) = match op {
        Op::Jump(by) => return Some(usize::try_from(by).unwrap_or(usize::MAX)),
        Op::EqK(jt, jf, k) => (a == k, jt, jf),
        Op::GtK(jt, jf, k) => (a > k, jt, jf),
        Op::GeK(jt, jf, k) => (a >= k, jt, jf),
        Op::SetK(jt, jf, k) => (a & k != 0, jt, jf),
        Op::EqX(jt, jf) => (a == x, jt, jf),
        Op::GtX(jt, jf) => (a > x, jt, jf),
        Op::GeX(jt, jf) => (a >= x, jt, jf),
        Op::SetX(jt, jf) => (a & x != 0, jt, jf),
        _ => return None,
    };
    Some(usize::from(if holds { jt } else { jf }))
}

/// What is told of a packet; `None` if it came through no device and that is asked for.
fn tell(told: Told, packet: &Packet<'_>, a: u32, x: u32) -> Option<u32> {
    let facts = &packet.facts;
    Some(match told {
        Told::Protocol => facts.protocol.into(),
        // Attributes are looked for where they are counted.
        Told::None(_) | Told::Attribute | Told::Nested => 0,
        Told::Index => facts.device?.index,
        Told::Kind => facts.device?.kind,
        Told::Mark => facts.mark,
        Told::Hash => facts.hash,
        Told::Cpu => facts.cpu,
        Told::XorX => a ^ x,
        Told::Payload => facts.payload,
        Told::Random => (facts.random)(),
    })
}
