//! Receiving: what each byte that arrives does to the line, the screen and the processes.
//!
//! Works on [`LineDiscipline`]'s state only. Must keep Linux's order of checks: flow control, then
//! signals, then CR/NL mapping, then canonical editing, then echo, then the buffer.

use crate::buffer::BUFFER_SIZE;
use crate::ctype::to_lower;
use crate::discipline::LineDiscipline;
use crate::termios::{cc, iflag, lflag};
use crate::{Host, LineStatus, TtySignal};

/// `c_cc` value that switches a control character off; also what VEOF leaves in the buffer.
pub(crate) const DISABLED: u8 = 0;

impl LineDiscipline {
    /// Takes a batch of ordinary bytes; returns how many were accepted. The rest does not fit and
    /// should be offered again after a reader made room.
    pub fn receive(&mut self, bytes: &[u8], host: &mut impl Host) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let room = self.make_room();
            if room == 0 {
                break;
            }
            let n = room.min(bytes.len() - done);
            self.receive_block(&bytes[done..done + n], host);
            done += n;
        }
        done
    }

    /// Takes one byte that arrived with a line condition; false when there is no room for it.
    pub fn receive_flagged(&mut self, byte: u8, status: LineStatus, host: &mut impl Host) -> bool {
        if self.make_room() == 0 {
            return false;
        }
        if status == LineStatus::Normal {
            self.receive_block(&[byte], host);
            return true;
        }
        self.literal_next = false;
        self.receive_status(byte, status, host);
        self.finish_batch(host);
        true
    }

    /// Room for more input. While a first line is being typed there is always room for one byte:
    /// it replaces the last one, so that the line's end can still be typed.
    fn make_room(&mut self) -> usize {
        let free = BUFFER_SIZE.saturating_sub(self.input.len());
        let free = if self.termios.input(iflag::PARMRK) { free.div_ceil(3) } else { free };
        if free > 1 {
            return free - 1;
        }
        let line_open = self.termios.local(lflag::ICANON) && self.input.canon == self.input.tail;
        if line_open && free == 0 {
            self.input.head = self.input.tail.wrapping_add(BUFFER_SIZE as u32 - 1);
        }
        usize::from(line_open)
    }

    fn receive_block(&mut self, bytes: &[u8], host: &mut impl Host) {
        let strips = self.termios.input(iflag::ISTRIP)
            || (self.termios.input(iflag::IUCLC) && self.termios.local(lflag::IEXTEN));
        if self.raw || (self.termios.local(lflag::EXTPROC) && !strips) {
            bytes.iter().for_each(|&byte| self.input.push(byte));
        } else {
            bytes.iter().for_each(|&byte| self.receive_byte(byte, host));
        }
        self.finish_batch(host);
    }

    fn finish_batch(&mut self, host: &mut impl Host) {
        self.echo.flush(&self.termios, &mut self.out, host);
        if !self.is_canonical() {
            self.input.committed = self.input.head;
            if self.input.committed_len() > 0 {
                host.arrived();
            }
        }
    }

    fn receive_byte(&mut self, byte: u8, host: &mut impl Host) {
        let mut byte = byte;
        if self.termios.input(iflag::ISTRIP) {
            byte &= 0x7f;
        }
        if self.termios.input(iflag::IUCLC) && self.termios.local(lflag::IEXTEN) {
            byte = to_lower(byte);
        }
        if self.termios.local(lflag::EXTPROC) {
            self.input.push(byte);
        } else if self.literal_next {
            self.literal_next = false;
            self.receive_ordinary(byte, host);
        } else if self.is_special(byte) {
            self.receive_special(byte, host);
        } else {
            self.receive_ordinary(byte, host);
        }
    }

    fn receive_ordinary(&mut self, byte: u8, host: &mut impl Host) {
        self.start_on_any(host);
        if self.termios.local(lflag::ECHO) {
            self.finish_erasing();
            self.echo_typed(byte);
            self.commit_echo(host);
        }
        self.store(byte);
    }

    fn receive_special(&mut self, byte: u8, host: &mut impl Host) {
        if self.termios.input(iflag::IXON) {
            if byte == self.termios.cc[cc::VSTART] {
                self.start(host);
                self.process_echo(host);
                return;
            }
            if byte == self.termios.cc[cc::VSTOP] {
                self.stop(host);
                return;
            }
        }
        if self.termios.local(lflag::ISIG) {
            let signals = [
                (cc::VINTR, TtySignal::Interrupt),
                (cc::VQUIT, TtySignal::Quit),
                (cc::VSUSP, TtySignal::Suspend),
            ];
            for (index, signal) in signals {
                if byte == self.termios.cc[index] {
                    self.receive_signal(byte, signal, host);
                    return;
                }
            }
        }
        self.start_on_any(host);
        let mut byte = byte;
        if byte == b'\r' {
            if self.termios.input(iflag::IGNCR) {
                return;
            }
            if self.termios.input(iflag::ICRNL) {
                byte = b'\n';
            }
        } else if byte == b'\n' && self.termios.input(iflag::INLCR) {
            byte = b'\r';
        }
        if self.termios.local(lflag::ICANON) && self.receive_canonical(byte, host) {
            return;
        }
        if self.termios.local(lflag::ECHO) {
            self.finish_erasing();
            if byte == b'\n' {
                self.echo.raw(b'\n');
            } else {
                self.echo_typed(byte);
            }
            self.commit_echo(host);
        }
        self.store(byte);
    }

    fn receive_signal(&mut self, byte: u8, signal: TtySignal, host: &mut impl Host) {
        self.raise(signal, host);
        if self.termios.input(iflag::IXON) {
            self.start(host);
        }
        if self.termios.local(lflag::ECHO) {
            self.echo.char(byte, &self.termios);
            self.commit_echo(host);
        } else {
            self.process_echo(host);
        }
    }

    fn raise(&mut self, signal: TtySignal, host: &mut impl Host) {
        host.raise(signal);
        if !self.termios.local(lflag::NOFLSH) {
            self.echo.reset();
            host.discard_output();
            self.flush_input();
        }
    }

    /// Editing keys and line ends; false when the byte is an ordinary part of the line.
    fn receive_canonical(&mut self, byte: u8, host: &mut impl Host) -> bool {
        let t = self.termios;
        let extended = t.local(lflag::IEXTEN);
        let echo = t.local(lflag::ECHO);
        if byte == t.cc[cc::VERASE]
            || byte == t.cc[cc::VKILL]
            || (byte == t.cc[cc::VWERASE] && extended)
        {
            self.erase(byte);
            self.commit_echo(host);
        } else if byte == t.cc[cc::VLNEXT] && extended {
            self.literal_next = true;
            if echo {
                self.finish_erasing();
                if t.local(lflag::ECHOCTL) {
                    self.echo.raw(b'^');
                    self.echo.raw(8);
                    self.commit_echo(host);
                }
            }
        } else if byte == t.cc[cc::VREPRINT] && echo && extended {
            self.reprint(byte);
            self.commit_echo(host);
        } else if byte == b'\n' {
            if t.local(lflag::ECHO | lflag::ECHONL) {
                self.echo.raw(b'\n');
                self.commit_echo(host);
            }
            self.end_line(byte, host);
        } else if byte == t.cc[cc::VEOF] {
            self.end_line(DISABLED, host);
        } else if byte == t.cc[cc::VEOL] || (byte == t.cc[cc::VEOL2] && extended) {
            if echo {
                self.echo_typed(byte);
                self.commit_echo(host);
            }
            if byte == 0xff && t.input(iflag::PARMRK) {
                self.input.push(byte);
            }
            self.end_line(byte, host);
        } else {
            return false;
        }
        true
    }

    /// Shows the line typed so far again, on a fresh line.
    fn reprint(&mut self, byte: u8) {
        self.finish_erasing();
        self.echo.char(byte, &self.termios);
        self.echo.raw(b'\n');
        let mut at = self.input.canon;
        while at != self.input.head {
            self.echo.char(self.input.get(at), &self.termios);
            at = at.wrapping_add(1);
        }
    }

    fn end_line(&mut self, terminator: u8, host: &mut impl Host) {
        self.input.mark(self.input.head);
        self.input.push(terminator);
        self.input.canon = self.input.head;
        host.arrived();
    }

    fn receive_status(&mut self, byte: u8, status: LineStatus, host: &mut impl Host) {
        let marks = self.termios.input(iflag::PARMRK);
        match status {
            LineStatus::Normal | LineStatus::Overrun => {}
            LineStatus::Break => {
                if self.termios.input(iflag::IGNBRK) {
                    return;
                }
                if self.termios.input(iflag::BRKINT) {
                    self.raise(TtySignal::Interrupt, host);
                    return;
                }
                if marks {
                    self.input.push(0xff);
                    self.input.push(0);
                }
                self.input.push(0);
            }
            LineStatus::Parity | LineStatus::Frame => {
                if !self.termios.input(iflag::INPCK) {
                    self.input.push(byte);
                } else if self.termios.input(iflag::IGNPAR) {
                } else if marks {
                    [0xff, 0, byte].into_iter().for_each(|b| self.input.push(b));
                } else {
                    self.input.push(0);
                }
            }
        }
    }

    /// Puts a byte into the line, doubling 0xff under PARMRK so that it cannot look like a mark.
    fn store(&mut self, byte: u8) {
        if byte == 0xff && self.termios.input(iflag::PARMRK) {
            self.input.push(byte);
        }
        self.input.push(byte);
    }

    fn echo_typed(&mut self, byte: u8) {
        if self.input.canon == self.input.head {
            self.echo.set_canon_column();
        }
        self.echo.char(byte, &self.termios);
    }

    pub(crate) fn commit_echo(&mut self, host: &mut impl Host) {
        self.echo.commit(&self.termios, &mut self.out, host);
    }

    pub(crate) fn finish_erasing(&mut self) {
        if self.erasing {
            self.echo.raw(b'/');
            self.erasing = false;
        }
    }
}
