//! The first serial port, which the host reads: without the cursor's movements that UEFI's console writes there.
//!
//! Owns the port, which the firmware has set up. Never waits for ever: a port that takes nothing loses bytes. Locks: none.

use core::arch::asm;
use core::fmt::{self, Write};

const DATA: u16 = 0x3f8;
const STATUS: u16 = DATA + 5;
const EMPTY: u8 = 1 << 5;
const TRIES: usize = 1_000_000;

pub struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            let ready = (0..TRIES).any(|_| {
                let status: u8;
                // SAFETY: reading the port's status changes nothing.
                unsafe {
                    asm!("in al, dx", in("dx") STATUS, out("al") status, options(nomem, nostack))
                };
                status & EMPTY != 0
            });
            if !ready {
                return Err(fmt::Error);
            }
            // SAFETY: the port sends a byte, and does nothing to memory.
            unsafe { asm!("out dx, al", in("dx") DATA, in("al") byte, options(nomem, nostack)) };
        }
        Ok(())
    }
}

/// Tells the host one line.
macro_rules! say {
    ($($words:tt)*) => {{
        use core::fmt::Write as _;
        let _ = writeln!($crate::serial::Serial, "loader: {}\r", format_args!($($words)*));
    }};
}
pub(crate) use say;
