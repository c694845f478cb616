//! `rseq`: registers the calling thread's restartable sequences.

use crate::process::task::rseq;
use abi::{Errno, Result};

const UNREGISTER: i32 = 1;

pub fn rseq(addr: u64, len: u32, flags: i32, signature: u32) -> Result<()> {
    match flags {
        0 => rseq::register(addr, len, signature),
        UNREGISTER => rseq::unregister(addr, len, signature),
        _ => Err(Errno::EINVAL),
    }
}
