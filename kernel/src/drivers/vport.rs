//! /dev/vport0pN: byte channels to the host and back, the ports of a virtio console device.
//!
//! Owns the device and a buffer for each direction of each port. Made for moving hundreds of megabytes (`cargo xtask random-stats`,
//! and all that a command started by `cargo xtask run` reads and writes), which the serial line would take hours for. A device
//! says at start which of its first eight ports there are (`-device virtio-serial -device virtserialport,chardev=...`: port 1), and a
//! port that appears later has no file. As on Linux a port is open once at a time (EBUSY), while nobody listens at the host's end a
//! write waits and a read gives end-of-file, and one that is meant for a console (`-device virtconsole,chardev=...`) is no such
//! file: the first of them is hvc0.
//!
//! The device is asked and never calls: who waits for it looks again and again, more seldom the longer nothing comes.
//!
//! Locks: `Mutex`es. `readers` and `writers` are held by the one who transfers, also while he waits; inside either `device`, for one
//! look. A device that keeps a buffer makes its users wait, interruptibly; it never gets other memory.
#![forbid(unsafe_code)]

use crate::base::boot_info::BootInfo;
use crate::base::cpu;
use crate::drivers::hvc;
use crate::fs::devfs;
use crate::mm::fallible::{TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::wait::WaitError;
use crate::sync::{Mutex, Once, WaitQueue};
use crate::time::{self, Nanos};
use crate::vfs::chardev::CharDriver;
use crate::vfs::{FileOps, OpenFile, Position};
use crate::virtio::{self, Broken, DeviceType, MOST_PORTS, PortState, Ports, Progress};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Linux gives the ports of its own driver a dynamic major; this is the first of that range.
const MAJOR: u32 = 234;
const NAMES: [&str; MOST_PORTS] = [
    "vport0p0", "vport0p1", "vport0p2", "vport0p3", "vport0p4", "vport0p5", "vport0p6", "vport0p7",
];
/// 64 KiB in each direction.
const PAGES: usize = 16;
/// How often a device is looked at, at least, that has been asked which ports there are, and how long: a host that has much else
/// to do gets to the question late.
const ANNOUNCEMENTS: u32 = 100_000;
const ANSWERS: Nanos = Nanos::from_secs(10);
/// How often a pending transfer is looked at without a pause.
const LOOKS: u32 = 1000;
/// The first pause after that, and the longest, in nanoseconds: each is an eighth longer than the one before. A program that
/// waits for the host thus costs it as much as an idle Linux does, and what comes after a quarter of a second's silence is seen
/// 16 ms later on average.
const FIRST_PAUSE: u64 = 200_000;
const LONGEST_PAUSE: u64 = 32_000_000;

static DEVICE: Once<Mutex<Ports>> = Once::new();

/// Registers the ports of the device, if the machine has one. After devtmpfs exists.
pub fn init(info: &BootInfo) -> Result<()> {
    let Some(device) = virtio::find(DeviceType::Console, info) else { return Ok(()) };
    let opened = device.open_ports(PAGES).and_then(|mut ports| {
        meet(&mut ports)?;
        Ok(ports)
    });
    let Ok(ports) = opened else {
        log::warn!("virtio: a console that cannot be set up is not used");
        return Ok(());
    };
    if ports.beyond() > 0 {
        log::warn!(
            "virtio: {} ports of the console are not used: only the first {MOST_PORTS} are",
            ports.beyond()
        );
    }
    register(ports)
}

/// Hears which ports there are. A host that speaks answers before the call that asked it ends, or soon.
fn meet(ports: &mut Ports) -> Result<(), Broken> {
    let end = time::monotonic() + ANSWERS;
    let mut looks = 0;
    while looks < ANNOUNCEMENTS || time::monotonic() < end {
        // What the last answer brought is heard too.
        if ports.look()? && ports.look()? {
            break;
        }
        looks = looks.saturating_add(1);
        cpu::relax();
    }
    Ok(())
}

fn register(ports: Ports) -> Result<()> {
    let states: [PortState; MOST_PORTS] = core::array::from_fn(|number| ports.state(number));
    let capacity = ports.capacity();
    let device = DEVICE.call_once(|| Mutex::new(ports));
    let there = states.map(|state| state.exists && !state.console);
    let mut consoles = states.iter().enumerate().filter(|(_, state)| state.exists && state.console);
    if let Some((number, _)) = consoles.next() {
        hvc::init(device, number)?;
    }
    for (number, _) in consoles {
        log::warn!("virtio: port {number} of the console is not used: another is hvc0");
    }
    for (number, (name, there)) in NAMES.into_iter().zip(there).enumerate() {
        if !there {
            continue;
        }
        let inbox = Inbox { bytes: buffer(capacity)?, ready: (0, 0) };
        let port = try_arc(Port {
            number,
            opened: Mutex::new(false),
            writers: Mutex::new(buffer(capacity)?),
            readers: Mutex::new(inbox),
            device,
        })?;
        devfs::register_char(MAJOR, number as u32, name, 0o600, try_arc(Driver(port))?);
        log::info!("virtio: /dev/{name} leads to the host");
    }
    if !states.iter().any(|state| state.exists) {
        log::info!("virtio: a console without ports");
    }
    Ok(())
}

fn buffer(capacity: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(capacity).map_err(|_| Errno::ENOMEM)?;
    buffer.try_resize(capacity, 0)?;
    Ok(buffer)
}

struct Driver(Arc<Port>);

impl CharDriver for Driver {
    fn open(&self, _minor: u32, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        let port = &self.0;
        let channel = try_arc(Channel(port.clone()))?;
        let mut opened = port.opened.lock();
        if *opened {
            return Err(Errno::EBUSY);
        }
        port.device.lock().set_open(port.number, true).map_err(|_| Errno::EIO)?;
        *opened = true;
        drop(opened);
        Ok(channel)
    }
}

/// A port that a program has opened.
struct Channel(Arc<Port>);

struct Port {
    number: usize,
    /// Whether a program has it open.
    opened: Mutex<bool>,
    device: &'static Mutex<Ports>,
    /// What is on its way from user memory to the device.
    writers: Mutex<Vec<u8>>,
    readers: Mutex<Inbox>,
}

/// What came from the device.
struct Inbox {
    bytes: Vec<u8>,
    /// What of `bytes` nobody has read yet.
    ready: (usize, usize),
}

/// What a look at a port gave.
enum Look {
    Nothing,
    /// The device has the buffer.
    Pending,
    /// So many bytes came, or went.
    Done(usize),
    /// Nobody is at the host's end.
    Alone,
}

impl From<Progress> for Look {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Idle => Self::Nothing,
            Progress::Pending => Self::Pending,
            Progress::Done { offered, claimed } => {
                Self::Done(offered.min(usize::try_from(claimed).unwrap_or(offered)))
            }
        }
    }
}

impl Port {
    /// Hears what the host says, then looks at the port: ENODEV if it is gone, EIO if the device is broken.
    fn look(
        &self,
        look: impl FnOnce(&mut Ports, usize) -> Result<Progress, Broken>,
    ) -> Result<(Look, bool)> {
        // The lock is not held over a pause.
        let mut device = self.device.lock();
        device.look().map_err(|_| Errno::EIO)?;
        let state = device.state(self.number);
        if !state.exists {
            return Err(Errno::ENODEV);
        }
        let progress = look(&mut device, self.number).map_err(|_| Errno::EIO)?;
        Ok((progress.into(), state.connected))
    }

    /// Calls `look` until what it gives is not `Pending`; EAGAIN if it may not wait.
    fn wait(&self, nonblock: bool, mut look: impl FnMut() -> Result<Look>) -> Result<Look> {
        // Nobody wakes it: it is a way to sleep for a moment.
        let nobody = WaitQueue::new();
        let mut pause = FIRST_PAUSE;
        for nth in 0u32.. {
            match look()? {
                Look::Pending if nonblock => return Err(Errno::EAGAIN),
                Look::Pending if nth < LOOKS => core::hint::spin_loop(),
                Look::Pending => {
                    let until = time::since_boot_ns().saturating_add(pause);
                    pause = (pause + pause / 8).min(LONGEST_PAUSE);
                    match nobody.wait_deadline(Some(until), || None::<()>) {
                        Err(WaitError::Interrupted) => return Err(Errno::EINTR),
                        Ok(()) | Err(WaitError::TimedOut) => {}
                    }
                }
                done => return Ok(done),
            }
        }
        Err(Errno::EIO)
    }

    /// Gives the device one buffer full, once it has taken the one before and somebody listens.
    fn send(&self, nonblock: bool, buffer: &mut [u8], src: &mut Source<'_>) -> Result<usize> {
        self.wait(nonblock, || {
            let (look, connected) = self.look(Ports::poll_outgoing)?;
            Ok(if connected { look } else { Look::Pending })
        })?;
        let taken = src.take(buffer)?;
        match buffer.get(..taken) {
            Some(bytes) if taken > 0 => {
                self.device.lock().send(self.number, bytes).map_err(|_| Errno::EIO)
            }
            _ => Ok(0),
        }
    }

    /// Waits until the inbox holds something, or nobody is there to send anything. A device that claims to have written nothing is
    /// asked again.
    fn receive(&self, nonblock: bool, inbox: &mut Inbox) -> Result<()> {
        while inbox.ready.0 == inbox.ready.1 {
            let look = self.wait(nonblock, || match self.look(Ports::poll_incoming)? {
                (Look::Pending, false) => Ok(Look::Alone),
                (look, _) => Ok(look),
            })?;
            let got = match look {
                Look::Alone => return Ok(()),
                Look::Done(got) => got,
                Look::Nothing | Look::Pending => 0,
            };
            let mut device = self.device.lock();
            if let Some(bytes) = inbox.bytes.get_mut(..got) {
                device.take(self.number, bytes).map_err(|_| Errno::EIO)?;
                inbox.ready = (0, got);
            }
            device.request(self.number).map_err(|_| Errno::EIO)?;
        }
        Ok(())
    }
}

impl FileOps for Channel {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() == 0 {
            return Ok(0);
        }
        let mut inbox = self.0.readers.lock_interruptible()?;
        self.0.receive(f.nonblock(), &mut inbox)?;
        let (from, to) = inbox.ready;
        let put = dst.put(inbox.bytes.get(from..to).unwrap_or_default())?;
        inbox.ready.0 += put;
        Ok(put)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        let mut buffer = self.0.writers.lock_interruptible()?;
        let mut done = 0;
        while src.remaining() > 0 {
            match self.0.send(f.nonblock(), &mut buffer, src) {
                Ok(0) => break,
                Ok(sent) => done += sent,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn fsync(&self, _f: &OpenFile, _data_only: bool) -> Result<()> {
        let _buffer = self.0.writers.lock_interruptible()?;
        self.0.wait(false, || Ok(self.0.look(Ports::poll_outgoing)?.0)).map(drop)
    }

    /// The host hears that the port is free. A device that is broken by then needs to hear nothing.
    fn release(&self, _f: &OpenFile) {
        let mut opened = self.0.opened.lock();
        let _ = self.0.device.lock().set_open(self.0.number, false);
        *opened = false;
    }

    fn position(&self) -> Position {
        Position::None
    }
}
