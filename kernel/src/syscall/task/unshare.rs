//! `unshare(2)`.

use crate::mm::fallible::try_arc;
use crate::process;
use crate::process::tree::clone::CloneFlags;
use crate::vfs::Files;
use abi::{Errno, Result};
use alloc::sync::Arc;

pub fn unshare(flags: u64) -> Result<()> {
    const KNOWN: CloneFlags = CloneFlags::THREAD
        .union(CloneFlags::SIGHAND)
        .union(CloneFlags::VM)
        .union(CloneFlags::FS)
        .union(CloneFlags::FILES)
        .union(CloneFlags::SYSVSEM);
    let flags = CloneFlags::from_bits(flags).filter(|&flags| KNOWN.contains(flags));
    let flags = flags.ok_or(Errno::EINVAL)?;
    check_alone(flags)?;
    let task = process::current();
    let fs = (flags.contains(CloneFlags::FS) && Arc::strong_count(&*task.fs()) > 1)
        .then(|| try_arc(task.fs().fork()));
    let fs = fs.transpose()?;
    let files = (flags.contains(CloneFlags::FILES) && task.files().is_shared())
        .then(|| task.files().fork().and_then(Files::new));
    let files = files.transpose()?;
    if flags.contains(CloneFlags::SYSVSEM) {
        task.leave_undo();
    }
    if let Some(fs) = fs {
        drop(task.set_fs(Some(fs)));
    }
    if let Some(files) = files {
        drop(task.set_files(Some(files)));
    }
    Ok(())
}

/// What cannot be unshared may be asked for by who does not share it.
fn check_alone(flags: CloneFlags) -> Result<()> {
    let task = process::current();
    let wants = |any: CloneFlags| flags.intersects(any);
    let (signals, memory) = (CloneFlags::SIGHAND | CloneFlags::VM, CloneFlags::VM);
    let shares = (wants(signals | CloneFlags::THREAD) && task.process().thread_count() > 1)
        || (wants(signals) && task.process().signals.shares_actions())
        || (wants(memory) && task.shares_mm());
    if shares { Err(Errno::EINVAL) } else { Ok(()) }
}
