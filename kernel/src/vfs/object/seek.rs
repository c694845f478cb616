//! [`Whence`]: what the offset of `lseek` is relative to.
//!
//! Owns nothing. Never moves a position: [`super::file`] does. Locks: none.
#![forbid(unsafe_code)]

use abi::{Errno, Result};

/// `lseek`'s last argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    Set,
    Cur,
    End,
    Data,
    Hole,
}

impl Whence {
    /// From the system call's number.
    pub const fn from_raw(raw: u32) -> Result<Self> {
        Ok(match raw {
            0 => Self::Set,
            1 => Self::Cur,
            2 => Self::End,
            3 => Self::Data,
            4 => Self::Hole,
            _ => return Err(Errno::EINVAL),
        })
    }

    /// The position for a file of `size` bytes without holes.
    pub fn resolve(self, pos: u64, size: u64, offset: i64) -> Result<u64> {
        let base = match self {
            Self::Set => 0,
            Self::Cur => pos,
            Self::End => size,
            Self::Data | Self::Hole => {
                let at = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
                if at >= size {
                    return Err(Errno::ENXIO);
                }
                return Ok(if self == Self::Data { at } else { size });
            }
        };
        let to = i64::try_from(base).ok().and_then(|b| b.checked_add(offset));
        match to {
            Some(to) if to >= 0 => Ok(to.unsigned_abs()),
            _ => Err(Errno::EINVAL),
        }
    }
}
