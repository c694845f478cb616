//! Whom this machine may believe, but for its CPU: the command line's switches, and what kind of machine it is.
//!
//! Owns the rule that a confidential machine credits nothing that comes through its host, who is the one that is to learn
//! nothing. No locks.

use crate::cmdline::{self, words};
use crate::machine::confidential;

/// Whether what the boot loader, the firmware or the host's tables bring may be credited.
pub fn loader() -> bool {
    host() && cmdline::switch(words::TRUST_BOOTLOADER).unwrap_or(true)
}

/// Whether devices of the host may be credited.
pub fn host() -> bool {
    !confidential::is()
}

/// On a confidential machine a CPU without random instructions leaves no source that the host does not know: it does not
/// start, as on Linux.
pub fn demand_instructions(works: bool) {
    assert!(
        works || !confidential::is(),
        "random: a confidential virtual machine needs RDRAND or RDSEED that works"
    );
}
