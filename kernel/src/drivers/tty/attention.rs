//! A break at the console and the letter behind it are for the kernel: the magic SysRq key of a serial line, as Linux has it.
//!
//! Owns what a line received last, and the slot of what obeys a letter. Never obeys in an interrupt: the thread that processes input
//! does. Locks: none.
#![forbid(unsafe_code)]

use crate::drivers::console_device::{LineError, Received};
use crate::sync::Once;
use crate::time;
use core::cell::Cell;

/// How long after the break a letter counts, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

static OBEY: Once<fn(u8) -> bool> = Once::new();

/// Gives what obeys a letter: whether it was taken, or the key is switched off.
pub fn register_attention(obey: fn(u8) -> bool) {
    OBEY.call_once(|| obey);
}

/// Of one line.
#[derive(Default)]
pub(super) struct Attention {
    /// Until when a letter is the kernel's.
    until: Option<u64>,
}

impl Attention {
    /// Takes out of what was received what is the kernel's, and obeys it: how much is left, at the start.
    pub fn filter(&mut self, received: &mut [Received]) -> usize {
        let mut left = 0;
        let received = Cell::from_mut(received).as_slice_of_cells();
        for one in received.iter().map(Cell::get) {
            if !self.is_kernels(one) {
                received[left].set(one);
                left += 1;
            }
        }
        left
    }

    fn is_kernels(&mut self, one: Received) -> bool {
        let waiting = self.until.take();
        if one.error == Some(LineError::Break) {
            // The second break in a row is the program's.
            if waiting.is_none() {
                self.until = Some(time::since_boot_ns().saturating_add(PATIENCE));
            }
            return waiting.is_none();
        }
        let is_in_time = waiting.is_some_and(|until| time::since_boot_ns() < until);
        is_in_time && one.byte != 0 && OBEY.get().is_some_and(|obey| obey(one.byte))
    }
}
