//! What root says of cores, below /proc/sys.
//!
//! Owns the pattern and the numbers. Never says whether one process dumps: [`mod@super::dump`] does. Locks: `Leaf`, for the pattern.

use crate::fs::procfs::{ProcFile, register_line, register_setting};
use crate::mm::fallible::{TryGrow, TrySlice, try_arc};
use crate::sync::{SpinLock, level};
use abi::Result;
use alloc::vec::Vec;
use arrayvec::ArrayVec;

crate::setting! {
    /// `kernel.core_uses_pid`: a name without `%p` ends in the process's number.
    pub static CORE_USES_PID = 0, i32::MIN..=i32::MAX;
    /// `kernel.core_pipe_limit`: so many programs take cores at once, and are waited for; 0: any number, and none is.
    pub static CORE_PIPE_LIMIT = 0, i32::MIN..=i32::MAX;
    /// `kernel.core_file_note_size_limit`: the list of mapped files is no longer than this.
    pub static CORE_FILE_NOTE_SIZE_LIMIT = 4 << 20, 4 << 20..=16 << 20;
    /// `fs.suid_dumpable`: how dumpable a process is that has changed its identity.
    pub static SUID_DUMPABLE = 0, 0..=2;
}

/// Linux's `CORENAME_MAX_SIZE`, but for the NUL.
pub(super) const PATTERN_MAX: usize = 127;

pub(super) type Pattern = ArrayVec<u8, PATTERN_MAX>;

/// Empty until somebody sets it: [`DEFAULT`] then.
static PATTERN: SpinLock<Option<Pattern>, level::Leaf> = SpinLock::new(None);

const DEFAULT: &[u8] = b"core";

/// The pattern that names of cores are made from.
#[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
pub(super) fn pattern() -> Pattern {
    let set = PATTERN.lock().clone();
    set.unwrap_or_else(|| DEFAULT.iter().copied().collect())
}

/// `core_pattern`: one line, cut to what there is room for.
struct PatternFile;

impl ProcFile for PatternFile {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = pattern().try_owned()?;
        text.try_push(b'\n')?;
        Ok(text)
    }

    #[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let line = data.split(|&byte| byte == b'\n' || byte == 0).next().unwrap_or_default();
        let pattern: Pattern = line.iter().copied().take(PATTERN_MAX).collect();
        warn_if_unsafe(&pattern);
        *PATTERN.lock() = Some(pattern);
        Ok(data.len())
    }
}

/// Cores of those who changed identity belong into a place that root has chosen.
fn warn_if_unsafe(pattern: &[u8]) {
    if SUID_DUMPABLE.get() == 2 && !matches!(pattern.first(), Some(b'/' | b'|')) {
        log::warn!(
            "Unsafe core_pattern used with fs.suid_dumpable=2: a full path or a pipe is needed"
        );
    }
}

/// Makes the files; once, at boot.
pub(in crate::process) fn register() -> Result<()> {
    register_setting("kernel/core_uses_pid", &CORE_USES_PID)?;
    register_setting("kernel/core_pipe_limit", &CORE_PIPE_LIMIT)?;
    register_setting("kernel/core_file_note_size_limit", &CORE_FILE_NOTE_SIZE_LIMIT)?;
    register_setting("fs/suid_dumpable", &SUID_DUMPABLE)?;
    register_line("kernel/core_pattern", 0o644, try_arc(PatternFile)?)
}
