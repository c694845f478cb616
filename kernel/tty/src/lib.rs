//! The terminal line discipline of the Alea kernel: bytes in, edits and echo and signals out.
//!
//! Owns what Linux calls N_TTY: canonical editing, echo, signal characters, flow control
//! characters, output post-processing and the rules of VMIN and VTIME, plus the `termios`
//! structures and their conversions. It is a state machine over bytes: no clock, no lock, no
//! statics. A kernel feeds it received bytes and a [`Host`] through which it echoes, raises signals
//! and stops or starts output.
//!
//! It must never block, allocate after construction, or panic on any input: every position is
//! masked into a fixed ring, and a full ring follows Linux's overflow rules. Callers serialise all
//! calls for one terminal (one lock around the discipline).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffer;
mod ctype;
mod discipline;
mod echo;
mod erase;
mod output;
mod reading;
mod receive;
pub mod termios;

pub use buffer::BUFFER_SIZE;
pub use discipline::LineDiscipline;
pub use reading::{ReadRules, Taken};
pub use termios::{Termio, Termios, UserTermios, UserTermios2};

/// What a received byte turned out to be on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStatus {
    /// An ordinary byte.
    Normal,
    /// The line was held in the break condition.
    Break,
    /// The byte arrived with a parity error.
    Parity,
    /// The byte arrived with a framing error.
    Frame,
    /// A byte before this one was lost by the hardware.
    Overrun,
}

/// The signals that typing can raise in the foreground process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtySignal {
    /// VINTR, or a break with BRKINT: SIGINT.
    Interrupt,
    /// VQUIT: SIGQUIT.
    Quit,
    /// VSUSP: SIGTSTP.
    Suspend,
}

/// The terminal as its line discipline sees it: where output goes and who hears of signals.
pub trait Host {
    /// How many bytes [`Host::put`] accepts now.
    fn room(&mut self) -> usize;
    /// Sends bytes towards the terminal; never more than [`Host::room`] allowed.
    fn put(&mut self, bytes: &[u8]);
    /// Raises a signal in the foreground process group.
    fn raise(&mut self, signal: TtySignal);
    /// Throws away output that was put but has not reached the terminal (a signal character came
    /// and NOFLSH is off; the discipline's input was flushed as well).
    fn discard_output(&mut self);
    /// Output was stopped or started again by a flow control character or a termios change.
    fn flow_changed(&mut self, stopped: bool);
    /// Input came that can be read: a line, or bytes where no lines are edited.
    fn arrived(&mut self) {}
}
