//! The line discipline of one terminal: its settings, its input, its echo, its flow control state.
//!
//! Owns everything N_TTY keeps per terminal. Receiving is in `receive`, erasing in `erase`, taking
//! bytes out in `reading`. All calls for one terminal are serialised by the caller.

use crate::Host;
use crate::buffer::InputBuffer;
use crate::echo::EchoQueue;
use crate::output::Output;
use crate::termios::{Termios, cc, iflag, lflag, oflag};
use alloc::collections::TryReserveError;

/// A terminal's discipline.
pub struct LineDiscipline {
    pub(crate) termios: Termios,
    pub(crate) input: InputBuffer,
    pub(crate) echo: EchoQueue,
    pub(crate) out: Output,
    /// Which bytes the special-character path looks at.
    special: [u64; 4],
    /// No setting asks for any processing of input.
    pub(crate) raw: bool,
    /// The next byte is literal (VLNEXT was typed).
    pub(crate) literal_next: bool,
    /// Erased characters are being shown between `\` and `/` (ECHOPRT).
    pub(crate) erasing: bool,
    /// Output is stopped by VSTOP or TCOOFF.
    pub(crate) stopped: bool,
    /// Output is stopped by TCOOFF: only TCOON starts it.
    stopped_by_user: bool,
}

impl LineDiscipline {
    /// A discipline with the given settings; fails only when there is no memory for its rings.
    pub fn try_new(termios: Termios) -> Result<Self, TryReserveError> {
        let mut this = Self {
            termios,
            input: InputBuffer::try_new()?,
            echo: EchoQueue::try_new()?,
            out: Output::new(),
            special: [0; 4],
            raw: false,
            literal_next: false,
            erasing: false,
            stopped: false,
            stopped_by_user: false,
        };
        this.learn_special();
        Ok(this)
    }

    /// The settings in force.
    pub fn termios(&self) -> &Termios {
        &self.termios
    }

    /// Whether lines are edited and delivered whole.
    pub fn is_canonical(&self) -> bool {
        self.termios.local(lflag::ICANON) && !self.termios.local(lflag::EXTPROC)
    }

    /// Whether output is held back.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Changes the settings; input typed so far is kept and re-interpreted as Linux does.
    pub fn set_termios(&mut self, new: Termios, host: &mut impl Host) {
        let old = core::mem::replace(&mut self.termios, new);
        if (old.lflag ^ new.lflag) & (lflag::ICANON | lflag::EXTPROC) != 0 {
            self.input.clear_marks();
            if !new.local(lflag::ICANON) || self.input.len() == 0 {
                self.input.canon = self.input.tail;
            } else {
                let last = self.input.head.wrapping_sub(1);
                self.input.mark(last);
                self.input.canon = self.input.head;
            }
            self.input.committed = self.input.head;
            self.erasing = false;
            self.literal_next = false;
        }
        self.learn_special();
        if !new.input(iflag::IXON) && old.input(iflag::IXON) && !self.stopped_by_user {
            self.start(host);
            self.process_echo(host);
        }
    }

    /// TCXONC's TCOOFF and TCOON.
    pub fn set_stopped_by_user(&mut self, stop: bool, host: &mut impl Host) {
        if stop == self.stopped_by_user {
            return;
        }
        self.stopped_by_user = stop;
        if stop { self.stop(host) } else { self.start(host) }
    }

    /// Throws away input that nobody has read (TCIFLUSH).
    pub fn flush_input(&mut self) {
        self.input.reset();
        self.erasing = false;
    }

    /// Plays out waiting echo; call it when the terminal has room again.
    pub fn process_echo(&mut self, host: &mut impl Host) {
        self.echo.process(&self.termios, &mut self.out, host);
    }

    /// Sends a program's output, post-processed; says how many of its bytes were taken. Fewer than
    /// all means the terminal has no room: try again when it has.
    pub fn write(&mut self, bytes: &[u8], host: &mut impl Host) -> usize {
        self.process_echo(host);
        if !self.termios.output(oflag::OPOST) {
            let n = bytes.len().min(host.room());
            if n > 0 {
                host.put(&bytes[..n]);
            }
            return n;
        }
        let mut done = 0;
        while done < bytes.len() {
            done += self.out.put_run(&bytes[done..], &self.termios, host);
            let Some(&byte) = bytes.get(done) else { break };
            if !self.out.put_processed(byte, &self.termios, host) {
                break;
            }
            done += 1;
        }
        done
    }

    pub(crate) fn stop(&mut self, host: &mut impl Host) {
        if !self.stopped {
            self.stopped = true;
            host.flow_changed(true);
        }
    }

    pub(crate) fn start(&mut self, host: &mut impl Host) {
        if self.stopped && !self.stopped_by_user {
            self.stopped = false;
            host.flow_changed(false);
        }
    }

    /// IXANY: any byte restarts output that VSTOP stopped.
    pub(crate) fn start_on_any(&mut self, host: &mut impl Host) {
        let restarts = iflag::IXON | iflag::IXANY;
        if self.stopped && !self.stopped_by_user && self.termios.iflag & restarts == restarts {
            self.start(host);
            self.process_echo(host);
        }
    }

    #[inline]
    pub(crate) fn is_special(&self, byte: u8) -> bool {
        self.special[usize::from(byte / 64)] & (1 << (byte % 64)) != 0
    }

    /// Works out which bytes need the special-character path under the settings.
    fn learn_special(&mut self) {
        let t = &self.termios;
        let processing = iflag::ISTRIP
            | iflag::IUCLC
            | iflag::IGNCR
            | iflag::ICRNL
            | iflag::INLCR
            | iflag::IXON
            | iflag::PARMRK;
        self.raw = !t.input(processing) && !t.local(lflag::ICANON | lflag::ISIG | lflag::ECHO);
        let mut map = [0u64; 4];
        let mut add = |byte: u8| map[usize::from(byte / 64)] |= 1 << (byte % 64);
        if t.input(iflag::IGNCR | iflag::ICRNL) {
            add(b'\r');
        }
        if t.input(iflag::INLCR) {
            add(b'\n');
        }
        if t.local(lflag::ICANON) {
            [cc::VERASE, cc::VKILL, cc::VEOF, cc::VEOL].into_iter().for_each(|i| add(t.cc[i]));
            add(b'\n');
            if t.local(lflag::IEXTEN) {
                [cc::VWERASE, cc::VLNEXT, cc::VEOL2].into_iter().for_each(|i| add(t.cc[i]));
                if t.local(lflag::ECHO) {
                    add(t.cc[cc::VREPRINT]);
                }
            }
        }
        if t.input(iflag::IXON) {
            [cc::VSTART, cc::VSTOP].into_iter().for_each(|i| add(t.cc[i]));
        }
        if t.local(lflag::ISIG) {
            [cc::VINTR, cc::VQUIT, cc::VSUSP].into_iter().for_each(|i| add(t.cc[i]));
        }
        // Zero means "disabled" in c_cc, so it is never special.
        map[0] &= !1;
        self.special = map;
    }
}
