//! The slot through which the layer of processes, above this one, shows them in /proc.
//!
//! Owns the slot. Never filled twice. Locks: none.
#![forbid(unsafe_code)]

use super::text::TextBuf;
use crate::mm::{Sink, Source};
use crate::sync::Once;
use crate::vfs::{Capability, FdTable, FsContext, Owner, Path};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use arrayvec::ArrayVec;

/// One file that the layer of processes provides in each /proc/PID (and /proc/PID/task/TID).
#[derive(Clone, Copy, Debug)]
pub struct PidFile {
    pub name: &'static str,
    /// Permission bits.
    pub mode: u32,
    /// In /proc/PID/task/TID too.
    pub per_task: bool,
    /// Only for callers that may ptrace the process (environ, mem, maps...): checked by `may_access` at open. Such a file
    /// belongs to the memory that the process had at the open: it reads as empty after a later exec.
    pub guarded: bool,
}

/// Where one CPU's time went, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTotals {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub irq: u64,
}

/// Figures for /proc/stat and /proc/loadavg.
#[derive(Debug, Default)]
pub struct Totals {
    /// One per CPU.
    pub cpus: Vec<CpuTotals>,
    /// Averages over 1, 5 and 15 minutes, in hundredths.
    pub load: [u64; 3],
    /// Tasks that run or are runnable.
    pub running: u32,
    /// All tasks.
    pub tasks: u32,
    /// Tasks that wait uninterruptibly.
    pub blocked: u32,
    pub last_pid: u32,
    pub switches: u64,
    /// Tasks made since boot.
    pub forks: u64,
}

/// As many ids of tasks as are asked for at once: a look at all threads of a process finds them.
pub type SomeTasks = ArrayVec<u32, 64>;

/// Processes as procfs sees them. `tid` names a task; a process is named by its leader's.
pub trait ProcessTable: Send + Sync {
    /// Process and task of the caller.
    fn current(&self) -> Option<(u32, u32)>;
    /// The smallest process id that is at least `from`.
    fn next_pid(&self, from: u32) -> Option<u32>;
    /// The process that `tid` belongs to, if it lives (or is a zombie).
    fn process_of(&self, tid: u32) -> Option<u32>;
    /// Of the task ids of process `pid` that are at least `from` the smallest ones, in order; none if there is no more.
    fn next_tasks(&self, pid: u32, from: u32) -> SomeTasks;
    /// How many tasks process `pid` has.
    fn task_count(&self, pid: u32) -> u32;
    /// Who owns an entry of its directory: root if the process is not dumpable, except for directories that everybody
    /// may list (`is_open`).
    fn owner(&self, tid: u32, is_open: bool) -> Owner;
    /// Whether the caller may look into the task, as ptrace's read access check says.
    fn may_access(&self, tid: u32) -> bool;
    /// Whether the caller has a capability.
    fn is_capable(&self, capability: Capability) -> bool;
    /// A number for its memory: another one after each exec, 0 if it has none.
    fn memory(&self, tid: u32) -> u64;
    /// Its descriptors; `None` for a zombie or a kernel thread.
    fn files(&self, tid: u32) -> Option<Arc<FdTable>>;
    /// Its root and working directory.
    fn fs_context(&self, tid: u32) -> Option<Arc<FsContext>>;
    /// Its executable.
    fn exe(&self, tid: u32) -> Option<Path>;
    /// The files in a process directory.
    fn pid_files(&self) -> &'static [PidFile];
    /// The text of one; `in_task` below /proc/PID/task/TID.
    fn read(&self, tid: u32, in_task: bool, name: &str) -> Result<Vec<u8>>;
    /// Adds a piece of one to `text`, from the place `from` on (0 is the beginning), and returns where the next piece
    /// begins. `None` for files whose text [`read`](Self::read) makes whole.
    fn piece(
        &self,
        _tid: u32,
        _name: &str,
        _from: u64,
        _text: &mut TextBuf,
    ) -> Option<Result<Option<u64>>> {
        None
    }
    /// Figures about all of them.
    fn totals(&self) -> Result<Totals> {
        Ok(Totals::default())
    }
    /// Takes a write to one.
    fn write(&self, _tid: u32, _name: &str, _data: &[u8]) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    /// Reads a process's memory at an address. `space` is the number that [`memory`](Self::memory) gave at open: once nobody
    /// has that memory any more, nothing is read.
    fn read_memory(&self, _space: u64, _dst: &mut Sink<'_>, _pos: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    /// Writes the memory, in the same way.
    fn write_memory(&self, _space: u64, _src: &mut Source<'_>, _pos: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
}

static PROCESSES: Once<&'static dyn ProcessTable> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_process_table(table: &'static dyn ProcessTable) {
    PROCESSES.call_once(|| table);
}

/// Whether the caller has a capability; nobody has one before the slot is filled.
pub fn is_capable(capability: Capability) -> bool {
    PROCESSES.get().is_some_and(|processes| processes.is_capable(capability))
}

/// The slot's content; ESRCH before it is filled.
pub(super) fn processes() -> Result<&'static dyn ProcessTable> {
    PROCESSES.get().copied().ok_or(Errno::ESRCH)
}
