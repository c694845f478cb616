//! Which files sendfile and copy_file_range take from and put into.
//!
//! Owns nothing. Never touches what is in a file. Locks: none.

use crate::vfs::{Abilities, FileType, OpenFile};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// Whether sendfile takes from it.
pub(super) fn is_sent(file: &OpenFile) -> bool {
    let mappable = matches!(file.kind(), FileType::Regular | FileType::Char | FileType::Block);
    mappable && file.seekable() && file.ops().abilities().contains(Abilities::SPLICES)
}

/// Whether copy_file_range copies from one to the other: EISDIR, EINVAL, EBADF, and EXDEV between two file systems.
pub(super) fn check_copied(input: &OpenFile, output: &OpenFile) -> Result<()> {
    for file in [input, output] {
        match file.kind() {
            FileType::Regular => {}
            FileType::Dir => return Err(Errno::EISDIR),
            _ => return Err(Errno::EINVAL),
        }
    }
    let appends = output.flags().contains(OpenFlags::APPEND);
    if !input.readable() || !output.writable() || appends {
        return Err(Errno::EBADF);
    }
    let [from, to] = [input, output].map(|file| file.path().mount.super_block());
    if Arc::ptr_eq(from, to) { Ok(()) } else { Err(Errno::EXDEV) }
}
