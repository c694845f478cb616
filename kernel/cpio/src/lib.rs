//! cpio archives as Linux's initramfs uses them: a reader of `newc` (070701) and `crc` (070702), and a writer of `newc`.
//!
//! Owns nothing but the place in the input or the bytes written so far. The reader never allocates and never
//! panics, whatever the input is; the writer is for the host, which makes archives of its own. No locks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod reader;
mod writer;

pub use reader::{Archive, BrokenInput, Error, Header, Input, NAME_LIMIT, Problem};
pub use writer::{Writer, entry, trailer};

/// Name of the entry that ends an archive.
const TRAILER: &str = "TRAILER!!!";
