//! [`Prepared`]: all that an open file of a socket takes, so that nothing can fail once a connection has left its queue.
//!
//! Owns nothing. Locks: none.

use crate::mm::fallible::Room;
use crate::vfs::admission::{Admission, admit};
use crate::vfs::anon::{AnonFs, new_path};
use crate::vfs::{Cred, FileOps, OpenFile, Owner, Path};
use abi::fs::{OpenFlags, S_IFSOCK};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// An open file that lacks nothing but what it does.
pub struct Prepared<F> {
    admission: Admission,
    path: Path,
    ops: Room<F>,
    file: Room<OpenFile>,
    flags: OpenFlags,
}

impl<F: FileOps + 'static> Prepared<F> {
    /// Allocates it.
    pub fn new(nonblock: bool, cred: &Cred) -> Result<Self> {
        let admission = admit()?;
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
        let path = new_path(AnonFs::Socket, S_IFSOCK | 0o777, "", owner)?;
        let mut flags = OpenFlags::RDWR;
        flags.set(OpenFlags::NONBLOCK, nonblock);
        Ok(Self { admission, path, ops: Room::new()?, file: Room::new()?, flags })
    }

    /// Its inode number.
    pub fn ino(&self) -> u64 {
        self.path.dentry.inode().attr().ino()
    }

    /// The open file.
    #[inline]
    pub fn open(self, ops: F) -> Arc<OpenFile> {
        self.file.arc(OpenFile::new(self.admission, self.ops.arc(ops), self.path, self.flags))
    }
}
