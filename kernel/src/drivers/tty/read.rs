//! Reading from a terminal: lines in canonical mode, VMIN and VTIME otherwise.

use super::tty::Tty;
use crate::mm::Sink;
use crate::sync::wait::{Deadline, WaitError};
use crate::time;
use abi::{Errno, Result};
use alea_tty::Taken;

const CHUNK: usize = 256;
const TENTH_OF_A_SECOND: u64 = 100_000_000;

/// What a look at the terminal found.
enum Found {
    Input(Taken),
    Nothing,
    HungUp,
    MasterGone,
}

impl Tty {
    /// Reads for a file of the given generation. Job control has been checked.
    pub(super) fn read(
        &self,
        generation: u32,
        nonblock: bool,
        dst: &mut Sink<'_>,
    ) -> Result<usize> {
        let _one_reader = match self.reading.try_lock() {
            Some(guard) => guard,
            None if nonblock => return Err(Errno::EAGAIN),
            None => self.reading.lock_interruptible()?,
        };
        let rules = self.state.lock().discipline.read_rules();
        let after = |tenths: u8| {
            time::since_boot_ns().saturating_add(u64::from(tenths) * TENTH_OF_A_SECOND)
        };
        let mut deadline = rules.first.map(after);
        let mut got = 0;
        let result = |got: usize, error: Errno| if got > 0 { Ok(got) } else { Err(error) };
        while dst.remaining() > 0 {
            let mut chunk = [0; CHUNK];
            match self.look(generation, &mut chunk, dst.remaining()) {
                Found::Input(taken) => {
                    self.input_was_taken();
                    match dst.put(&chunk[..taken.bytes]) {
                        Ok(put) => got += put,
                        Err(error) => return result(got, error),
                    }
                    if taken.line || (got >= rules.minimum && !self.has_input()) {
                        break;
                    }
                    deadline = rules.next.map(after);
                    continue;
                }
                Found::HungUp => break,
                Found::MasterGone => return result(got, Errno::EIO),
                Found::Nothing => {}
            }
            if got > 0 && got >= rules.minimum {
                break;
            }
            if rules.first == Some(0) {
                break;
            }
            if nonblock {
                return result(got, Errno::EAGAIN);
            }
            match self.wait_for_input(generation, deadline) {
                Ok(()) => {}
                Err(WaitError::TimedOut) => break,
                Err(WaitError::Interrupted) => return result(got, Errno::ERESTARTSYS),
            }
        }
        Ok(got)
    }

    /// Waits until a look would find something.
    fn wait_for_input(
        &self,
        generation: u32,
        deadline: Option<Deadline>,
    ) -> core::result::Result<(), WaitError> {
        self.for_input.wait_deadline(deadline, || {
            let state = self.state.lock();
            let ready = state.discipline.has_input()
                || state.is_hung_up(generation)
                || state.master_is_gone();
            ready.then_some(())
        })
    }

    fn look(&self, generation: u32, chunk: &mut [u8; CHUNK], wanted: usize) -> Found {
        let mut state = self.state.lock();
        if state.is_hung_up(generation) {
            return Found::HungUp;
        }
        if !state.discipline.has_input() {
            return if state.master_is_gone() { Found::MasterGone } else { Found::Nothing };
        }
        let size = wanted.min(CHUNK);
        Found::Input(state.discipline.take(&mut chunk[..size], wanted <= CHUNK))
    }

    fn has_input(&self) -> bool {
        self.state.lock().discipline.has_input()
    }
}
