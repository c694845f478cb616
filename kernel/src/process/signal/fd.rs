//! signalfd: pending signals of the reader, read as records.
//!
//! Owns only the set of signals it is about: whose signals they are depends on who reads.

use super::wait::try_take;
use crate::mm::Sink;
use crate::mm::fallible::try_arc;
use crate::process::task::current::current;
use crate::sync::PollTable;
use crate::try_format;
use crate::vfs::anon::anonymous;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::signal::{SigInfo, SigSet};
use abi::{Errno, Result};
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering};

/// Size of `struct signalfd_siginfo`.
const RECORD: usize = 128;

/// The open file.
pub struct SignalFd {
    /// Relaxed: one word; a read that misses a change came before it.
    set: AtomicU64,
}

impl SignalFd {
    fn set(&self) -> SigSet {
        SigSet(self.set.load(Ordering::Relaxed))
    }

    /// Changes which signals it is about.
    pub fn change(&self, set: SigSet) {
        self.set.store(set.minus(SigSet::UNBLOCKABLE).0, Ordering::Relaxed);
        current().process().signals.arrived.wake_all();
    }
}

/// A signalfd for a set of signals.
pub fn new(set: SigSet, nonblock: bool) -> Result<OpenFile> {
    let set = AtomicU64::new(set.minus(SigSet::UNBLOCKABLE).0);
    anonymous(try_arc(SignalFd { set })?, "[signalfd]", OpenFlags::RDWR, nonblock)
}

/// `struct signalfd_siginfo`: the same facts as `siginfo_t`, every field in a place of its own.
fn record(info: &SigInfo) -> [u8; RECORD] {
    let mut out = [0; RECORD];
    let mut put = |at: usize, word: u32| out[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    put(0, info.signo as u32);
    put(4, info.errno as u32);
    put(8, info.code as u32);
    put(12, info.pid() as u32);
    put(16, info.uid());
    put(40, info.fields[1] as u32); // status of a child
    put(44, info.fields[1] as u32); // value as an int
    let value = info.fields[1];
    out[48..56].copy_from_slice(&value.to_ne_bytes());
    out[56..64].copy_from_slice(&info.fields[2].to_ne_bytes());
    out[64..72].copy_from_slice(&info.fields[3].to_ne_bytes());
    out[72..80].copy_from_slice(&info.fields[0].to_ne_bytes());
    out
}

impl FileOps for SignalFd {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() < RECORD {
            return Err(Errno::EINVAL);
        }
        let task = current();
        let mut done = 0;
        while dst.remaining() >= RECORD {
            let info = match try_take(&task, self.set()) {
                Some(info) => info,
                None if done > 0 => break,
                None if f.nonblock() => return Err(Errno::EAGAIN),
                None => {
                    let arrived = &task.process().signals.arrived;
                    arrived.wait_interruptible(|| try_take(&task, self.set()))?
                }
            };
            match dst.put(&record(&info)) {
                Ok(put) => done += put,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn lseek_nowhere(&self) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        let task = current();
        table.watch(&task.process().signals.arrived);
        let pending = task.signals.pending().union(task.process().signals.pending());
        if pending.intersects(self.set()) { PollEvents::IN } else { PollEvents::empty() }
    }

    fn fdinfo(&self, _f: &OpenFile) -> Result<String> {
        try_format!("sigmask:\t{:016x}\n", self.set().0)
    }

    fn abilities(&self) -> Abilities {
        Abilities::empty()
    }
}
