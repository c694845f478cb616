//! Erasing: the last character, the last word or the whole line, on the screen as in the buffer.
//!
//! Works on [`LineDiscipline`]'s state only; never touches bytes of finished lines.

use crate::ctype::{is_control, is_word};
use crate::discipline::LineDiscipline;
use crate::output::is_continuation;
use crate::termios::{cc, lflag};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Erase {
    Character,
    Word,
    Line,
}

impl LineDiscipline {
    /// Handles VERASE, VWERASE and VKILL.
    pub(crate) fn erase(&mut self, key: u8) {
        if self.input.head == self.input.canon {
            return;
        }
        let t = self.termios;
        let kind = if key == t.cc[cc::VERASE] {
            Erase::Character
        } else if key == t.cc[cc::VWERASE] {
            Erase::Word
        } else if !t.local(lflag::ECHO) {
            self.input.head = self.input.canon;
            return;
        } else if !(t.local(lflag::ECHOK) && t.local(lflag::ECHOKE) && t.local(lflag::ECHOE)) {
            self.input.head = self.input.canon;
            self.finish_erasing();
            self.echo.char(t.cc[cc::VKILL], &t);
            if t.local(lflag::ECHOK) {
                self.echo.raw(b'\n');
            }
            return;
        } else {
            Erase::Line
        };
        self.erase_back(kind);
        if self.input.head == self.input.canon && t.local(lflag::ECHO) {
            self.finish_erasing();
        }
    }

    fn erase_back(&mut self, kind: Erase) {
        let t = self.termios;
        let mut seen_word = false;
        while self.input.head != self.input.canon {
            let mut at = self.input.head;
            let mut byte;
            loop {
                at = at.wrapping_sub(1);
                byte = self.input.get(at);
                if !is_continuation(byte, &t) || at == self.input.canon {
                    break;
                }
            }
            if is_continuation(byte, &t) {
                break; // a character whose first byte belongs to a finished line
            }
            if kind == Erase::Word {
                if is_word(byte) {
                    seen_word = true;
                } else if seen_word {
                    break;
                }
            }
            let length = self.input.head.wrapping_sub(at);
            self.input.head = at;
            if t.local(lflag::ECHO) {
                self.show_erased(kind, byte, at, length);
            }
            if kind == Erase::Character {
                break;
            }
        }
    }

    /// Takes the erased character off the screen, in the style the settings ask for.
    fn show_erased(&mut self, kind: Erase, byte: u8, at: u32, length: u32) {
        let t = self.termios;
        if t.local(lflag::ECHOPRT) {
            if !self.erasing {
                self.echo.raw(b'\\');
                self.erasing = true;
            }
            self.echo.char(byte, &t);
            for i in 1..length {
                let rest = self.input.get(at.wrapping_add(i));
                self.echo.raw(rest);
                self.echo.move_back();
            }
        } else if kind == Erase::Character && !t.local(lflag::ECHOE) {
            self.echo.char(t.cc[cc::VERASE], &t);
        } else if byte == b'\t' {
            self.show_erased_tab();
        } else {
            let columns = match (is_control(byte), t.local(lflag::ECHOCTL)) {
                (true, true) => 2,
                (true, false) => 0,
                (false, _) => 1,
            };
            for _ in 0..columns {
                [8, b' ', 8].into_iter().for_each(|b| self.echo.raw(b));
            }
        }
    }

    /// A tab goes back to the column where it began: counts what was typed before it.
    fn show_erased_tab(&mut self) {
        let t = self.termios;
        let mut columns = 0u32;
        let mut after_tab = false;
        let mut at = self.input.head;
        while at != self.input.canon {
            at = at.wrapping_sub(1);
            let byte = self.input.get(at);
            if byte == b'\t' {
                after_tab = true;
                break;
            } else if is_control(byte) {
                if t.local(lflag::ECHOCTL) {
                    columns = columns.wrapping_add(2);
                }
            } else if !is_continuation(byte, &t) {
                columns = columns.wrapping_add(1);
            }
        }
        self.echo.erase_tab(columns, after_tab);
    }
}
