//! Opening what is to be executed.

use crate::mm::fallible::try_arc;
use crate::process::task::current::Current;
use crate::vfs::namei::{LookupCtx, LookupFlags};
use crate::vfs::open::open_exec;
use crate::vfs::{DenyWrite, Fd};
use abi::Result;
use alloc::sync::Arc;

/// Opens an executable and keeps writers away.
pub(super) fn open(
    task: Current,
    at: Fd,
    path: &[u8],
    lookup: LookupFlags,
) -> Result<Arc<DenyWrite>> {
    let (fs, files, cred) = (task.fs(), task.files(), task.cred());
    let ctx = LookupCtx { fs: &fs, files: &files, cred: &cred };
    let file = open_exec(&ctx, at, path, lookup)?;
    try_arc(DenyWrite::new(file)?)
}
