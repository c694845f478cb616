//! What processing input or output brings about, collected under the terminal's lock; `act` does it.

use super::end::End;
use super::pty::PtyState;
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
    /// How often input has come.
    pub arrived: u32,
    /// Bytes wait to be sent: at the device, or for the master.
    pub output: bool,
    /// Some of them are new.
    pub has_put: bool,
}

/// The end behind the discipline, as it sees it.
pub(super) struct Screen<'a> {
    end: &'a mut End,
    events: &'a mut Events,
}

impl<'a> Screen<'a> {
    pub fn new(end: &'a mut End, events: &'a mut Events) -> Self {
        Self { end, events }
    }

    pub fn pty(&mut self) -> Option<&mut PtyState> {
        self.end.pty_mut()
    }
}

impl Host for Screen<'_> {
    fn room(&mut self) -> usize {
        self.end.room()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.events.output = true;
        self.events.has_put |= !bytes.is_empty();
        match self.end {
            End::Master(pty) => pty.put_output(bytes),
            End::Device(device) => {
                device.queue(bytes);
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

    fn arrived(&mut self) {
        self.events.arrived += 1;
    }

    fn discard_output(&mut self) {
        match self.end {
            End::Master(pty) => pty.note_flush(),
            End::Device(device) => device.discard_output(),
        }
        self.events.output = true;
    }

    fn flow_changed(&mut self, stopped: bool) {
        match self.end {
            End::Master(pty) => pty.set_stopped(stopped),
            End::Device(device) => device.set_stopped(stopped),
        }
        self.events.output = true;
    }
}
