//! ELF64 executables for x86_64, parsed into a load plan.
//!
//! Owns Linux's rules of what can be executed and which error each defect gives. Takes bytes, gives plain
//! numbers; reads no file and maps nothing. Every field is untrusted: all arithmetic on it is checked.
#![no_std]
#![forbid(unsafe_code)]

mod header;
mod plan;
mod segment;

pub use header::{HEADER_LEN, Header, Kind, PHDR_LEN};
pub use plan::{MAX_LOADS, Plan};
pub use segment::{PAGE_SIZE, Segment, SegmentFlags};

/// Why a file cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not an executable of this machine (`ENOEXEC`; `ELIBBAD` in an interpreter).
    NotExecutable,
    /// Its segments cannot be mapped. Linux finds out when the old program is gone already and kills the
    /// process with SIGSEGV.
    BadLayout,
}
