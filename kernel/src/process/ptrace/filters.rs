//! What a tracer learns of a tracee's filters: for checkpointing tools, which have none themselves.

use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::user::{self, UserPtr};
use crate::process::seccomp::{Filter, Mode, nth};
use crate::process::task::current::current;
use crate::process::task::task::Task;
use crate::vfs::Capability;
use abi::seccomp::{Metadata, flag};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use zerocopy::IntoBytes;

/// Whether the running task may take a tracee's filters out of use.
pub(super) fn may_suspend() -> bool {
    let task = current();
    task.cred().capable(Capability::SYS_ADMIN) && !task.seccomp.is_on()
}

fn newest(target: &Task) -> Result<Arc<Filter>> {
    if !may_suspend() {
        return Err(Errno::EACCES);
    }
    match target.seccomp.mode() {
        Mode::Filter => target.seccomp.filter().ok_or(Errno::ENOENT),
        _ => Err(Errno::EINVAL),
    }
}

/// PTRACE_SECCOMP_GET_FILTER: how many instructions the filter at a place has, which go to `to` unless that is 0.
pub(super) fn filter(target: &Task, at: u64, to: u64) -> Result<i64> {
    let newest = newest(target)?;
    let insns = nth(&newest, at).ok_or(Errno::ENOENT)?.program().instructions();
    if to != 0 {
        let mut bytes = Vec::new();
        bytes.try_room(insns.len() * alea_bpf::insn::SIZE)?;
        insns.iter().try_for_each(|insn| bytes.try_extend_from_slice(&insn.to_bytes()))?;
        user::write_bytes(to, &bytes)?;
    }
    Ok(insns.len() as i64)
}

/// PTRACE_SECCOMP_GET_METADATA: the flags of the filter at a place.
pub(super) fn metadata(target: &Task, size: u64, at: u64) -> Result<i64> {
    if !may_suspend() {
        return Err(Errno::EACCES);
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(size_of::<Metadata>());
    if size < size_of::<u64>() {
        return Err(Errno::EINVAL);
    }
    let filter_off = UserPtr::<u64>::new(at).read()?;
    let newest = newest(target)?;
    let logs = nth(&newest, filter_off).ok_or(Errno::ENOENT)?.logs();
    let flags = if logs { flag::LOG.into() } else { 0 };
    user::write_bytes(at, &Metadata { filter_off, flags }.as_bytes()[..size])?;
    Ok(size as i64)
}
