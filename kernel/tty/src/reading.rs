//! Taking input out: whole lines in canonical mode, VMIN and VTIME otherwise.
//!
//! Works on [`LineDiscipline`]'s state only. Waiting and timers are the caller's; [`ReadRules`]
//! says what to wait for.

use crate::discipline::LineDiscipline;
use crate::receive::DISABLED;
use crate::termios::{cc, lflag};

/// How long a read waits, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRules {
    /// The read is over once it has this many bytes (or a line, in canonical mode: 0).
    pub minimum: usize,
    /// How long to wait for the first byte, in tenths of a second; `None` is for ever.
    pub first: Option<u8>,
    /// How long to wait after each byte, in tenths of a second; `None` is for ever.
    pub next: Option<u8>,
}

/// What one call of [`LineDiscipline::take`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Bytes stored at the front of the caller's slice.
    pub bytes: usize,
    /// The read is over whatever VMIN says: a line or an end-of-file ended.
    pub line: bool,
}

impl LineDiscipline {
    /// The waiting rules of a read that starts now.
    pub fn read_rules(&self) -> ReadRules {
        if self.termios.local(lflag::ICANON) {
            return ReadRules { minimum: 0, first: None, next: None };
        }
        let (min, time) = (self.termios.cc[cc::VMIN], self.termios.cc[cc::VTIME]);
        match min {
            0 => ReadRules { minimum: 1, first: Some(time), next: None },
            _ => ReadRules {
                minimum: usize::from(min),
                first: None,
                next: (time != 0).then_some(time),
            },
        }
    }

    /// Whether a read would find something now.
    pub fn has_input(&self) -> bool {
        if self.is_canonical() {
            self.input.canon != self.input.tail
        } else {
            self.input.committed_len() >= 1
        }
    }

    /// Whether poll reports input: with VMIN and no VTIME, only once VMIN bytes are there.
    pub fn poll_input(&self) -> bool {
        if self.is_canonical() {
            return self.has_input();
        }
        let min = usize::from(self.termios.cc[cc::VMIN]);
        let wanted = if self.termios.cc[cc::VTIME] == 0 && min > 0 { min } else { 1 };
        self.input.committed_len() >= wanted
    }

    /// What FIONREAD reports: end-of-file marks do not count.
    pub fn input_count(&self) -> usize {
        if !self.is_canonical() {
            return self.input.len();
        }
        let mut count = self.input.canon_len();
        let mut at = self.input.tail;
        while at != self.input.canon {
            if self.input.is_marked(at) && self.input.get(at) == DISABLED {
                count = count.saturating_sub(1);
            }
            at = at.wrapping_add(1);
        }
        count
    }

    /// Moves input into `out`, at most to the end of one line. `last` says that the reader has no
    /// room beyond `out`.
    pub fn take(&mut self, out: &mut [u8], last: bool) -> Taken {
        if self.is_canonical() { self.take_line(out, last) } else { self.take_raw(out) }
    }

    fn take_raw(&mut self, out: &mut [u8]) -> Taken {
        let n = out.len().min(self.input.committed_len());
        self.copy_out(&mut out[..n]);
        // Under EXTPROC a lone VEOF still means end of file.
        let lone = n == 1 && self.input.committed_len() == 0;
        let eof = lone && out[0] == self.termios.cc[cc::VEOF];
        if eof && self.termios.local(lflag::EXTPROC) && self.termios.local(lflag::ICANON) {
            return Taken { bytes: 0, line: true };
        }
        Taken { bytes: n, line: false }
    }

    fn take_line(&mut self, out: &mut [u8], last: bool) -> Taken {
        let limit = out.len().min(self.input.canon_len());
        let Some(end) = self.input.find_mark(limit) else {
            self.copy_out(&mut out[..limit]);
            if last {
                self.skip_end_of_file();
            }
            return Taken { bytes: limit, line: false };
        };
        let mark = self.input.tail.wrapping_add(end as u32);
        let is_eof = self.input.get(mark) == DISABLED;
        self.input.unmark(mark);
        let n = if is_eof { end } else { end + 1 };
        self.copy_out(&mut out[..n]);
        if is_eof {
            self.advance(1);
        }
        Taken { bytes: n, line: true }
    }

    /// A read that ends exactly before an end-of-file mark takes the mark with it: it ended that
    /// read, and must not end the next one too.
    fn skip_end_of_file(&mut self) {
        let at = self.input.tail;
        if at != self.input.canon && self.input.is_marked(at) && self.input.get(at) == DISABLED {
            self.input.unmark(at);
            self.advance(1);
        }
    }

    fn copy_out(&mut self, out: &mut [u8]) {
        let (first, second) = self.input.peek(out.len());
        let (head, rest) = out.split_at_mut(first.len().min(out.len()));
        head.copy_from_slice(first);
        rest[..second.len()].copy_from_slice(second);
        let n = out.len() as u32;
        self.advance(n);
    }

    fn advance(&mut self, n: u32) {
        self.input.tail = self.input.tail.wrapping_add(n);
    }
}
