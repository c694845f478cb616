//! Boot of /dev: registers the kernel's own devices. No locks.

use super::{kmsg, mem};

/// Registers null, zero, full and kmsg.
pub fn init() {
    mem::register();
    kmsg::register();
}
