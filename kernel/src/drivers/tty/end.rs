//! [`End`]: what lies behind a terminal's line discipline.
//!
//! A device, or the master's side of a pseudo-terminal. All of it is under the terminal's lock.

use super::pty::PtyState;
use crate::drivers::console_device::ConsoleDevice;

/// Where output goes and input comes from.
pub(super) enum End {
    Device(&'static dyn ConsoleDevice),
    Master(PtyState),
}

impl End {
    pub fn device(&self) -> Option<&'static dyn ConsoleDevice> {
        match self {
            Self::Device(device) => Some(*device),
            Self::Master(_) => None,
        }
    }

    pub fn pty(&self) -> Option<&PtyState> {
        match self {
            Self::Device(_) => None,
            Self::Master(pty) => Some(pty),
        }
    }

    pub fn pty_mut(&mut self) -> Option<&mut PtyState> {
        match self {
            Self::Device(_) => None,
            Self::Master(pty) => Some(pty),
        }
    }

    /// How many bytes of output are taken now.
    pub fn room(&self) -> usize {
        match self {
            Self::Device(device) => device.room(),
            Self::Master(pty) => pty.room_for_output(),
        }
    }
}
