//! Output post-processing: OPOST and the cursor column that tabs and erasing depend on.
//!
//! Owns the two columns. A byte goes out whole or not at all: when its expansion does not fit, the
//! caller tries again later.

use crate::Host;
use crate::ctype::{is_control, to_upper};
use crate::termios::{Termios, iflag, oflag};

/// Where the cursor is, as far as the bytes sent tell.
pub struct Output {
    /// The cursor's column.
    pub column: u32,
    /// The column at which the line being typed begins.
    pub canon_column: u32,
}

/// Whether the byte continues a UTF-8 character on a terminal with IUTF8.
pub fn is_continuation(byte: u8, termios: &Termios) -> bool {
    termios.input(iflag::IUTF8) && byte & 0xc0 == 0x80
}

impl Output {
    pub const fn new() -> Self {
        Self { column: 0, canon_column: 0 }
    }

    /// Sends one byte untouched.
    pub fn put_plain(&mut self, byte: u8, host: &mut impl Host) -> bool {
        if host.room() == 0 {
            return false;
        }
        host.put(&[byte]);
        true
    }

    /// Sends a control character as `^X`.
    pub fn put_control(&mut self, byte: u8, host: &mut impl Host) -> bool {
        if host.room() < 2 {
            return false;
        }
        host.put(&[b'^', byte ^ 0x40]);
        self.column = self.column.wrapping_add(2);
        true
    }

    /// Moves the cursor back over a tab. `used` counts the columns before it (modulo 8); its top
    /// bit says they are counted from another tab, not from the start of the line typed.
    pub fn erase_tab(&mut self, used: u8, host: &mut impl Host) -> bool {
        let columns = match used & 0x80 {
            0 => u32::from(used).wrapping_add(self.canon_column),
            _ => u32::from(used),
        };
        let back = 8 - (columns & 7) as usize;
        if host.room() < back {
            return false;
        }
        host.put(&[8; 8][..back]);
        self.column = self.column.saturating_sub(back as u32);
        true
    }

    /// Sends one byte through OPOST; false when it does not fit.
    pub fn put_processed(&mut self, byte: u8, termios: &Termios, host: &mut impl Host) -> bool {
        let room = host.room();
        if room == 0 {
            return false;
        }
        let mut byte = byte;
        match byte {
            b'\n' => {
                if termios.output(oflag::ONLRET) {
                    self.column = 0;
                }
                if termios.output(oflag::ONLCR) {
                    if room < 2 {
                        return false;
                    }
                    (self.column, self.canon_column) = (0, 0);
                    host.put(b"\r\n");
                    return true;
                }
                self.canon_column = self.column;
            }
            b'\r' => {
                if termios.output(oflag::ONOCR) && self.column == 0 {
                    return true;
                }
                if !termios.output(oflag::OCRNL) || termios.output(oflag::ONLRET) {
                    (self.column, self.canon_column) = (0, 0);
                }
                if termios.output(oflag::OCRNL) {
                    byte = b'\n';
                }
            }
            b'\t' => {
                let spaces = 8 - (self.column & 7) as usize;
                if termios.oflag & oflag::TABDLY == oflag::XTABS {
                    if room < spaces {
                        return false;
                    }
                    self.column = self.column.wrapping_add(spaces as u32);
                    host.put(&[b' '; 8][..spaces]);
                    return true;
                }
                self.column = self.column.wrapping_add(spaces as u32);
            }
            8 => self.column = self.column.saturating_sub(1),
            _ if !is_control(byte) => {
                if termios.output(oflag::OLCUC) {
                    byte = to_upper(byte);
                }
                if !is_continuation(byte, termios) {
                    self.column = self.column.wrapping_add(1);
                }
            }
            _ => {}
        }
        host.put(&[byte]);
        true
    }

    /// Sends the longest run at the front that needs no change, and says how long it was.
    pub fn put_run(&mut self, bytes: &[u8], termios: &Termios, host: &mut impl Host) -> usize {
        let limit = bytes.len().min(host.room());
        let mut n = 0;
        for &byte in &bytes[..limit] {
            match byte {
                b'\n' if termios.output(oflag::ONLCR) => break,
                b'\n' => {
                    if termios.output(oflag::ONLRET) {
                        self.column = 0;
                    }
                    self.canon_column = self.column;
                }
                b'\r' | b'\t' => break,
                8 => self.column = self.column.saturating_sub(1),
                _ if is_control(byte) => {}
                _ if termios.output(oflag::OLCUC) => break,
                _ if is_continuation(byte, termios) => {}
                _ => self.column = self.column.wrapping_add(1),
            }
            n += 1;
        }
        if n > 0 {
            host.put(&bytes[..n]);
        }
        n
    }
}
