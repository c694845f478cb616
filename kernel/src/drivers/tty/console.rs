//! The terminals in /dev: console, tty, ttyS0, ptmx and pts/N; and the thread that feeds the serial one.
//!
//! Owns the serial terminal. What the port receives is processed by a kernel thread, not by the interrupt:
//! signals take locks that an interrupt must not.
//!
//! Never processes input in the interrupt. Locks: those of the terminal.

use super::end::End;
use super::file::TtyFile;
use super::tty::Tty;
use super::{devpts, job, master};
use crate::drivers::console_device::{ConsoleDevice, LineError, Received};
use crate::drivers::uart;
use crate::fs::devfs::register_char;
use crate::fs::procfs::{self, ProcFile};
use crate::fs::sysfs;
use crate::mm::fallible::{TrySlice, try_arc};
use crate::sync::Once;
use crate::vfs::chardev::{CharDriver, register_major};
use crate::vfs::{DevId, FileOps, registry};
use crate::{cmdline, time};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alea_tty::LineStatus;
use alea_tty::termios::{Termios, cflag};
use alloc::sync::Arc;
use alloc::vec::Vec;

const SERIAL_NAME: &str = "ttyS0";
const SERIAL_MAJOR: u32 = 4;
const SERIAL_MINOR: u32 = 64;
/// How often the port is asked when it has no interrupt.
const POLL_INTERVAL: u64 = 10_000_000;

static SERIAL: Once<Arc<Tty>> = Once::new();

/// As Linux lists them: name, operations, flags (enabled, preferred, safe before panics), device.
const CONSOLES: &str = "ttyS0                -W- (EC a)    4:64\n";

/// A file of fixed text.
struct Text(&'static str);

impl ProcFile for Text {
    fn read(&self) -> Result<Vec<u8>> {
        self.0.as_bytes().try_owned()
    }
}

struct Console;
struct Serial;
struct Current;
struct Multiplexer;
struct Slaves;

fn serial() -> Result<Arc<Tty>> {
    SERIAL.get().cloned().ok_or(Errno::ENXIO)
}

impl CharDriver for Console {
    fn open(&self, _minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(TtyFile::open(serial()?, flags, true)?)
    }
}

impl CharDriver for Serial {
    fn open(&self, _minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(TtyFile::open(serial()?, flags, false)?)
    }
}

impl CharDriver for Current {
    fn open(&self, _minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        let tty = job::control().and_then(|control| control.terminal()).ok_or(Errno::ENXIO)?;
        Ok(TtyFile::open(tty, flags | OpenFlags::NOCTTY, false)?)
    }
}

impl CharDriver for Multiplexer {
    fn open(&self, _minor: u32, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        master::open_master()
    }
}

impl CharDriver for Slaves {
    fn open(&self, minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        let tty = devpts::find(minor).ok_or(Errno::EIO)?;
        Ok(TtyFile::open(tty, flags, false)?)
    }
}

/// Makes the terminals; the port's driver is running. Afterwards boot starts a thread with [`run_input`].
pub fn init() -> Result<()> {
    let tty = Tty::new(
        DevId::new(SERIAL_MAJOR, SERIAL_MINOR),
        serial_settings(),
        End::Device(&uart::SerialPort),
    )?;
    SERIAL.call_once(|| tty);
    log_missing();
    register_char(SERIAL_MAJOR, SERIAL_MINOR, SERIAL_NAME, 0o660, try_arc(Serial)?);
    register_char(5, 0, "tty", 0o666, try_arc(Current)?);
    register_char(5, 1, "console", 0o600, try_arc(Console)?);
    register_char(5, 2, "ptmx", 0o666, try_arc(Multiplexer)?);
    register_major(devpts::PTS_MAJOR, try_arc(Slaves)?);
    registry::register("devpts", devpts::mount);
    let active = try_arc(Text("ttyS0\n"))?;
    sysfs::register_file("devices/virtual/tty/console/active", 0o444, active)?;
    procfs::register_file("consoles", 0o444, try_arc(Text(CONSOLES))?)?;
    Ok(())
}

/// What each `console=` word names, and the options behind the comma.
fn consoles() -> impl Iterator<Item = (&'static str, &'static str)> {
    cmdline::values(cmdline::words::CONSOLE).map(|text| text.split_once(',').unwrap_or((text, "")))
}

/// Says which consoles of the command line there are not: who waits at one would see nothing and not know why.
fn log_missing() {
    for (name, _) in consoles().filter(|(name, _)| *name != SERIAL_NAME) {
        log::warn!("console={name}: there is no such console; {SERIAL_NAME} is the console");
    }
}

/// The port's settings at boot: the speed of `console=ttyS0,SPEED...`, else 9600. As on Linux, of several words for one console
/// the first one's options count.
fn serial_settings() -> Termios {
    let option = consoles().find(|(name, _)| *name == SERIAL_NAME).map_or("", |(_, option)| option);
    let digits = option.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let (code, speed) = match digits {
        "115200" => (cflag::B115200, 115_200),
        "38400" => (cflag::B38400, 38_400),
        _ => (cflag::B9600, 9_600),
    };
    let cflag = code | cflag::CS8 | cflag::CREAD | cflag::HUPCL | cflag::CLOCAL;
    Termios { cflag, ispeed: speed, ospeed: speed, ..Termios::STANDARD }
}

/// The body of the thread that processes what the serial port receives; never returns.
pub fn run_input() {
    let Some(tty) = SERIAL.get() else {
        unreachable!("the terminals are made before their thread")
    };
    let Some(device) = tty.device else { unreachable!("the serial terminal has a device") };
    loop {
        wait_for_bytes(device);
        let mut batch = [Received::default(); 64];
        let n = device.take(&mut batch);
        feed(tty, &batch[..n]);
    }
}

fn wait_for_bytes(device: &dyn ConsoleDevice) {
    if !device.needs_polling() {
        device.for_input().wait(|| device.has_input().then_some(()));
        return;
    }
    while !device.has_input() {
        device.poll();
        let again = time::since_boot_ns().saturating_add(POLL_INTERVAL);
        // Time-outs are the point; a kernel thread has no signals.
        let _ = device.for_input().wait_deadline(Some(again), || device.has_input().then_some(()));
    }
}

/// Gives a batch to the discipline, waiting for readers when it is full.
fn feed(tty: &Tty, batch: &[Received]) {
    let mut rest = batch;
    while let Some(first) = rest.first() {
        let mut bytes = [0; 64];
        let ordinary = rest.iter().take_while(|r| r.error.is_none()).count().min(bytes.len());
        for (slot, received) in bytes.iter_mut().zip(rest) {
            *slot = received.byte;
        }
        let taken = match first.error {
            None => tty.receive(&bytes[..ordinary]),
            Some(error) => {
                let status = match error {
                    LineError::Break => LineStatus::Break,
                    LineError::Parity => LineStatus::Parity,
                    LineError::Frame => LineStatus::Frame,
                };
                let byte = first.byte;
                tty.with(|discipline, screen| {
                    usize::from(discipline.receive_flagged(byte, status, screen))
                })
            }
        };
        rest = &rest[taken..];
        if taken == 0 {
            tty.for_typing.wait(|| tty.wants_input().then_some(()));
        }
    }
}
