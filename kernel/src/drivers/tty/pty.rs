//! [`PtyState`]: what lies between the two sides of a pseudo-terminal.
//!
//! Output for the master, typed bytes that the discipline has no room for, and the packet-mode status. All of it is under
//! the terminal's lock.

use crate::mm::fallible::TryGrow;
use abi::tty as lx;
use abi::{Errno, Result};
use alea_tty::termios::{Termios, cc, cflag, iflag};
use alloc::collections::VecDeque;

/// Bytes that wait for the master, and typed bytes that wait for the discipline.
pub(super) const QUEUE: usize = 8192;
/// What a new pseudo-terminal is set to, and one that was hung up.
pub(super) const SETTINGS: Termios =
    Termios { cflag: cflag::B38400 | cflag::CS8 | cflag::CREAD, ..Termios::STANDARD };

/// What is between the two ends.
pub(super) struct PtyState {
    pub output: VecDeque<u8>,
    pub backlog: VecDeque<u8>,
    /// TIOCSPTLCK: the terminal side cannot be opened yet.
    pub locked: bool,
    pub master_closed: bool,
    /// It was open on the terminal side and is not any more.
    pub slave_closed: bool,
    stopped: bool,
    pub packet: bool,
    /// TIOCPKT_* bits that the master has not read.
    pub status: u8,
    /// XON/XOFF with the usual keys is on, as packet mode reports it.
    usual_flow_control: bool,
}

impl PtyState {
    pub fn new() -> Result<Self> {
        let queue = || {
            let mut queue = VecDeque::new();
            queue.try_reserve_exact(QUEUE).map(|()| queue).map_err(|_| Errno::ENOMEM)
        };
        Ok(Self {
            output: queue()?,
            backlog: queue()?,
            locked: true,
            master_closed: false,
            slave_closed: false,
            stopped: false,
            packet: false,
            status: 0,
            usual_flow_control: true,
        })
    }

    pub fn room_for_output(&self) -> usize {
        if self.stopped { 0 } else { QUEUE - self.output.len().min(QUEUE) }
    }

    pub fn put_output(&mut self, bytes: &[u8]) {
        // Room for a full queue was made with the terminal; what is more finds memory or is lost.
        let _lost = self.output.try_extend(bytes.iter().copied());
    }

    pub fn discard_output(&mut self) {
        self.output.clear();
        self.note(lx::TIOCPKT_FLUSHWRITE);
    }

    pub fn note_flush(&mut self) {
        self.note(lx::TIOCPKT_FLUSHREAD | lx::TIOCPKT_FLUSHWRITE);
    }

    pub fn flush_backlog(&mut self) {
        self.backlog.clear();
        self.note(lx::TIOCPKT_FLUSHREAD);
    }

    pub fn set_stopped(&mut self, stopped: bool) {
        self.stopped = stopped;
        let (now, before) = match stopped {
            true => (lx::TIOCPKT_STOP, lx::TIOCPKT_START),
            false => (lx::TIOCPKT_START, lx::TIOCPKT_STOP),
        };
        self.status &= !before;
        self.note(now);
    }

    /// Packet mode reports whether the usual flow control keys are in force.
    pub fn note_termios(&mut self, termios: &Termios) {
        let keys = (termios.cc[cc::VSTOP], termios.cc[cc::VSTART]);
        let usual = termios.input(iflag::IXON) && keys == (0x13, 0x11);
        if usual != self.usual_flow_control {
            self.usual_flow_control = usual;
            let (now, before) = match usual {
                true => (lx::TIOCPKT_DOSTOP, lx::TIOCPKT_NOSTOP),
                false => (lx::TIOCPKT_NOSTOP, lx::TIOCPKT_DOSTOP),
            };
            self.status &= !before;
            self.note(now);
        }
    }

    fn note(&mut self, status: u8) {
        if self.packet {
            self.status |= status;
        }
    }

    pub fn open_slave(&mut self) -> Result<()> {
        if self.locked || self.master_closed {
            return Err(Errno::EIO);
        }
        self.slave_closed = false;
        Ok(())
    }

    pub fn close_slave(&mut self) {
        self.slave_closed = true;
    }
}
