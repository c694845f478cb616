//! [`Congestion`]: the congestion controls that there are by name. Nothing here is congested: the choice is kept and told.
//!
//! Owns nothing. Never controls anything. Locks: none.

use crate::mm::fallible::try_copy;
use abi::Result;
use alloc::vec::Vec;

/// A congestion control that there is by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    Cubic,
    Reno,
}

impl Congestion {
    pub fn of(name: &[u8]) -> Option<Self> {
        match name {
            b"cubic" => Some(Self::Cubic),
            b"reno" => Some(Self::Reno),
            _ => None,
        }
    }

    /// The one that is kept as this number (`as u8`).
    pub fn kept_as(number: u8) -> Self {
        if number == Self::Reno as u8 { Self::Reno } else { Self::Cubic }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }

    /// As TCP_CONGESTION tells it.
    pub fn shown(self) -> Result<Vec<u8>> {
        let mut text = [0; 16];
        let name = self.name().as_bytes();
        text[..name.len()].copy_from_slice(name);
        try_copy(&text)
    }
}
