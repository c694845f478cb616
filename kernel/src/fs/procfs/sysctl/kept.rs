//! [`Kept`]: a number below /proc/sys that controls something this kernel does not have.
//!
//! It has the same range as on Linux and reads as it was written, so that no line of a machine's sysctl.conf fails. The log
//! says that nothing follows, and why. Where the kernel does have what the number controls, it is a setting that acts.
#![forbid(unsafe_code)]

use super::numbers::register_setting;
use crate::base::setting::{Bounded, Setting};
use abi::Result;

/// A number that is kept.
pub struct Kept {
    /// Below /proc/sys.
    path: &'static str,
    value: Bounded,
    /// Why nothing follows: the end of the sentence "nothing follows, for ...".
    why: &'static str,
}

impl Kept {
    pub const fn new(path: &'static str, value: Bounded, why: &'static str) -> Self {
        Self { path, value, why }
    }
}

/// Shows each at its path.
pub fn register_kept(all: &'static [Kept]) -> Result<()> {
    all.iter().try_for_each(|kept| register_setting(kept.path, kept))
}

impl Setting for Kept {
    fn shown(&self) -> i32 {
        self.value.load()
    }

    fn set(&self, value: i32) -> bool {
        let before = self.value.load();
        let may_be = self.value.store(value);
        if may_be && value != before {
            log::info!("sysctl: {} is {value}; nothing follows, for {}", self.path, self.why);
        }
        may_be
    }
}
