//! What file-system handlers need of the calling task: its descriptors, directories, identity and limits,
//! and path names from its memory.

use crate::mm::fallible::TrySlice;
use crate::mm::user;
use crate::process::{self, signal};
use crate::sync::OwnerRef;
use crate::vfs::namei::LookupCtx;
use crate::vfs::{Fd, FileBorrow, Files, OpenFile};
use abi::fs::PATH_MAX;
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Runs `act` with the caller's root, directories and identity.
#[inline]
pub fn with_ctx<R>(act: impl FnOnce(&LookupCtx<'_>) -> R) -> R {
    let task = process::current();
    let (fs, files, cred) = (task.fs(), task.files(), task.cred());
    act(&LookupCtx { fs: &fs, files: &files, cred: &cred })
}

/// The open file behind `fd`, for the length of the call: EBADF also for `O_PATH`.
#[inline]
pub fn file(fd: i32) -> Result<FileBorrow> {
    process::current().files().borrow(Fd(fd))
}

/// As [`file()`], to be kept.
pub fn file_to_keep(fd: i32) -> Result<Arc<OpenFile>> {
    process::current().files().get(Fd(fd))
}

/// The open file behind `fd`, `O_PATH` included.
#[inline]
pub fn file_any(fd: i32) -> Result<Arc<OpenFile>> {
    process::current().files().get_any(Fd(fd))
}

/// Runs `act` with the caller's descriptors.
#[inline]
pub fn with_files<R>(act: impl FnOnce(&OwnerRef<Files>) -> R) -> R {
    act(&process::current().files())
}

/// One more than the highest descriptor the caller may have.
#[inline]
pub fn fd_limit() -> usize {
    process::current().process().nofile_limit()
}

/// A path that a call is given.
#[derive(Clone, Copy)]
pub enum Pathname<'a> {
    /// In user memory.
    At(u64),
    /// It was read before.
    Read(&'a [u8]),
}

impl From<u64> for Pathname<'static> {
    #[inline]
    fn from(addr: u64) -> Self {
        Self::At(addr)
    }
}

/// The path at a user address, as what is kept of it.
pub fn read_path(addr: u64) -> Result<Vec<u8>> {
    with_path(addr, |path| path.try_owned())
}

/// Runs `act` with a path. Short ones in user memory, nearly all, need no allocation.
#[inline]
pub fn with_path<'a, R>(
    path: impl Into<Pathname<'a>>,
    act: impl FnOnce(&[u8]) -> Result<R>,
) -> Result<R> {
    let addr = match path.into() {
        Pathname::At(addr) => addr,
        Pathname::Read(path) => return act(path),
    };
    let mut short = [0u8; 128];
    match user::read_cstr_into(addr, &mut short)? {
        Some(len) => act(&short[..len]),
        None => act(&user::read_cstr(addr, PATH_MAX)?),
    }
}

/// Raises SIGPIPE if a write to `file` met a pipe or stream that nobody reads; the call fails with EPIPE as well.
#[inline]
pub fn or_sigpipe<R>(file: &OpenFile, result: Result<R>) -> Result<R> {
    if matches!(result, Err(Errno::EPIPE)) {
        raise_sigpipe(file);
    }
    result
}

#[cold]
fn raise_sigpipe(file: &OpenFile) {
    if !file.ops().raises_sigpipe() {
        return;
    }
    let info = SigInfo::new(Signal::SIGPIPE, code::SI_USER);
    // SIGPIPE is no real-time signal: it cannot exceed a limit.
    let _ = signal::send_to_task(&process::current_arc(), Signal::SIGPIPE, info);
}

/// Checks a length or offset that must not be negative.
pub fn not_negative(value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| Errno::EINVAL)
}
