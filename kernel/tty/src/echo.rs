//! Echo that waits for room: what typing shows on the screen, as bytes and small operations.
//!
//! Owns the echo ring. Echo is recorded while input is processed and played out when a batch of
//! input ends (or a block of it has gathered), because a signal character in the same batch throws
//! the recorded echo away. When the terminal takes nothing for long, the oldest echo is dropped.

use crate::Host;
use crate::buffer::try_boxed;
use crate::ctype::is_control;
use crate::output::Output;
use crate::termios::{Termios, lflag, oflag};
use alloc::boxed::Box;
use alloc::collections::TryReserveError;

const SIZE: usize = 4096;
const MASK: u32 = SIZE as u32 - 1;
const BLOCK: u32 = 256;
/// Echo gathered during one batch is played out early once there is this much of it.
const COMMIT_WATERMARK: u32 = BLOCK;
/// Beyond this the oldest echo is dropped.
const DISCARD_WATERMARK: u32 = SIZE as u32 - (BLOCK + 32);

/// Introduces an operation; doubled, it stands for itself.
const START: u8 = 0xff;
const MOVE_BACK: u8 = 0x80;
const SET_CANON_COLUMN: u8 = 0x81;
const ERASE_TAB: u8 = 0x82;

/// The ring of recorded echo.
pub struct EchoQueue {
    bytes: Box<[u8; SIZE]>,
    tail: u32,
    /// Echo before this point may be played out.
    committed: u32,
    /// Echo before this point is complete; it becomes `committed` at the next chance.
    mark: u32,
    head: u32,
}

impl EchoQueue {
    pub fn try_new() -> Result<Self, TryReserveError> {
        Ok(Self { bytes: try_boxed()?, tail: 0, committed: 0, mark: 0, head: 0 })
    }

    fn push(&mut self, byte: u8) {
        self.bytes[(self.head & MASK) as usize] = byte;
        self.head = self.head.wrapping_add(1);
    }

    fn get(&self, position: u32) -> u8 {
        self.bytes[(position & MASK) as usize]
    }

    /// A byte to show as it is.
    pub fn raw(&mut self, byte: u8) {
        if byte == START {
            self.push(START);
        }
        self.push(byte);
    }

    /// A byte to show as the settings say: control characters as `^X` with ECHOCTL.
    pub fn char(&mut self, byte: u8, termios: &Termios) {
        let as_control = termios.local(lflag::ECHOCTL) && is_control(byte) && byte != b'\t';
        if byte == START || as_control {
            self.push(START);
        }
        self.push(byte);
    }

    /// The cursor did not move although a byte was shown (part of a multi-byte character).
    pub fn move_back(&mut self) {
        self.push(START);
        self.push(MOVE_BACK);
    }

    /// Remembers the column at which the line being typed begins.
    pub fn set_canon_column(&mut self) {
        self.push(START);
        self.push(SET_CANON_COLUMN);
    }

    /// Moves back over a tab; `columns` were used before it, since a tab or the line's start.
    pub fn erase_tab(&mut self, columns: u32, after_tab: bool) {
        self.push(START);
        self.push(ERASE_TAB);
        let columns = (columns & 7) as u8;
        self.push(if after_tab { columns | 0x80 } else { columns });
    }

    pub fn reset(&mut self) {
        (self.tail, self.committed, self.mark, self.head) = (0, 0, 0, 0);
    }

    /// The echo recorded so far is complete; plays it out if a block has gathered.
    pub fn commit(&mut self, termios: &Termios, out: &mut Output, host: &mut impl Host) {
        self.mark = self.head;
        let old = self.committed.wrapping_sub(self.tail);
        let gathered = self.head.wrapping_sub(self.tail);
        if gathered < COMMIT_WATERMARK || gathered % BLOCK > old % BLOCK {
            return;
        }
        self.committed = self.head;
        self.play(termios, out, host);
    }

    /// Plays out all that is complete (before other output, or when there is room again).
    pub fn process(&mut self, termios: &Termios, out: &mut Output, host: &mut impl Host) {
        if self.mark == self.tail {
            return;
        }
        self.committed = self.mark;
        self.play(termios, out, host);
    }

    /// A batch of input ended: plays out everything recorded.
    pub fn flush(&mut self, termios: &Termios, out: &mut Output, host: &mut impl Host) {
        let echoing = termios.local(lflag::ECHO | lflag::ECHONL);
        if !echoing || self.committed == self.head {
            return;
        }
        self.committed = self.head;
        self.play(termios, out, host);
    }

    fn play(&mut self, termios: &Termios, out: &mut Output, host: &mut impl Host) {
        while self.tail != self.committed {
            let Some(used) = self.play_one(termios, out, host) else { break };
            self.tail = self.tail.wrapping_add(used);
        }
        while self.committed.wrapping_sub(self.tail) >= DISCARD_WATERMARK {
            self.tail = self.tail.wrapping_add(self.record_len());
        }
        // A record may not straddle the commit point, but never trust the tail past it.
        if self.committed.wrapping_sub(self.tail) > SIZE as u32 {
            self.tail = self.committed;
        }
    }

    fn record_len(&self) -> u32 {
        match (self.get(self.tail), self.get(self.tail.wrapping_add(1))) {
            (START, ERASE_TAB) => 3,
            (START, _) => 2,
            _ => 1,
        }
    }

    /// Plays the record at the tail and says how long it was; `None` when it does not fit yet.
    fn play_one(&self, termios: &Termios, out: &mut Output, host: &mut impl Host) -> Option<u32> {
        let byte = self.get(self.tail);
        if byte != START {
            let shown = if termios.output(oflag::OPOST) {
                out.put_processed(byte, termios, host)
            } else {
                out.put_plain(byte, host)
            };
            return shown.then_some(1);
        }
        match self.get(self.tail.wrapping_add(1)) {
            ERASE_TAB => {
                let used = self.get(self.tail.wrapping_add(2));
                out.erase_tab(used, host).then_some(3)
            }
            SET_CANON_COLUMN => {
                out.canon_column = out.column;
                Some(2)
            }
            MOVE_BACK => {
                out.column = out.column.saturating_sub(1);
                Some(2)
            }
            START => {
                let shown = out.put_plain(START, host);
                if shown {
                    out.column = out.column.wrapping_add(1);
                }
                shown.then_some(2)
            }
            control => out.put_control(control, host).then_some(2),
        }
    }
}
