//! The terminals in /dev: console, tty, ttyS0, hvc0, ptmx and pts/N; and the threads that feed those of devices.
//!
//! Owns the terminals of devices, and which of them are consoles: those that `console=` names, of which the last one is
//! /dev/console. What a device receives is processed by a kernel thread, not by the interrupt: signals take locks that an
//! interrupt must not.
//!
//! Never processes input in the interrupt. Locks: those of the terminal.

use super::attention::Attention;
use super::end::End;
use super::file::TtyFile;
use super::tty::Tty;
use super::{devpts, job, master};
use crate::drivers::console_device::{ConsoleDevice, LineError, Received};
use crate::drivers::{hvc, uart};
use crate::fs::devfs::register_char;
use crate::fs::procfs::{self, Made};
use crate::fs::sysfs;
use crate::mm::fallible::{TryString, try_arc};
use crate::sync::Once;
use crate::vfs::chardev::{CharDriver, register_major};
use crate::vfs::{DevId, FileOps, registry};
use crate::{cmdline, time};
use crate::{try_write, try_writeln};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alea_tty::LineStatus;
use alea_tty::termios::{Termios, cflag};
use alloc::string::String;
use alloc::sync::Arc;

/// A terminal of a device, which may be a console.
struct Terminal {
    name: &'static str,
    major: u32,
    minor: u32,
    /// As /proc/consoles has them: printed whole when it was registered, safe before panics.
    flags: &'static str,
    tty: Once<Arc<Tty>>,
}

static SERIAL: Terminal =
    Terminal { name: "ttyS0", major: 4, minor: 64, flags: "p a", tty: Once::new() };
static HVC: Terminal =
    Terminal { name: "hvc0", major: 229, minor: 0, flags: "p  ", tty: Once::new() };
/// What /dev/console is.
static CONSOLE: Once<&'static Terminal> = Once::new();

/// How often the port is asked when it has no interrupt.
const POLL_INTERVAL: u64 = 10_000_000;

struct Console;
struct Device(&'static Terminal);
struct Current;
struct Multiplexer;
struct Slaves;

impl Terminal {
    fn tty(&self) -> Result<Arc<Tty>> {
        self.tty.get().cloned().ok_or(Errno::ENXIO)
    }

    /// Makes it, and its file.
    fn init(&'static self, settings: Termios, device: &'static dyn ConsoleDevice) -> Result<()> {
        let dev = DevId::new(self.major, self.minor);
        let tty = Tty::new(dev, settings, End::Device(device))?;
        self.tty.call_once(|| tty);
        register_char(self.major, self.minor, self.name, 0o660, try_arc(Device(self))?);
        Ok(())
    }

    /// Whether the log is shown there.
    fn is_console(&self) -> bool {
        self.is_asked_for() || CONSOLE.get().is_some_and(|console| console.name == self.name)
    }

    /// Whether a `console=` word names it.
    fn is_asked_for(&self) -> bool {
        consoles().any(|(name, _)| name == self.name)
    }
}

impl CharDriver for Console {
    fn open(&self, _minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        let terminal = CONSOLE.get().ok_or(Errno::ENXIO)?;
        Ok(TtyFile::open(terminal.tty()?, flags, true)?)
    }
}

impl CharDriver for Device {
    fn open(&self, _minor: u32, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(TtyFile::open(self.0.tty()?, flags, false)?)
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

/// Makes the terminals but that of a virtio console; the port's driver is running. Afterwards boot starts a thread with
/// [`run_input`].
pub fn init() -> Result<()> {
    SERIAL.init(serial_settings(), &uart::SerialPort)?;
    register_char(5, 0, "tty", 0o666, try_arc(Current)?);
    register_char(5, 1, "console", 0o600, try_arc(Console)?);
    register_char(5, 2, "ptmx", 0o666, try_arc(Multiplexer)?);
    register_major(devpts::PTS_MAJOR, try_arc(Slaves)?);
    registry::register("devpts", devpts::mount);
    Ok(())
}

/// Decides which terminals are consoles, now that all devices are known: hvc0 is there from here on, if it has a device.
pub fn choose_consoles() -> Result<()> {
    if let Some(device) = hvc::device() {
        HVC.init(hvc_settings(), device)?;
    }
    let there = || [&SERIAL, &HVC].into_iter().filter(|terminal| terminal.tty.get().is_some());
    log_missing();
    let last = consoles().filter_map(|(name, _)| there().find(|t| t.name == name)).last();
    // Without a word for it: the serial port, unless there is none.
    let usual = there().find(|t| t.name != SERIAL.name || uart::is_there()).unwrap_or(&SERIAL);
    let first = *CONSOLE.call_once(|| last.unwrap_or(usual));
    let is_first = |terminal: &&Terminal| terminal.name == first.name;
    let others = || there().filter(|terminal| terminal.is_asked_for() && !is_first(terminal));
    let (mut table, mut active) = (String::new(), String::new());
    for terminal in [first].into_iter().chain(others()) {
        let Terminal { name, major, minor, flags, .. } = terminal;
        let preferred = if is_first(&terminal) { 'C' } else { ' ' };
        try_writeln!(table, "{name:<20} -W- (E{preferred}  {flags}) {major:4}:{minor}")?;
    }
    for terminal in others().chain([first]) {
        let gap = if active.is_empty() { "" } else { " " };
        try_write!(active, "{gap}{}", terminal.name)?;
    }
    active.try_push_char('\n')?;
    procfs::register_file("consoles", 0o444, try_arc(Made(table))?)?;
    let active = try_arc(Made(active))?;
    sysfs::register_file("devices/virtual/tty/console/active", 0o444, active)?;
    if is_first(&&HVC) || HVC.is_asked_for() {
        hvc::show_log();
        if !is_first(&&SERIAL) && !SERIAL.is_asked_for() {
            log::info!("console hvc0: what follows is not shown at {}", SERIAL.name);
            uart::hide_log();
        }
    }
    Ok(())
}

/// What each `console=` word names, and the options behind the comma.
fn consoles() -> impl Iterator<Item = (&'static str, &'static str)> {
    cmdline::values(cmdline::words::CONSOLE).map(|text| text.split_once(',').unwrap_or((text, "")))
}

/// Says which consoles of the command line there are not: who waits at one would see nothing and not know why.
fn log_missing() {
    let there = |name| [&SERIAL, &HVC].iter().any(|t| t.name == name && t.tty.get().is_some());
    for (name, _) in consoles().filter(|&(name, _)| !there(name)) {
        log::warn!("console={name}: there is no such console");
    }
}

/// Linux's usual settings of a terminal, which those of hvc0 stay.
fn hvc_settings() -> Termios {
    let cflag = cflag::B38400 | cflag::CS8 | cflag::CREAD | cflag::HUPCL;
    Termios { cflag, ispeed: 38_400, ospeed: 38_400, ..Termios::STANDARD }
}

/// The port's settings at boot: the speed of `console=ttyS0,SPEED...`, else 9600. As on Linux, of several words for one console
/// the first one's options count.
fn serial_settings() -> Termios {
    let option = consoles().find(|(name, _)| *name == SERIAL.name).map_or("", |(_, option)| option);
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
    process(&SERIAL);
}

/// The same for hvc0, if there is one.
pub fn run_hvc_input() {
    process(&HVC);
}

fn process(terminal: &Terminal) {
    let Some(tty) = terminal.tty.get() else {
        unreachable!("the terminals are made before their threads")
    };
    let Some(device) = tty.device else { unreachable!("it is the terminal of a device") };
    let mut attention = Attention::default();
    loop {
        wait_for_bytes(device);
        let mut batch = [Received::default(); 64];
        let mut n = device.take(&mut batch);
        if terminal.is_console() {
            n = attention.filter(&mut batch[..n]);
        }
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
