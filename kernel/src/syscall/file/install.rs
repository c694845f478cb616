//! A new descriptor for an open file.
//!
//! What has an effect before it has a file asks [`reserved`] first. Only files that nobody misses go to [`install`].

use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::syscall::caller::{fd_limit, with_files};
use crate::vfs::{Fd, OpenFile};
use abi::Result;
use alloc::sync::Arc;

/// Makes a file, with an effect that cannot be undone, for a descriptor that is reserved before.
#[inline]
pub fn reserved(cloexec: bool, make: impl FnOnce(Fd) -> Result<Arc<OpenFile>>) -> Result<Fd> {
    with_files(|files| {
        let number = files.reserve(cloexec, fd_limit())?;
        let file = make(number.fd())?;
        Ok(number.install(file))
    })
}

/// Gives `file` the lowest free descriptor.
pub fn install(file: OpenFile, cloexec: bool) -> Result<Fd> {
    install_shared(try_arc(file)?, cloexec)
}

/// The same for a file that others may have, too.
#[inline]
pub fn install_shared(file: Arc<OpenFile>, cloexec: bool) -> Result<Fd> {
    with_files(|files| files.add(0, file, cloexec, fd_limit()))
}

/// Gives two files descriptors, of which the caller is told before there is a file: all or nothing.
pub fn reserved_pair(
    cloexec: bool,
    fds: UserPtr<[i32; 2]>,
    make: impl FnOnce() -> Result<(Arc<OpenFile>, Arc<OpenFile>)>,
) -> Result<()> {
    let limit = fd_limit();
    with_files(|files| {
        let numbers = (files.reserve(cloexec, limit)?, files.reserve(cloexec, limit)?);
        fds.write(&[numbers.0.fd().0, numbers.1.fd().0])?;
        let (first, second) = make()?;
        numbers.0.install(first);
        numbers.1.install(second);
        Ok(())
    })
}
