//! [`Restrictions`]: what a ring may be asked for, once its maker said so and then enabled it (IORING_REGISTER_RESTRICTIONS).
//!
//! Owns the sets. Never grows again. Locks: the ring's mutex.

use super::check;
use crate::mm::user::UserPtr;
use crate::sync::Pace;
use abi::uring::{Restriction, Sqe, op, register as what, sqe as flag};
use abi::{Errno, Result};

/// `enum io_uring_register_restriction_op`.
const REGISTER_OP: u16 = 0;
const SQE_OP: u16 = 1;
const SQE_FLAGS_ALLOWED: u16 = 2;
const SQE_FLAGS_REQUIRED: u16 = 3;
const KINDS: u32 = 4;

/// Most that are taken at once (IORING_MAX_RESTRICTIONS).
const MOST: u32 = KINDS + what::END + op::LAST as u32 + 1;

/// A bit for each operation, and the flags of entries.
#[derive(Clone, Copy, Default)]
pub struct Restrictions {
    registers: u64,
    entries: u64,
    allowed: u8,
    required: u8,
}

const _: () = assert!(op::LAST < 64 && what::END <= 64);

impl Restrictions {
    /// What user space lists.
    pub fn read(arg: u64, count: u32) -> Result<Self> {
        if arg == 0 || count > MOST {
            return Err(Errno::EINVAL);
        }
        let mut all = Self::default();
        for nth in (0..count).paced() {
            let one = UserPtr::<Restriction>::new(arg).index(u64::from(nth)).read()?;
            all.add(&one)?;
        }
        Ok(all)
    }

    fn add(&mut self, one: &Restriction) -> Result<()> {
        match one.kind {
            REGISTER_OP if u32::from(one.value) < what::END => self.registers |= 1 << one.value,
            SQE_OP if one.value <= op::LAST => self.entries |= 1 << one.value,
            SQE_FLAGS_ALLOWED => self.allowed = one.value,
            SQE_FLAGS_REQUIRED => self.required = one.value,
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Whether the ring may be told this.
    pub fn check_register(&self, opcode: u32) -> Result<()> {
        let may = opcode < what::END && self.registers & 1 << opcode != 0;
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Whether it may be asked this. What no ring takes is told first, as on Linux.
    pub fn check_entry(&self, sqe: &Sqe) -> Result<()> {
        if sqe.opcode > op::LAST || sqe.flags & !flag::KNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        if sqe.flags & flag::BUFFER_SELECT != 0 && !check::can_select(sqe.opcode) {
            return Err(Errno::EOPNOTSUPP);
        }
        let may = self.entries & 1 << sqe.opcode != 0
            && sqe.flags & self.required == self.required
            && sqe.flags & !(self.allowed | self.required) == 0;
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }
}
