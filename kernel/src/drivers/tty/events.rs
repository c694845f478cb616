//! What processing input or output brings about, collected under the terminal's lock; `act` does it.

use super::pty::PtyState;
use crate::drivers::uart;
use abi::signal::Signal;
use alea_tty::{Host, TtySignal};
use arrayvec::ArrayVec;

/// Things to do once the lock is released.
#[derive(Default)]
pub(super) struct Events {
    /// Each once: one that waits already is not queued again.
    pub signals: ArrayVec<Signal, 3>,
    /// A reader of the terminal would find something.
    pub readable: bool,
    /// Bytes wait to be sent: at the port, or for the master.
    pub output: bool,
}

/// The device under the discipline: the serial port, or the master's side of a pseudo-terminal.
pub(super) struct Screen<'a> {
    pty: Option<&'a mut PtyState>,
    events: &'a mut Events,
}

impl<'a> Screen<'a> {
    pub fn new(pty: Option<&'a mut PtyState>, events: &'a mut Events) -> Self {
        Self { pty, events }
    }

    pub fn pty(&mut self) -> Option<&mut PtyState> {
        self.pty.as_deref_mut()
    }
}

impl Host for Screen<'_> {
    fn room(&mut self) -> usize {
        match &self.pty {
            Some(pty) => pty.room_for_output(),
            None => uart::room(),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.events.output = true;
        match &mut self.pty {
            Some(pty) => pty.put_output(bytes),
            None => {
                uart::queue(bytes);
            }
        }
    }

    fn raise(&mut self, signal: TtySignal) {
        let signal = match signal {
            TtySignal::Interrupt => Signal::SIGINT,
            TtySignal::Quit => Signal::SIGQUIT,
            TtySignal::Suspend => Signal::SIGTSTP,
        };
        if !self.events.signals.contains(&signal) {
            self.events.signals.push(signal);
        }
    }

    fn discard_output(&mut self) {
        match &mut self.pty {
            Some(pty) => pty.note_flush(),
            None => uart::discard_output(),
        }
        self.events.output = true;
    }

    fn flow_changed(&mut self, stopped: bool) {
        match &mut self.pty {
            Some(pty) => pty.set_stopped(stopped),
            None => uart::set_stopped(stopped),
        }
        self.events.output = true;
    }
}
