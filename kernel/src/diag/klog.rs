//! The kernel log: `log`'s macros in, console and ring buffer out.
//!
//! Owns the ring that /dev/kmsg and syslog(2) read, and the console level. May be called in any
//! context but an NMI; it never allocates. Panics do not come this way. Locks: `Log`, which
//! disables interrupts and inside of which nothing is taken.
#![expect(clippy::disallowed_methods, reason = "into a line of fixed length")]
#![forbid(unsafe_code)]

use core::fmt::{self, Write};
use core::ops::Deref;

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::base::setting::Setting;
use crate::base::{console, cpu};
use crate::sync::{SpinLock, level};
use crate::time;

/// Bytes of text and headers that the ring keeps.
pub const RING_SIZE: usize = 128 * 1024;
/// The longest line; more is cut.
pub const MAX_LINE: usize = 480;
const HEADER: usize = 20;

/// One line of the log, as readers get it.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub sequence: u64,
    /// Nanoseconds since boot.
    pub time_ns: u64,
    /// Syslog level, 0 (emergency) to 7 (debug); with the facility in the bits above.
    pub level: u8,
    pub len: usize,
    pub text: [u8; MAX_LINE],
}

impl Line {
    /// The text without a newline.
    pub fn text(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// As a console shows it, unless its level keeps it from there.
    pub fn shown(&self) -> Option<ShownLine> {
        is_shown(self.level).then(|| shown(self.time_ns, self.text(), b"\r\n"))
    }
}

struct Ring {
    bytes: [u8; RING_SIZE],
    /// Positions only grow; they index `bytes` modulo its size.
    head: u64,
    tail: u64,
    first_sequence: u64,
    next_sequence: u64,
}

static RING: SpinLock<Ring, level::Log> = SpinLock::new(Ring {
    bytes: [0; RING_SIZE],
    head: 0,
    tail: 0,
    first_sequence: 0,
    next_sequence: 0,
});

crate::setting! {
    /// Lines of a level below this go to the console.
    static CONSOLE_LEVEL = 7, i32::MIN..=i32::MAX;
    /// The level of a line that a program writes to /dev/kmsg without one.
    static MESSAGE_LEVEL = 4, i32::MIN..=i32::MAX;
    /// What syslog(2) sets the console's level to when it switches the console off, and the least that it sets.
    static LEAST_CONSOLE_LEVEL = 1, i32::MIN..=i32::MAX;
    /// The console's level unless the command line gives another. As on Linux, nothing reads it once the machine is up.
    static DEFAULT_CONSOLE_LEVEL = 7, i32::MIN..=i32::MAX;
    /// Whether only who has CAP_SYSLOG may read the log (`kernel.dmesg_restrict`).
    pub static DMESG_RESTRICT = 1, 0..=1;
}

/// The four numbers of `kernel.printk`.
pub const LEVELS: [&dyn Setting; 4] =
    [&CONSOLE_LEVEL, &MESSAGE_LEVEL, &LEAST_CONSOLE_LEVEL, &DEFAULT_CONSOLE_LEVEL];

/// Linux's `CONSOLE_LOGLEVEL_DEFAULT`.
pub const BOOT_CONSOLE_LEVEL: i32 = 7;

type Sink = fn(&[u8]);
static CONSOLE: crate::sync::Once<Sink> = crate::sync::Once::new();
static NOTIFY: crate::sync::Once<fn()> = crate::sync::Once::new();

struct Logger;
static LOGGER: Logger = Logger;

/// Makes `log`'s macros work; the first thing boot does.
pub fn init() {
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(LevelFilter::Debug);
}

/// Applies `quiet`, `debug` and `loglevel=`.
pub fn configure() {
    let level = match crate::cmdline::number(crate::cmdline::words::LOGLEVEL) {
        Some(level) => level.clamp(1, 8) as i32,
        None if crate::cmdline::flag(crate::cmdline::words::QUIET) => 4,
        None if crate::cmdline::flag(crate::cmdline::words::DEBUG) => 8,
        None => DEFAULT_CONSOLE_LEVEL.get(),
    };
    set_console_level(level);
}

/// The console level: lines below it are printed (Linux's `console_loglevel`).
pub fn console_level() -> i32 {
    CONSOLE_LEVEL.get()
}

/// Sets the console level.
pub fn set_console_level(level: i32) {
    CONSOLE_LEVEL.set(level);
}

/// The least console level that syslog(2) sets (Linux's `minimum_console_loglevel`).
pub fn least_console_level() -> i32 {
    LEAST_CONSOLE_LEVEL.get()
}

/// The level, 0 to 7, of a line from user space that names none.
pub fn message_level() -> u8 {
    (MESSAGE_LEVEL.get() & 7) as u8
}

/// Sends console output to a driver instead of the polled port. `sink` must not block or log.
pub fn set_console(sink: Sink) {
    CONSOLE.call_once(|| sink);
}

/// Registers what wakes the readers of /dev/kmsg; called with interrupts in any state.
pub fn set_notify(notify: fn()) {
    NOTIFY.call_once(|| notify);
}

/// The sequence numbers that the ring holds: the oldest line and the one to come.
pub fn sequences() -> (u64, u64) {
    with_ring(|ring| (ring.first_sequence, ring.next_sequence))
}

/// The line with this number, or the oldest one behind it that is still there.
pub fn read(sequence: u64) -> Option<Line> {
    with_ring(|ring| ring.read(sequence))
}

/// Adds a line that came from user space (/dev/kmsg) or from a caller with its own level.
pub fn emit(level: u8, text: fmt::Arguments) {
    let mut line = LineBuffer { bytes: [0; MAX_LINE], len: 0 };
    let _ = line.write_fmt(text);
    let text = line.bytes[..line.len].trim_ascii_end();
    let now = time::since_boot_ns();
    with_ring(|ring| ring.push(level, now, text));
    if is_shown(level) {
        print(now, text);
    }
    if let Some(notify) = NOTIFY.get() {
        notify();
    }
}

fn is_shown(level: u8) -> bool {
    i32::from(level & 7) < console_level()
}

fn print(now: u64, text: &[u8]) {
    // In one piece, so that lines of several CPUs do not mix.
    let line = shown(now, text, b"\n");
    let sink = CONSOLE.get().copied().unwrap_or(console::write);
    cpu::without_interrupts(|| sink(&line));
}

/// A line with its time and its end.
pub type ShownLine = LineBuffer<{ MAX_LINE + 32 }>;

fn shown(now: u64, text: &[u8], end: &[u8]) -> ShownLine {
    let mut line = LineBuffer { bytes: [0; MAX_LINE + 32], len: 0 };
    let (seconds, micros) = (now / 1_000_000_000, now / 1000 % 1_000_000);
    let _ = write!(line, "[{seconds:5}.{micros:06}] ");
    line.push(text);
    line.push(end);
    line
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let level = match record.level() {
            Level::Error => 3,
            Level::Warn => 4,
            Level::Info => 6,
            Level::Debug | Level::Trace => 7,
        };
        emit(level, *record.args());
    }

    fn flush(&self) {}
}

fn with_ring<R>(f: impl FnOnce(&mut Ring) -> R) -> R {
    f(&mut RING.lock())
}

impl Ring {
    fn push(&mut self, level: u8, now: u64, text: &[u8]) {
        let need = (HEADER + text.len()) as u64;
        while self.head + need - self.tail > RING_SIZE as u64 {
            self.tail += (HEADER + self.len_at(self.tail)) as u64;
            self.first_sequence += 1;
        }
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.next_sequence.to_le_bytes());
        header[8..16].copy_from_slice(&now.to_le_bytes());
        header[16..18].copy_from_slice(&(text.len() as u16).to_le_bytes());
        header[18] = level;
        self.put(&header);
        self.put(text);
        self.next_sequence += 1;
    }

    fn put(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.bytes[(self.head % RING_SIZE as u64) as usize] = byte;
            self.head += 1;
        }
    }

    fn get(&self, at: u64, out: &mut [u8]) {
        for (offset, byte) in (at..).zip(out) {
            *byte = self.bytes[(offset % RING_SIZE as u64) as usize];
        }
    }

    fn len_at(&self, at: u64) -> usize {
        let mut len = [0; 2];
        self.get(at + 16, &mut len);
        usize::from(u16::from_le_bytes(len)).min(MAX_LINE)
    }

    fn read(&self, sequence: u64) -> Option<Line> {
        let mut at = self.tail;
        let mut number = self.first_sequence;
        while at < self.head {
            let len = self.len_at(at);
            if number >= sequence {
                let mut header = [0; HEADER];
                self.get(at, &mut header);
                let mut time = [0; 8];
                time.copy_from_slice(&header[8..16]);
                let mut line = Line {
                    sequence: number,
                    time_ns: u64::from_le_bytes(time),
                    level: header[18],
                    len,
                    text: [0; MAX_LINE],
                };
                self.get(at + HEADER as u64, &mut line.text[..len]);
                return Some(line);
            }
            at += (HEADER + len) as u64;
            number += 1;
        }
        None
    }
}

/// Text of at most `N` bytes.
pub struct LineBuffer<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> LineBuffer<N> {
    /// Adds what there is room for.
    fn push(&mut self, text: &[u8]) {
        let take = text.len().min(N - self.len);
        self.bytes[self.len..self.len + take].copy_from_slice(&text[..take]);
        self.len += take;
    }
}

impl<const N: usize> Deref for LineBuffer<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> Write for LineBuffer<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
