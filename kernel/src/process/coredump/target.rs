//! Where a core goes: a file that is new and the dumper's own, or the input of a program.
//!
//! Owns the number of programs that take cores. Never writes into a file that was there, through a link, or for another user.
//! Locks: those of the file system.

use super::helper;
use super::output::Output;
use super::settings::CORE_PIPE_LIMIT;
use crate::base::PAGE_SIZE;
use crate::fs::pipe;
use crate::mm::fallible::try_arc;
use crate::process::task::current::Current;
use crate::process::task::limits::INFINITY;
use crate::vfs::namei::LookupCtx;
use crate::vfs::object::mount;
use crate::vfs::open::{OpenHow, open};
use crate::vfs::{Cred, Fd, FileType, FsContext, OpenFile, ops};
use abi::fs::{AT_FDCWD, OpenFlags};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, Ordering};

/// Below this limit no file is made at all.
const MIN_CORE: u64 = PAGE_SIZE as u64;

/// As whom the file is made.
pub(super) struct Maker {
    pub cred: Arc<Cred>,
    /// As root, and so only where root has said: from the first root directory.
    pub as_root: bool,
}

/// Makes the file `name`.
///
/// # Errors
/// Those of opening; `EPERM` for a file that is not as it has to be.
pub(super) fn file(task: Current, name: &[u8], maker: &Maker, limit: u64) -> Result<Output> {
    if limit < MIN_CORE {
        return Err(Errno::EFBIG);
    }
    let (own, files) = (task.fs(), task.files());
    let first;
    let fs = if maker.as_root {
        if name.first() != Some(&b'/') {
            log::warn!("Process {} may only dump core to a full path", task.process().pid());
            return Err(Errno::EPERM);
        }
        first = FsContext::new(mount::root().ok_or(Errno::ENOENT)?);
        first.set_umask(own.umask());
        &first
    } else {
        &**own
    };
    let ctx = LookupCtx { fs, files: &files, cred: &maker.cred };
    if !maker.as_root {
        // Whatever is wrong shows when the file is made.
        let _gone = ops::unlink(&ctx, Fd(AT_FDCWD), name);
    }
    let flags = OpenFlags::CREAT | OpenFlags::WRONLY | OpenFlags::NOFOLLOW | OpenFlags::EXCL;
    let how = OpenHow::classic(flags.bits(), 0o600)?;
    let file = open(&ctx, Fd(AT_FDCWD), name, &how)?;
    check(&file, &maker.cred)?;
    Ok(Output::new(file, limit))
}

fn check(file: &OpenFile, cred: &Cred) -> Result<()> {
    let attr = file.inode().attr();
    let is_own = attr.uid() == cred.fsuid && attr.mode() & 0o677 == 0o600;
    let is_alone = attr.nlink() == 1 && !file.path().dentry.is_unlinked();
    if file.kind() == FileType::Regular && is_own && is_alone { Ok(()) } else { Err(Errno::EPERM) }
}

/// A program that takes a core as its input.
pub(super) struct Taker {
    input: Arc<OpenFile>,
    _turn: Turn,
}

impl Taker {
    /// Starts it.
    ///
    /// # Errors
    /// Those of exec; `EAGAIN` if too many run.
    pub fn start(words: Vec<Vec<u8>>, cred: &Arc<Cred>) -> Result<Self> {
        let turn = Turn::take()?;
        let (reader, writer) = pipe::new_pair(OpenFlags::empty(), cred)?;
        let input = try_arc(writer)?;
        helper::start(words, try_arc(reader)?)?;
        Ok(Self { input, _turn: turn })
    }

    pub fn output(&self) -> Output {
        Output::new(self.input.clone(), INFINITY)
    }

    /// The core is written: if programs are counted, this one is waited for, so that it can look at the process.
    pub fn finish(self) {
        if CORE_PIPE_LIMIT.get() != 0 {
            // Ends early if the process is killed, which ends anyway.
            let _ended = pipe::await_readers(&self.input);
        }
    }
}

/// One of the programs that run at once.
struct Turn;

/// Relaxed: a count, which orders nothing.
static TURNS: AtomicI32 = AtomicI32::new(0);

impl Turn {
    fn take() -> Result<Self> {
        let turn = Self;
        let count = TURNS.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let limit = CORE_PIPE_LIMIT.get();
        if limit != 0 && limit.unsigned_abs() < count.unsigned_abs() {
            log::warn!("{count} cores at once are over core_pipe_limit: one is skipped");
            drop(turn);
            return Err(Errno::EAGAIN);
        }
        Ok(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.fetch_sub(1, Ordering::Relaxed);
    }
}
