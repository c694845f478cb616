//! What an entry of the table tells about itself, the answer to unknown calls, and the file that counts calls.

use super::system::counters;
use super::table;
use crate::arch::entry::frame::TrapFrame;
use abi::Errno;

/// Adds the files of this floor to /proc.
pub fn init() -> abi::Result<()> {
    counters::register()
}

/// Unknown calls fail; /proc/alea/syscalls shows that they were made.
pub(super) extern "C" fn no_such_call(frame: &mut TrapFrame) -> i64 {
    // Linux looks at the low 32 bits only.
    counters::count((frame.orig_rax as u32 as usize).min(table::LEN));
    Errno::ENOSYS.to_return()
}
