//! /dev/hvc0's device: the port of a virtio console that the host means for a console.
//!
//! Owns a ring for each direction, and what of the kernel log the port has not been given. A thread moves bytes between the
//! rings and the device, which is asked and never calls: it looks at once when something is written, and otherwise
//! more seldom the longer nothing comes. It reads the log like any other reader, so that who logs never waits for the host, and
//! a console gets the lines of the boot before it was there. Never wakes a reader or a writer under a terminal's lock.
//!
//! Locks: `LINE`, a sleeping one, held by who moves bytes, and inside it the device's; `Uart` for the rings.
#![forbid(unsafe_code)]

use crate::diag::klog;
use crate::drivers::console_device::{ConsoleDevice, Received};
use crate::drivers::ring::Ring;
use crate::mm::fallible::TryVec;
use crate::sync::{Mutex, Once, SpinLock, WaitQueue, level};
use crate::time;
use crate::virtio::{Broken, Ports, Progress};
use abi::fs::PollEvents;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, Ordering};

const TX_SIZE: usize = 4096;
const RX_SIZE: usize = 2048;
/// Bytes that are given to the device at a time.
const CHUNK: usize = 4096;
/// Writers are woken when at most this many bytes wait.
const WAKE_BELOW: usize = 256;
/// The first pause between two looks, and the longest, in nanoseconds: each is an eighth longer than the one before.
const FIRST_PAUSE: u64 = 200_000;
const LONGEST_PAUSE: u64 = 32_000_000;
/// How long a machine that ends waits for the host, in nanoseconds.
const LAST_WAIT: u64 = 1_000_000_000;
/// How often a panic looks whether the host has taken a piece of its text.
const LAST_LOOKS: u32 = 1_000_000;

struct Rings {
    tx: Ring<u8, TX_SIZE>,
    rx: Ring<Received, RX_SIZE>,
    /// Flow control: nothing of the ring goes out.
    stopped: bool,
    /// The terminal left the cursor in the middle of a line.
    in_line: bool,
}

static RINGS: SpinLock<Rings, level::Uart> = SpinLock::new(Rings {
    tx: Ring::new(0),
    rx: Ring::new(Received { byte: 0, error: None }),
    stopped: false,
    in_line: false,
});

static FOR_INPUT: WaitQueue = WaitQueue::new();
static FOR_ROOM: WaitQueue = WaitQueue::new();
/// What the thread waits for.
static FOR_WORK: WaitQueue = WaitQueue::new();
/// Something was written since the thread last looked. Relaxed, all: the rings have a lock.
static WRITTEN: AtomicBool = AtomicBool::new(false);
/// The device has bytes of this port that the host has not taken.
static SENDING: AtomicBool = AtomicBool::new(false);
/// The kernel log goes here.
static LOGS: AtomicBool = AtomicBool::new(false);

static LINE: Once<Mutex<Line>> = Once::new();

/// The device's side.
struct Line {
    device: &'static Mutex<Ports>,
    number: usize,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// What of `incoming` the ring had no room for.
    rest: (usize, usize),
    /// The next line of the log.
    next_line: u64,
}

/// Makes port `number` of the device the one of hvc0.
pub fn init(device: &'static Mutex<Ports>, number: usize) -> Result<()> {
    let capacity = device.lock().capacity();
    let line = Line {
        device,
        number,
        outgoing: buffer(CHUNK.min(capacity))?,
        incoming: buffer(capacity)?,
        rest: (0, 0),
        next_line: 0,
    };
    LINE.call_once(|| Mutex::new(line));
    log::info!("virtio: port {number} is the console hvc0");
    Ok(())
}

fn buffer(len: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
    buffer.try_resize(len, 0)?;
    Ok(buffer)
}

/// The device, if there is one.
pub fn device() -> Option<&'static dyn ConsoleDevice> {
    LINE.get().map(|_| &VirtioConsole as &dyn ConsoleDevice)
}

/// From now on the kernel log goes here, from its first line on.
pub fn show_log() {
    LOGS.store(true, Ordering::Relaxed);
    FOR_WORK.wake_all();
}

/// The body of the thread that moves bytes; boot starts it if there is a device. Never returns.
pub fn run() {
    let Some(line) = LINE.get() else { unreachable!("the port is found before its thread") };
    let mut pause = FIRST_PAUSE;
    loop {
        let moved = line.lock().turn();
        pause = match moved {
            Ok(true) => FIRST_PAUSE,
            Ok(false) => (pause + pause / 8).min(LONGEST_PAUSE),
            Err(Broken) => break,
        };
        let until = time::since_boot_ns().saturating_add(pause);
        // Time-outs are the point; a kernel thread has no signals.
        let _ = FOR_WORK
            .wait_deadline(Some(until), || WRITTEN.swap(false, Ordering::Relaxed).then_some(()));
    }
    log::warn!("virtio: hvc0 is not used any more: its device broke the protocol");
    loop {
        // Nothing written waits for a device that takes nothing.
        FOR_WORK.wait(|| WRITTEN.swap(false, Ordering::Relaxed).then_some(()));
        RINGS.lock().tx.clear();
        FOR_ROOM.wake_events(PollEvents::WRITABLE.bits());
    }
}

/// Waits until the host has taken all output: before power-off and reboot.
pub fn drain() {
    let Some(line) = LINE.get() else { return };
    let mut line = line.lock();
    let from = time::since_boot_ns();
    while time::since_boot_ns().saturating_sub(from) < LAST_WAIT {
        let idle = |moved: bool| !moved && !SENDING.load(Ordering::Relaxed);
        // A broken device takes nothing more.
        if line.turn().map_or(true, idle) {
            break;
        }
    }
}

/// Has a panic written to the host, too, unless the device is in use just now. The lock is never given back.
pub fn write_last(write: &dyn Fn(&mut dyn Write) -> fmt::Result) {
    let Some(line) = LINE.get().filter(|_| LOGS.load(Ordering::Relaxed)) else { return };
    let Some(line) = line.try_lock().map(ManuallyDrop::new) else { return };
    let Some(device) = line.device.try_lock().map(ManuallyDrop::new) else { return };
    // Who reads it is the only one to miss the end of it.
    let _ = write(&mut LastWords { device, number: line.number });
}

/// Writes to the host at once.
struct LastWords {
    device: ManuallyDrop<crate::sync::MutexGuard<'static, Ports>>,
    number: usize,
}

impl LastWords {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let taken = (0..LAST_LOOKS)
            .any(|_| self.device.poll_outgoing(self.number) != Ok(Progress::Pending));
        if taken { self.device.send(self.number, bytes).map(drop) } else { Err(Broken) }
    }
}

impl Write for LastWords {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for line in text.split_inclusive('\n') {
            let (line, end) = match line.strip_suffix('\n') {
                Some(line) => (line, "\r\n"),
                None => (line, ""),
            };
            for part in [line, end].into_iter().filter(|part| !part.is_empty()) {
                self.send(part.as_bytes()).map_err(|Broken| fmt::Error)?;
            }
        }
        Ok(())
    }
}

impl Line {
    /// Moves what can be moved; whether anything was.
    fn turn(&mut self) -> Result<bool, Broken> {
        let mut device = self.device.lock();
        device.look()?;
        let sent = self.send(&mut device)?;
        let received = self.receive(&mut device)?;
        drop(device);
        if received {
            FOR_INPUT.wake_all();
        }
        if RINGS.lock().tx.len() <= WAKE_BELOW {
            FOR_ROOM.wake_events(PollEvents::WRITABLE.bits());
        }
        Ok(sent || received)
    }

    fn send(&mut self, device: &mut Ports) -> Result<bool, Broken> {
        if device.poll_outgoing(self.number)? == Progress::Pending {
            return Ok(false);
        }
        SENDING.store(false, Ordering::Relaxed);
        let len = match self.take_written() {
            0 => self.take_log(),
            len => len,
        };
        let bytes = self.outgoing.get(..len).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(false);
        }
        SENDING.store(true, Ordering::Relaxed);
        device.send(self.number, bytes)?;
        Ok(true)
    }

    /// Takes what the terminal has written: how many bytes.
    fn take_written(&mut self) -> usize {
        let mut rings = RINGS.lock();
        if rings.stopped {
            return 0;
        }
        let mut len = 0;
        for slot in &mut self.outgoing {
            let Some(byte) = rings.tx.pop() else { break };
            *slot = byte;
            len += 1;
            rings.in_line = byte != b'\n';
        }
        len
    }

    /// Takes lines of the log, each on a line of its own: how many bytes.
    fn take_log(&mut self) -> usize {
        let mut len = 0;
        if !LOGS.load(Ordering::Relaxed) {
            return len;
        }
        let mut put = |bytes: &[u8]| {
            let end = len + bytes.len();
            let room = self.outgoing.get_mut(len..end);
            room.map(|room| room.copy_from_slice(bytes)).inspect(|()| len = end).is_some()
        };
        // Finding a line takes a walk through the log.
        while self.next_line < klog::sequences().1 {
            let Some(line) = klog::read(self.next_line) else { break };
            if let Some(text) = line.shown() {
                if core::mem::replace(&mut RINGS.lock().in_line, false) {
                    put(b"\r\n");
                }
                if !put(&text) {
                    break;
                }
            }
            self.next_line = line.sequence + 1;
        }
        len
    }

    fn receive(&mut self, device: &mut Ports) -> Result<bool, Broken> {
        if self.rest.0 == self.rest.1 {
            match device.poll_incoming(self.number)? {
                Progress::Pending => return Ok(false),
                Progress::Idle => {}
                Progress::Done { offered, claimed } => {
                    let got = offered.min(claimed as usize);
                    let bytes = self.incoming.get_mut(..got).ok_or(Broken)?;
                    device.take(self.number, bytes)?;
                    self.rest = (0, got);
                }
            }
        }
        let mut rings = RINGS.lock();
        let mut any = false;
        while let Some(&byte) = self.incoming.get(self.rest.0..self.rest.1).and_then(<[u8]>::first)
        {
            if !rings.rx.push(Received { byte, error: None }) {
                return Ok(any);
            }
            self.rest.0 += 1;
            any = true;
        }
        drop(rings);
        device.request(self.number)?;
        Ok(any)
    }
}

/// The port as the device under a terminal.
struct VirtioConsole;

impl ConsoleDevice for VirtioConsole {
    fn needs_polling(&self) -> bool {
        // Its own thread does.
        false
    }

    fn poll(&self) {}

    fn for_input(&self) -> &WaitQueue {
        &FOR_INPUT
    }

    fn has_input(&self) -> bool {
        RINGS.lock().rx.len() > 0
    }

    fn take(&self, out: &mut [Received]) -> usize {
        let mut rings = RINGS.lock();
        let mut n = 0;
        for slot in out {
            let Some(received) = rings.rx.pop() else { break };
            *slot = received;
            n += 1;
        }
        n
    }

    fn flush_input(&self) {
        RINGS.lock().rx.clear();
    }

    fn for_room(&self) -> &WaitQueue {
        &FOR_ROOM
    }

    fn room(&self) -> usize {
        TX_SIZE - RINGS.lock().tx.len()
    }

    fn queue(&self, bytes: &[u8]) -> usize {
        let mut rings = RINGS.lock();
        bytes.iter().take_while(|&&byte| rings.tx.push(byte)).count()
    }

    fn send(&self) {
        if self.queued() > 0 && !WRITTEN.swap(true, Ordering::Relaxed) {
            FOR_WORK.wake_all();
        }
    }

    fn queued(&self) -> usize {
        RINGS.lock().tx.len()
    }

    fn is_idle(&self) -> bool {
        self.queued() == 0 && !SENDING.load(Ordering::Relaxed)
    }

    fn discard_output(&self) {
        RINGS.lock().tx.clear();
    }

    fn set_stopped(&self, stopped: bool) {
        // Who lets it go on sends, too.
        RINGS.lock().stopped = stopped;
    }

    fn set_break(&self, _on: bool) {}
}
