//! What a ring's file does.
//!
//! Owns nothing. Never registered in a ring, nor passed over a socket. Locks: as [`super`].

use super::super::ring::RingFile;
use super::calm::{Passed, submit_plain};
use super::go_on_entering;
use crate::sync::PollTable;
use crate::vfs::{FileOps, MapRange, MapTarget, OpenFile, PollEvents, Position};
use abi::Result;
use abi::uring::enter;
use alloc::sync::Arc;

impl FileOps for RingFile {
    fn enter_ring(
        &self,
        count: u32,
        least: u32,
        flags: u32,
        arg: u64,
        arg_size: usize,
    ) -> Result<u32> {
        let Passed { taken, untaken } = submit_plain(&self.0, count);
        let waits = flags & enter::GETEVENTS != 0;
        let is_enough = untaken >= least && flags & enter::EXT_ARG == 0 && arg == 0;
        if taken != 0 && taken == count && (!waits || is_enough) && !self.0.has_work() {
            return Ok(taken);
        }
        go_on_entering(&self.0, taken, count, least, flags, arg, arg_size)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        let ring = &self.0;
        table.watch(&ring.tower.waiters);
        let mut events = PollEvents::empty();
        events.set(PollEvents::READABLE, ring.untaken() != 0 || ring.has_kept() || ring.has_work());
        events.set(PollEvents::WRITABLE, !ring.shared().is_full());
        events
    }

    fn mmap_range(&self, _: &Arc<OpenFile>, range: &MapRange) -> Result<MapTarget> {
        Ok(MapTarget::File(self.0.shared().source(range.offset)?))
    }

    fn may_be_passed(&self) -> bool {
        false
    }
}
