//! Early output: a polled 16550 on COM1, usable from the first line of Rust and in a panic.
//!
//! Owns the port until the tty driver takes it over (then only panics write here). No lock: `klog`
//! and the panic path serialise.

use super::port::COM1;

/// 115200 baud, 8N1, FIFOs on, interrupts off.
pub fn init() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 0xb)] {
        COM1.write8(register, value);
    }
}

/// Writes bytes, with a carriage return before each newline.
pub fn write(bytes: &[u8]) {
    let mut room = 0;
    for &byte in bytes {
        if byte == b'\n' {
            put(b'\r', &mut room);
        }
        put(byte, &mut room);
    }
}

/// Sends a byte. `room` is what the FIFO takes without being asked: all of it once it is empty.
fn put(byte: u8, room: &mut u32) {
    const FIFO: u32 = 16;
    if *room == 0 {
        // An absent port reads as ones and counts as ready; a stuck one is given up on.
        for _ in 0..100_000 {
            if COM1.read8(5) & 0x20 != 0 {
                break;
            }
        }
        *room = FIFO;
    }
    *room -= 1;
    COM1.write8(0, byte);
}

/// Formats straight to the port, for panics.
pub struct EarlyWriter;

impl core::fmt::Write for EarlyWriter {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}
