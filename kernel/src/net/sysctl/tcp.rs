//! What a new TCP socket has: its buffers (`net.ipv4.tcp_rmem`, `tcp_wmem`) and its congestion control
//! (`tcp_congestion_control`).
//!
//! Owns them. Never changes a socket that is there already; but a connection whose buffers nobody has set grows up to the largest
//! then. The least sizes hold under a pressure that there is not here. Locks: none; each number stands for itself.

use crate::fs::procfs::{Fixed, ProcFile, next_word, number, register_line, register_numbers};
use crate::mm::fallible::try_arc;
use crate::net::congestion::Congestion;
use crate::try_format;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The least, the first and the largest size of a buffer, in bytes. Relaxed: they decide nothing but later calls.
pub struct Sizes([AtomicUsize; 3]);

impl Sizes {
    const fn new(least: usize, first: usize, largest: usize) -> Self {
        Self([AtomicUsize::new(least), AtomicUsize::new(first), AtomicUsize::new(largest)])
    }

    /// That of a new socket.
    pub fn first(&self) -> usize {
        self.0[1].load(Ordering::Relaxed)
    }

    /// What it may grow to by itself.
    pub fn largest(&self) -> usize {
        self.0[2].load(Ordering::Relaxed)
    }
}

pub static RECEIVE: Sizes = Sizes::new(4096, 131_072, 6_291_456);
pub static SEND: Sizes = Sizes::new(4096, 16_384, 4_194_304);

/// The congestion control of a socket that has not chosen. Relaxed, as above.
static CONGESTION: AtomicU8 = AtomicU8::new(Congestion::Cubic as u8);

/// That of a new socket.
pub fn congestion() -> Congestion {
    Congestion::kept_as(CONGESTION.load(Ordering::Relaxed))
}

/// Adds the files to /proc.
pub fn register() -> Result<()> {
    register_numbers("net/ipv4/tcp_rmem", 0o644, try_arc(&RECEIVE)?)?;
    register_numbers("net/ipv4/tcp_wmem", 0o644, try_arc(&SEND)?)?;
    register_line("net/ipv4/tcp_congestion_control", 0o644, try_arc(Chosen)?)?;
    let all = try_arc(Fixed("reno cubic\n"))?;
    register_line("net/ipv4/tcp_available_congestion_control", 0o444, all)
}

impl ProcFile for &'static Sizes {
    fn read(&self) -> Result<Vec<u8>> {
        let [least, first, largest] = self.0.each_ref().map(|size| size.load(Ordering::Relaxed));
        try_format!("{least}\t{first}\t{largest}\n").map(String::into_bytes)
    }

    /// Up to three numbers, of which those before a wrong one count, as on Linux.
    fn write(&self, data: &[u8]) -> Result<usize> {
        let mut rest = data.trim_ascii_start();
        if data.is_empty() {
            return Ok(0);
        }
        if rest.is_empty() {
            return Err(Errno::EINVAL);
        }
        for size in &self.0 {
            let word = next_word(&mut rest);
            if word.is_empty() {
                break;
            }
            let asked = number(word).filter(|&asked| asked >= 1).ok_or(Errno::EINVAL)?;
            size.store(usize::try_from(asked).map_err(|_| Errno::EINVAL)?, Ordering::Relaxed);
        }
        // What stands after the third number is not consumed.
        Ok(data.len() - rest.len())
    }
}

struct Chosen;

impl ProcFile for Chosen {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", congestion().name()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let line = data.split(|&byte| byte == b'\n' || byte == 0).next().unwrap_or_default();
        let chosen = Congestion::of(line).ok_or(Errno::ENOENT)?;
        CONGESTION.store(chosen as u8, Ordering::Relaxed);
        Ok(data.len())
    }
}
