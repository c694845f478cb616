//! Writing to a terminal: a chunk at a time through the discipline, waiting for room.

use super::end::End;
use super::tty::Tty;
use crate::mm::Source;
use crate::sync::wait::WaitError;
use crate::sync::{WaitQueue, cond_resched};
use crate::time;
use abi::{Errno, Result};

impl Tty {
    /// Writes for a file of the given generation. Job control has been checked.
    pub(super) fn write(
        &self,
        generation: u32,
        nonblock: bool,
        src: &mut Source<'_>,
    ) -> Result<usize> {
        let mut buffer = match self.writing.try_lock() {
            Some(guard) => guard,
            None if nonblock => return Err(Errno::EAGAIN),
            None => self.writing.lock_interruptible()?,
        };
        let mut done = 0;
        let result = |done: usize, error: Errno| if done > 0 { Ok(done) } else { Err(error) };
        while src.remaining() > 0 {
            let chunk = match src.take(&mut buffer[..]) {
                Ok(0) => break,
                Ok(n) => &buffer[..n],
                Err(error) => return result(done, error),
            };
            let mut at = 0;
            while at < chunk.len() {
                cond_resched();
                match self.write_some(generation, &chunk[at..]) {
                    Ok(0) if nonblock => {
                        self.listeners.lack_room();
                        return result(done, Errno::EAGAIN);
                    }
                    Ok(0) => {
                        if let Err(interrupted) = self.wait_for_room(generation) {
                            return result(done, interrupted);
                        }
                    }
                    Ok(n) => {
                        at += n;
                        done += n;
                    }
                    Err(error) => return result(done, error),
                }
            }
        }
        Ok(done)
    }

    fn write_some(&self, generation: u32, bytes: &[u8]) -> Result<usize> {
        let state = self.state.lock();
        if state.is_hung_up(generation) || state.master_is_gone() {
            return Err(Errno::EIO);
        }
        drop(state);
        Ok(self.with(|discipline, screen| discipline.write(bytes, screen)))
    }

    fn wait_for_room(&self, generation: u32) -> Result<()> {
        self.room_queue().wait_interruptible(|| {
            let gone = {
                let state = self.state.lock();
                state.is_hung_up(generation) || state.master_is_gone()
            };
            (gone || self.room() >= 8).then_some(())
        })?;
        Ok(())
    }

    /// Who waits for room.
    pub(super) fn room_queue(&self) -> &WaitQueue {
        self.device.map_or(&self.for_room, |device| device.for_room())
    }

    /// How many bytes the device takes now.
    pub(super) fn room(&self) -> usize {
        match self.device {
            Some(device) => device.room(),
            None => self.state.lock().end.room(),
        }
    }

    /// Bytes written that the device has not sent.
    pub(super) fn unsent(&self) -> usize {
        self.device.map_or(0, |device| device.queued())
    }

    /// Waits until everything written has been sent (`tcdrain`).
    pub(super) fn wait_until_sent(&self) -> Result<()> {
        let Some(device) = self.device else { return Ok(()) };
        device.for_room().wait_interruptible(|| {
            device.send();
            (device.queued() == 0).then_some(())
        })?;
        // What is left is at most a FIFO full: not worth an interrupt.
        for _ in 0..100_000 {
            if device.is_idle() {
                break;
            }
        }
        Ok(())
    }

    /// Sends a break of so many milliseconds; a pseudo-terminal has no line to break.
    pub(super) fn send_break(&self, milliseconds: u64) -> Result<()> {
        let Some(device) = self.device else { return Ok(()) };
        device.set_break(true);
        let end = time::since_boot_ns().saturating_add(milliseconds.saturating_mul(1_000_000));
        let slept = WaitQueue::new().wait_deadline(Some(end), || None::<()>);
        device.set_break(false);
        match slept {
            Err(WaitError::Interrupted) => Err(Errno::EINTR),
            _ => Ok(()),
        }
    }

    /// Throws away written bytes that were not sent.
    pub(super) fn flush_output(&self) {
        let mut state = self.state.lock();
        match &mut state.end {
            End::Master(pty) => pty.discard_output(),
            End::Device(device) => device.discard_output(),
        }
        drop(state);
        self.room_queue().wake_events(crate::vfs::PollEvents::WRITABLE.bits());
    }
}
