//! The serial port COM1: a 16550 with its FIFO, driven by interrupts both ways.
//!
//! Owns the port's registers and two rings. Sending: bytes go to the ring, and from there to the FIFO, a
//! whole FIFO at a time as often as the port takes it; what it does not take goes out by interrupt.
//! Receiving: the interrupt only moves bytes to a ring and wakes the terminal's thread. Without an interrupt
//! line that thread polls. A port that is not there reads as ones, which looks like a byte received, for ever:
//! after `init` nothing reads it. Locks: `Uart`, the last of all; never woken from under it.
#![forbid(unsafe_code)]

use crate::arch::irq::{self, Origin};
use crate::base::port::COM1;
use crate::drivers::console_device::{ConsoleDevice, LineError, Received};
use crate::drivers::ring::Ring;
use crate::sync::{SpinLock, WaitQueue, level};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

const LINE: u32 = 4;

/// Receive buffer and transmit holding register.
const DATA: u16 = 0;
const INTERRUPT_ENABLE: u16 = 1;
const INTERRUPT_ID: u16 = 2;
const FIFO_CONTROL: u16 = 2;
const LINE_CONTROL: u16 = 3;
const MODEM_STATUS: u16 = 6;
const SCRATCH: u16 = 7;

const ENABLE_RECEIVE: u8 = 1;
const ENABLE_TRANSMIT: u8 = 2;
const CONTROL_BREAK: u8 = 0x40;
const STATUS_DATA: u8 = 1;
const STATUS_ERRORS: u8 = 0x1e;
const STATUS_BREAK: u8 = 0x10;
const STATUS_FRAME: u8 = 0x08;
const STATUS_PARITY: u8 = 0x04;
const STATUS_ROOM: u8 = 0x20;
const STATUS_IDLE: u8 = 0x40;
/// FIFO on, both sides cleared, interrupt at eight bytes received (or when the line pauses).
const FIFO_ON: u8 = 0x87;

const FIFO_SIZE: usize = 16;
const TX_SIZE: usize = 4096;
const RX_SIZE: usize = 2048;
/// How many bytes go to the port in one stretch with interrupts off.
const BURST: usize = 128;
/// Writers are woken when at most this many bytes wait.
const WAKE_BELOW: usize = 256;
/// How often a full port is asked before it is taken for dead.
const PATIENCE: u32 = 1_000_000;

/// Who left the cursor in the middle of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineOwner {
    Nobody,
    Terminal,
    Log,
}

struct Port {
    tx: Ring<u8, TX_SIZE>,
    rx: Ring<Received, RX_SIZE>,
    /// What the interrupt enable register holds.
    enabled: u8,
    /// The receive ring is full: receive interrupts are off until it has room.
    throttled: bool,
    /// Flow control: nothing of the ring goes out.
    stopped: bool,
    line: LineOwner,
}

static PORT: SpinLock<Port, level::Uart> = SpinLock::new(Port {
    tx: Ring::new(0),
    rx: Ring::new(Received { byte: 0, error: None }),
    enabled: 0,
    throttled: false,
    stopped: false,
    line: LineOwner::Nobody,
});

/// Woken when bytes were received.
static FOR_INPUT: WaitQueue = WaitQueue::new();
/// Woken when the transmit ring has room again.
static FOR_ROOM: WaitQueue = WaitQueue::new();

/// Set once by `init`. Relaxed: nothing else depends on them.
static HAS_INTERRUPT: AtomicBool = AtomicBool::new(false);
static PRESENT: AtomicBool = AtomicBool::new(false);
/// The kernel log goes elsewhere.
static HIDES_LOG: AtomicBool = AtomicBool::new(false);
/// Errors of the line that were read, and belong to the next byte received. Relaxed: they say all that there is.
static ERRORS: AtomicU8 = AtomicU8::new(0);

/// Takes the port over from the boot console; the interrupt controllers are ready.
pub fn init() {
    let before = COM1.read8(SCRATCH);
    COM1.write8(SCRATCH, 0x5a);
    let answers = COM1.read8(SCRATCH) == 0x5a;
    COM1.write8(SCRATCH, before);
    if !answers {
        log::warn!("no serial port at 0x3f8");
        return;
    }
    PRESENT.store(true, Ordering::Relaxed);
    COM1.write8(FIFO_CONTROL, FIFO_ON);
    let mut port = PORT.lock();
    port.enable(ENABLE_RECEIVE);
    drop(port);
    match irq::register(LINE, interrupt) {
        Ok(()) => {
            HAS_INTERRUPT.store(true, Ordering::Relaxed);
            log::info!("ttyS0 at 0x3f8, interrupt line {LINE}");
        }
        Err(_) => log::warn!("ttyS0: no interrupt line {LINE}: polling"),
    }
}

/// Whether the machine has the port.
pub fn is_there() -> bool {
    PRESENT.load(Ordering::Relaxed)
}

/// From now on the kernel log is not shown here: the port is no console.
pub fn hide_log() {
    HIDES_LOG.store(true, Ordering::Relaxed);
}

impl Port {
    fn enable(&mut self, bits: u8) {
        if self.enabled != bits && PRESENT.load(Ordering::Relaxed) {
            self.enabled = bits;
            COM1.write8(INTERRUPT_ENABLE, bits);
        }
    }

    /// Sends up to a burst; true if there is more and the port would take it.
    fn send(&mut self) -> bool {
        let mut sent = 0;
        while !self.stopped && self.tx.len() > 0 && sent < BURST {
            if line_status() & STATUS_ROOM == 0 {
                self.enable(self.enabled | ENABLE_TRANSMIT);
                return false;
            }
            for _ in 0..FIFO_SIZE {
                let Some(byte) = self.tx.pop() else { break };
                COM1.write8(DATA, byte);
                sent += 1;
            }
        }
        let more = !self.stopped && self.tx.len() > 0;
        if !more {
            self.enable(self.enabled & !ENABLE_TRANSMIT);
        }
        more
    }

    fn receive(&mut self) -> bool {
        let mut any = false;
        // Bounded: a port that is not there reads as ones.
        for _ in 0..RX_SIZE {
            if self.rx.len() == RX_SIZE {
                self.throttled = true;
                self.enable(self.enabled & !ENABLE_RECEIVE);
                break;
            }
            if line_status() & STATUS_DATA == 0 {
                break;
            }
            let byte = COM1.read8(DATA);
            let error = match ERRORS.swap(0, Ordering::Relaxed) {
                bits if bits & STATUS_BREAK != 0 => Some(LineError::Break),
                bits if bits & STATUS_PARITY != 0 => Some(LineError::Parity),
                bits if bits & STATUS_FRAME != 0 => Some(LineError::Frame),
                _ => None,
            };
            any |= self.rx.push(Received { byte, error });
        }
        any
    }

    /// Sends everything by polling, however long the port takes.
    fn send_all(&mut self) {
        while self.tx.len() > 0 {
            if !wait_for(STATUS_ROOM) {
                self.tx.clear();
                return;
            }
            for _ in 0..FIFO_SIZE {
                let Some(byte) = self.tx.pop() else { break };
                COM1.write8(DATA, byte);
            }
        }
    }

    /// Queues a byte of the kernel log, making room by polling if need be.
    fn push_log(&mut self, byte: u8) {
        if !self.tx.push(byte) {
            self.send_all();
            self.tx.push(byte);
        }
    }
}

/// The line's state. Reading it clears its errors, a break among them, whoever asks: they are kept for who receives.
fn line_status() -> u8 {
    const LINE_STATUS: u16 = 5;
    let status = COM1.read8(LINE_STATUS);
    if status & STATUS_ERRORS != 0 {
        ERRORS.fetch_or(status & STATUS_ERRORS, Ordering::Relaxed);
    }
    status
}

fn wait_for(bits: u8) -> bool {
    (0..PATIENCE).any(|_| line_status() & bits != 0)
}

/// The port says as soon as it has room again, so a program that prints times that; when bytes come is decided outside.
fn interrupt() -> Origin {
    if poll() { Origin::Outside } else { Origin::Program }
}

/// Looks after the port: moves received bytes to the ring and the next ones to the FIFO. Whether any were received.
fn poll() -> bool {
    let mut received = false;
    let mut port = PORT.lock();
    // A few rounds: a cause that arises meanwhile would keep the line up, and an edge would be lost.
    for _ in 0..16 {
        received |= port.receive();
        port.send();
        let cause = COM1.read8(INTERRUPT_ID);
        if cause & 1 != 0 {
            break;
        }
        if cause & 0xe == 0 {
            COM1.read8(MODEM_STATUS);
        }
    }
    let room = port.tx.len() <= WAKE_BELOW;
    drop(port);
    if received {
        FOR_INPUT.wake_all();
    }
    if room {
        FOR_ROOM.wake_events((abi::fs::PollEvents::WRITABLE).bits());
    }
    received
}

/// Throws away what has been received and nobody has taken.
pub fn discard_input() {
    let mut some = [Received { byte: 0, error: None }; 64];
    while SerialPort.take(&mut some) > 0 {}
}

/// The port as the device under a terminal.
pub struct SerialPort;

impl ConsoleDevice for SerialPort {
    fn needs_polling(&self) -> bool {
        PRESENT.load(Ordering::Relaxed) && !HAS_INTERRUPT.load(Ordering::Relaxed)
    }

    fn poll(&self) {
        poll();
    }

    fn for_input(&self) -> &WaitQueue {
        &FOR_INPUT
    }

    fn for_room(&self) -> &WaitQueue {
        &FOR_ROOM
    }

    fn take(&self, out: &mut [Received]) -> usize {
        let mut port = PORT.lock();
        let mut n = 0;
        for slot in out {
            let Some(received) = port.rx.pop() else { break };
            *slot = received;
            n += 1;
        }
        if port.throttled && port.rx.len() <= RX_SIZE / 2 {
            port.throttled = false;
            let enabled = port.enabled | ENABLE_RECEIVE;
            port.enable(enabled);
        }
        n
    }

    fn has_input(&self) -> bool {
        PORT.lock().rx.len() > 0
    }

    fn flush_input(&self) {
        PORT.lock().rx.clear();
    }

    fn room(&self) -> usize {
        let port = PORT.lock();
        TX_SIZE - port.tx.len()
    }

    fn queue(&self, bytes: &[u8]) -> usize {
        let mut port = PORT.lock();
        let taken = bytes.iter().take_while(|&&byte| port.tx.push(byte)).count();
        if let Some(&last) = bytes[..taken].last() {
            port.line = if last == b'\n' { LineOwner::Nobody } else { LineOwner::Terminal };
        }
        taken
    }

    fn send(&self) {
        if !PRESENT.load(Ordering::Relaxed) {
            PORT.lock().tx.clear();
            return;
        }
        while PORT.lock().send() {}
    }

    fn queued(&self) -> usize {
        PORT.lock().tx.len()
    }

    fn discard_output(&self) {
        PORT.lock().tx.clear();
    }

    fn set_stopped(&self, stopped: bool) {
        PORT.lock().stopped = stopped;
    }

    fn set_break(&self, on: bool) {
        if !PRESENT.load(Ordering::Relaxed) {
            return;
        }
        let _port = PORT.lock();
        let control = COM1.read8(LINE_CONTROL) & !CONTROL_BREAK;
        COM1.write8(LINE_CONTROL, if on { control | CONTROL_BREAK } else { control });
    }

    fn is_idle(&self) -> bool {
        let idle = PORT.lock().tx.len() == 0;
        idle && (!PRESENT.load(Ordering::Relaxed) || line_status() & STATUS_IDLE != 0)
    }
}

/// Writes a piece of the kernel log: at once, by polling, on a line of its own. The log's lock orders the
/// pieces of a line.
pub fn write_log(text: &[u8]) {
    if !PRESENT.load(Ordering::Relaxed) || HIDES_LOG.load(Ordering::Relaxed) {
        return;
    }
    let mut port = PORT.lock();
    if port.line == LineOwner::Terminal {
        port.push_log(b'\r');
        port.push_log(b'\n');
    }
    for &byte in text {
        if byte == b'\n' {
            port.push_log(b'\r');
        }
        port.push_log(byte);
    }
    if let Some(&last) = text.last() {
        port.line = if last == b'\n' { LineOwner::Nobody } else { LineOwner::Log };
    }
    port.send_all();
}

/// Waits, by polling, until all output has left the port: before power-off and reboot.
pub fn drain() {
    if !PRESENT.load(Ordering::Relaxed) {
        return;
    }
    let mut port = PORT.lock();
    port.send_all();
    // A port that never becomes idle must not keep the machine on.
    let _ = wait_for(STATUS_IDLE);
}
