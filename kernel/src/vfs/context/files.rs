//! [`Files`]: a task's descriptors, as the task changes them.
//!
//! A number in use without a file is [`Reserved`]: a call that does something which cannot be undone, such as to create a file or to take
//! a connection from its queue, reserves the number first. Owns a part in the table. Never in the hands of another task. Locks: `FdTable`;
//! a file is never dropped under it.
#![forbid(unsafe_code)]

use super::fdtable::{Fd, FdTable};
use crate::mm::fallible::try_arc;
use crate::sync::{Borrowed, Own, OwnerRef, cond_resched};
use crate::vfs::object::file::OpenFile;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// An open file, for the length of a call.
pub type FileBorrow = Borrowed<OpenFile>;

/// A number that is taken for a file to come: nobody else gets it, and nobody finds a file there. Given back when dropped.
#[must_use]
pub struct Reserved<'a> {
    files: &'a OwnerRef<Files>,
    at: usize,
}

impl Reserved<'_> {
    /// The number.
    pub fn fd(&self) -> Fd {
        // Below the limit of `FdTable::reserve`.
        Fd(self.at as i32)
    }

    /// Makes the number a descriptor of `file`.
    #[inline]
    pub fn install(self, file: Arc<OpenFile>) -> Fd {
        let fd = self.fd();
        self.files.change().put(self.at, file);
        core::mem::forget(self);
        fd
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.files.change().free(self.at);
    }
}

/// A task's part in a table: who has none cannot change it.
pub type Files = Own<FdTable>;

impl Files {
    /// The only part in a table that nobody else has.
    pub fn new(table: FdTable) -> Result<Self> {
        try_arc(table).map(Self::first)
    }
}

/// Only a task that has a part changes the table.
impl OwnerRef<Files> {
    /// The file behind `fd` that can be read, written or controlled, for the length of a call; EBADF if there is none.
    #[inline]
    pub fn borrow(self, fd: Fd) -> Result<FileBorrow> {
        self.lend(|slots| slots.open_files().get(fd).ok_or(Errno::EBADF))
    }

    /// Reserves the lowest free number: EMFILE at `limit`.
    #[inline]
    pub fn reserve(&self, cloexec: bool, limit: usize) -> Result<Reserved<'_>> {
        let at = self.change().claim_lowest(0, cloexec, limit)?;
        Ok(Reserved { files: self, at })
    }

    /// Gives `file`, which would be there all the same, the lowest free descriptor of at least `from`; EMFILE at `limit`.
    pub fn add(&self, from: usize, file: Arc<OpenFile>, cloexec: bool, limit: usize) -> Result<Fd> {
        let mut inner = self.change();
        let at = inner.claim_lowest(from, cloexec, limit)?;
        inner.put(at, file);
        Ok(Fd(at as i32))
    }

    /// Installs `file` at `fd`, closing what was there; EBADF at `limit`, EBUSY if a file is to come there.
    pub fn install_at(
        &self,
        fd: Fd,
        file: Arc<OpenFile>,
        cloexec: bool,
        limit: usize,
    ) -> Result<()> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        if at >= limit {
            return Err(Errno::EBADF);
        }
        let mut inner = self.change();
        inner.grow(at)?;
        if inner.files[at].is_none() && inner.is_used(at) {
            return Err(Errno::EBUSY);
        }
        inner.claim(at, cloexec);
        let old = inner.files[at].replace(file);
        drop(inner);
        if let Some(old) = old {
            // dup2 closes silently: nobody gets the error of that close.
            let _ = self.finish_close(old);
        }
        Ok(())
    }

    /// Closes `fd`.
    pub fn close(&self, fd: Fd) -> Result<()> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        let file = self.change().take(at).ok_or(Errno::EBADF)?;
        self.finish_close(file)
    }

    /// Closes every descriptor in `first..=last`, or marks them close-on-exec, with those to come.
    pub fn close_range(&self, first: u32, last: u32, cloexec_only: bool) {
        let mut at = first as usize;
        let last = last as usize;
        loop {
            let mut inner = self.change();
            let end = inner.files.len();
            while at < end && at <= last && !inner.is_used(at) {
                at += 1;
            }
            if at >= end || at > last {
                return;
            }
            if cloexec_only {
                inner.set_cloexec(at, true);
            } else if let Some(file) = inner.take(at) {
                drop(inner);
                let _ = self.finish_close(file);
                cond_resched();
            }
            at += 1;
        }
    }

    /// Closes all descriptors that are close-on-exec, for `execve`.
    pub fn close_on_exec(&self) {
        let mut word = 0;
        loop {
            let mut inner = self.change();
            let Some(&bits) = inner.cloexec.get(word) else { return };
            if bits == 0 {
                word += 1;
                continue;
            }
            let at = word * 64 + bits.trailing_zeros() as usize;
            inner.set_cloexec(at, false);
            let file = inner.take(at);
            drop(inner);
            if let Some(file) = file {
                let _ = self.finish_close(file);
            }
        }
    }

    /// Sets or clears close-on-exec.
    pub fn set_cloexec(&self, fd: Fd, cloexec: bool) -> Result<()> {
        let mut inner = self.change();
        let at = inner.index(fd)?;
        if inner.files[at].is_none() {
            return Err(Errno::EBADF);
        }
        inner.set_cloexec(at, cloexec);
        Ok(())
    }
}
