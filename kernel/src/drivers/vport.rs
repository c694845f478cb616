//! /dev/vport0p0: a byte channel to the host and back, over a virtio console device.
//!
//! Owns the device and a buffer for each direction. Made for moving hundreds of megabytes (`cargo xtask random-stats`, and all that
//! a command started by `cargo xtask run` reads and writes), which the serial line would take hours for. Only a device without the
//! multi-port feature is used (`-device virtio-serial-pci,max_ports=1 -device virtconsole,chardev=...`).
//!
//! The device is asked and never calls: who waits for it looks again and again, more seldom the longer nothing comes.
//!
//! Locks: `Mutex`es. `readers` and `writers` are held by the one who transfers, also while he waits; inside either `device`, for one
//! look. A device that keeps a buffer makes its users wait, interruptibly; it never gets other memory.
#![forbid(unsafe_code)]

use crate::base::boot_info::BootInfo;
use crate::fs::devfs;
use crate::mm::fallible::{TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::wait::WaitError;
use crate::sync::{Mutex, WaitQueue};
use crate::time;
use crate::vfs::chardev::CharDriver;
use crate::vfs::{FileOps, OpenFile};
use crate::virtio::{self, Broken, DeviceType, Duplex, Progress};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// Linux gives the ports of its own driver a dynamic major; this is the first of that range.
const MAJOR: u32 = 234;
const NAME: &str = "vport0p0";
/// The queue from the host of port 0.
const RECEIVE: u16 = 0;
/// The queue towards the host.
const TRANSMIT: u16 = 1;
/// 64 KiB in each direction.
const PAGES: usize = 16;
/// How often a pending transfer is looked at without a pause.
const LOOKS: u32 = 1000;
/// The first pause after that, and the longest, in nanoseconds: each is an eighth longer than the one before.
const FIRST_PAUSE: u64 = 200_000;
const LONGEST_PAUSE: u64 = 4_000_000;

/// Registers the device, if the machine has one. After devtmpfs exists.
pub fn init(info: &BootInfo) -> Result<()> {
    let Some(device) = virtio::find(DeviceType::Console, info) else { return Ok(()) };
    let opened = device.open_duplex(RECEIVE, TRANSMIT, PAGES).and_then(|mut duplex| {
        duplex.request()?;
        Ok(duplex)
    });
    let Ok(duplex) = opened else {
        log::warn!("virtio: a console that cannot be set up is not used");
        return Ok(());
    };
    let inbox = Inbox { bytes: buffer(&duplex)?, ready: (0, 0) };
    let port = try_arc(Port {
        writers: Mutex::new(buffer(&duplex)?),
        readers: Mutex::new(inbox),
        device: Mutex::new(duplex),
    })?;
    devfs::register_char(MAJOR, 0, NAME, 0o600, try_arc(Driver(port))?);
    log::info!("virtio: /dev/{NAME} leads to the host");
    Ok(())
}

fn buffer(duplex: &Duplex) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(duplex.capacity()).map_err(|_| Errno::ENOMEM)?;
    buffer.try_resize(duplex.capacity(), 0)?;
    Ok(buffer)
}

struct Driver(Arc<Port>);

impl CharDriver for Driver {
    fn open(&self, _minor: u32, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(self.0.clone())
    }
}

struct Port {
    device: Mutex<Duplex>,
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

impl Port {
    /// Looks at the device until `look` says how much it has done.
    fn wait(
        &self,
        mut look: impl FnMut(&mut Duplex) -> Result<Progress, Broken>,
    ) -> Result<Option<usize>> {
        // Nobody wakes it: it is a way to sleep for a moment.
        let nobody = WaitQueue::new();
        let mut pause = FIRST_PAUSE;
        for nth in 0u32.. {
            // The lock is not held over the pause.
            let progress = look(&mut self.device.lock()).map_err(|_| Errno::EIO)?;
            match progress {
                Progress::Idle => return Ok(None),
                Progress::Done { offered, claimed } => {
                    return Ok(Some(offered.min(usize::try_from(claimed).unwrap_or(offered))));
                }
                Progress::Pending if nth < LOOKS => core::hint::spin_loop(),
                Progress::Pending => {
                    let until = time::since_boot_ns().saturating_add(pause);
                    pause = (pause + pause / 8).min(LONGEST_PAUSE);
                    match nobody.wait_deadline(Some(until), || None::<()>) {
                        Err(WaitError::Interrupted) => return Err(Errno::EINTR),
                        Ok(()) | Err(WaitError::TimedOut) => {}
                    }
                }
            }
        }
        Err(Errno::EIO)
    }

    /// Gives the device one buffer full.
    fn send(&self, buffer: &mut [u8], src: &mut Source<'_>) -> Result<usize> {
        self.wait(Duplex::poll_outgoing)?;
        let taken = src.take(buffer)?;
        match buffer.get(..taken) {
            Some(bytes) if taken > 0 => self.device.lock().send(bytes).map_err(|_| Errno::EIO),
            _ => Ok(0),
        }
    }

    /// Waits until the inbox holds something. A device that claims to have written nothing is asked again.
    fn receive(&self, inbox: &mut Inbox) -> Result<()> {
        while inbox.ready.0 == inbox.ready.1 {
            let got = self.wait(Duplex::poll_incoming)?.unwrap_or(0);
            let mut device = self.device.lock();
            if let Some(bytes) = inbox.bytes.get_mut(..got) {
                device.take(bytes).map_err(|_| Errno::EIO)?;
                inbox.ready = (0, got);
            }
            device.request().map_err(|_| Errno::EIO)?;
        }
        Ok(())
    }
}

impl FileOps for Port {
    fn read(&self, _f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() == 0 {
            return Ok(0);
        }
        let mut inbox = self.readers.lock_interruptible()?;
        self.receive(&mut inbox)?;
        let (from, to) = inbox.ready;
        let put = dst.put(inbox.bytes.get(from..to).unwrap_or_default())?;
        inbox.ready.0 += put;
        Ok(put)
    }

    fn write(&self, _f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        let mut buffer = self.writers.lock_interruptible()?;
        let mut done = 0;
        while src.remaining() > 0 {
            match self.send(&mut buffer, src) {
                Ok(0) => break,
                Ok(sent) => done += sent,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn fsync(&self, _f: &OpenFile, _data_only: bool) -> Result<()> {
        let _buffer = self.writers.lock_interruptible()?;
        self.wait(Duplex::poll_outgoing).map(drop)
    }

    fn uses_position(&self) -> bool {
        false
    }

    fn seekable(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
