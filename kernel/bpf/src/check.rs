//! The check of a program, by Linux's rules.
//!
//! One pass from the first instruction to the last is enough, since jumps go forward only: when an instruction is reached,
//! every way to it has been seen.

pub use crate::op::Fault;

use crate::CELLS;
use crate::insn::Insn;
use crate::op::{Flow, Op};
use crate::program::MAX_LEN;
use alloc::vec::Vec;

/// Why a program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No instruction, or more than [`MAX_LEN`].
    Length,
    /// An instruction that is wrong by itself.
    Instruction(usize, Fault),
    /// A jump past the end.
    Jump(usize),
    /// A scratch cell that is read where not every way has written it.
    Unwritten(usize),
    /// The last instruction is no return.
    End,
    NoMemory,
}

/// One bit per scratch cell.
type Cells = u16;
const _: () = assert!(Cells::BITS as usize == CELLS);

/// The instructions as they are run.
pub(crate) fn check(insns: &[Insn]) -> Result<Vec<Op>, Refusal> {
    if insns.is_empty() || insns.len() > MAX_LEN {
        return Err(Refusal::Length);
    }
    let mut ops = Vec::new();
    ops.try_reserve_exact(insns.len()).map_err(|_| Refusal::NoMemory)?;
    for (at, insn) in insns.iter().enumerate() {
        ops.push(Op::decode(insn).map_err(|fault| Refusal::Instruction(at, fault))?);
    }
    check_flow(ops.iter().copied())?;
    Ok(ops)
}

/// The last one returns, jumps stay inside, and cells are written before they are read.
pub(crate) fn check_flow(ops: impl ExactSizeIterator<Item = Op> + Clone) -> Result<(), Refusal> {
    match ops.clone().last() {
        Some(last) if matches!(last.flow(), Flow::Ends) => {}
        _ => return Err(Refusal::End),
    }
    // What every jump to an instruction that has been seen has written.
    let mut by_jump: Vec<Cells> = Vec::new();
    by_jump.try_reserve_exact(ops.len()).map_err(|_| Refusal::NoMemory)?;
    by_jump.resize(ops.len(), Cells::MAX);
    // What is written on the way from the instruction before; all, where there is no such way.
    let mut written: Cells = 0;
    for (at, op) in ops.enumerate() {
        written &= by_jump.get(at).copied().unwrap_or(0);
        match op {
            Op::Store(cell) | Op::StoreX(cell) => written |= 1 << cell.index(),
            Op::Mem(cell) | Op::MemX(cell) if written & 1 << cell.index() == 0 => {
                return Err(Refusal::Unwritten(at));
            }
            _ => {}
        }
        let mut reach = |by: u32| {
            let target = usize::try_from(by).ok().and_then(|by| at.checked_add(by)?.checked_add(1));
            let there = target.and_then(|target| by_jump.get_mut(target));
            there.map(|cells| *cells &= written).ok_or(Refusal::Jump(at))
        };
        match op.flow() {
            Flow::Next => {}
            // As on Linux, what stands behind a return is reached with what was written before it.
            Flow::Ends => {}
            Flow::To(by) => {
                reach(by)?;
                written = Cells::MAX;
            }
            Flow::Either(jt, jf) => {
                reach(jt.into())?;
                reach(jf.into())?;
                written = Cells::MAX;
            }
        }
    }
    Ok(())
}
