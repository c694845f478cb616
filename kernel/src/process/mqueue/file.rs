//! A [`Queue`] as an open file: what reads of it, what is polled, what a close ends.
//!
//! Owns nothing. Locks: the queue's state.

use super::queue::Queue;
use crate::mm::Sink;
use crate::sync::PollTable;
use crate::try_format;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents};
use abi::{Errno, Result};

/// The queue behind an open file: EBADF if there is none.
pub fn of_file(file: &OpenFile) -> Result<&Queue> {
    file.downcast::<Queue>().ok_or(Errno::EBADF)
}

impl FileOps for Queue {
    fn read(&self, _: &OpenFile, dst: &mut Sink<'_>, pos: &mut u64) -> Result<usize> {
        let state = self.state.lock();
        let bytes = state.bytes;
        let (how, signal, pid) = state.registered.as_ref().map_or((0, 0, 0), |one| one.shown());
        drop(state);
        let text = try_format!(
            "QSIZE:{bytes:<10} NOTIFY:{how:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n"
        )?;
        let rest = usize::try_from(*pos).ok().and_then(|at| text.as_bytes().get(at..));
        let rest = rest.unwrap_or_default();
        let rest = &rest[..rest.len().min(dst.remaining())];
        let done = if rest.is_empty() { 0 } else { dst.put(rest)? };
        if done > 0 {
            *pos += done as u64;
            self.note_access();
        }
        Ok(done)
    }

    fn is_watchable(&self, _: &OpenFile) -> bool {
        true
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.changed);
        let count = self.state.lock().len();
        let mut ready = PollEvents::empty();
        ready.set(PollEvents::READABLE, count > 0);
        ready.set(PollEvents::WRITABLE, count < self.most);
        ready
    }

    fn flush(&self, _: &OpenFile) -> Result<()> {
        self.unregister();
        Ok(())
    }

    fn abilities(&self) -> Abilities {
        Abilities::empty()
    }
}
