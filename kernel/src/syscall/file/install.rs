//! A new descriptor for an open file.

use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::syscall::caller::{fd_limit, with_files};
use crate::vfs::{Fd, OpenFile};
use abi::Result;
use alloc::sync::Arc;

/// Gives `file` the lowest free descriptor.
pub fn install(file: OpenFile, cloexec: bool) -> Result<Fd> {
    install_shared(try_arc(file)?, cloexec)
}

/// The same for a file that others may have, too.
#[inline]
pub fn install_shared(file: Arc<OpenFile>, cloexec: bool) -> Result<Fd> {
    with_files(|files| files.alloc_lowest(0, file, cloexec, fd_limit()))
}

/// Gives two files descriptors and tells the caller their numbers; all or nothing.
pub fn install_pair(
    first: OpenFile,
    second: OpenFile,
    cloexec: bool,
    fds: UserPtr<[i32; 2]>,
) -> Result<()> {
    let first = install(first, cloexec)?;
    let second = install(second, cloexec);
    let written = second.and_then(|second| fds.write(&[first.0, second.0]));
    if written.is_err() {
        with_files(|files| {
            // The errors of the call itself count, not those of taking it back.
            let _ = files.close(first);
            if let Ok(second) = second {
                let _ = files.close(second);
            }
        });
    }
    written
}
