//! /dev/vport0p0: a byte channel to the host, over a virtio console device.
//!
//! Owns the device and its buffer. It is written and never read: what the host types comes by the serial
//! line. Made for moving hundreds of megabytes out of the guest (`cargo xtask random-stats`), which the
//! serial line would take hours for. Only a device without the multi-port feature is used
//! (`-device virtio-serial-pci,max_ports=1 -device virtconsole,chardev=...`).
//!
//! Locks: a `Mutex`, held while one transfer is under way. A device that keeps its buffer makes writers
//! wait, interruptibly; it never gets other memory.
#![forbid(unsafe_code)]

use crate::base::boot_info::BootInfo;
use crate::fs::devfs;
use crate::mm::Source;
use crate::mm::fallible::{TryVec, try_arc};
use crate::sync::wait::WaitError;
use crate::sync::{Mutex, WaitQueue};
use crate::time;
use crate::vfs::chardev::CharDriver;
use crate::vfs::{FileOps, OpenFile};
use crate::virtio::{self, Channel, DeviceType, Progress};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// Linux gives the ports of its own driver a dynamic major; this is the first of that range.
const MAJOR: u32 = 234;
const NAME: &str = "vport0p0";
/// The queue towards the host of port 0.
const TRANSMIT: u16 = 1;
/// 64 KiB.
const PAGES: usize = 16;
/// How often a pending transfer is looked at, in nanoseconds: at once a few times, then now and then.
const LOOKS: u32 = 1000;
const PAUSE: u64 = 200_000;

/// Registers the device, if the machine has one. After devtmpfs exists.
pub fn init(info: &BootInfo) -> Result<()> {
    let Some(device) = virtio::find(DeviceType::Console, info) else { return Ok(()) };
    let Ok(channel) = device.open(TRANSMIT, PAGES) else {
        log::warn!("virtio: a console that cannot be set up is not used");
        return Ok(());
    };
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(channel.capacity()).map_err(|_| Errno::ENOMEM)?;
    buffer.try_resize(channel.capacity(), 0)?;
    let port = try_arc(Port { state: Mutex::new(State { channel, buffer }) })?;
    devfs::register_char(MAJOR, 0, NAME, 0o600, try_arc(Driver(port))?);
    log::info!("virtio: /dev/{NAME} leads to the host");
    Ok(())
}

struct Driver(Arc<Port>);

impl CharDriver for Driver {
    fn open(&self, _minor: u32, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(self.0.clone())
    }
}

struct Port {
    state: Mutex<State>,
}

struct State {
    channel: Channel,
    buffer: Vec<u8>,
}

impl State {
    /// Waits until the device has given the buffer back.
    fn wait(&mut self) -> Result<()> {
        // Nobody wakes it: it is a way to sleep for a moment.
        let nobody = WaitQueue::new();
        for look in 0u32.. {
            match self.channel.poll().map_err(|_| Errno::EIO)? {
                Progress::Idle | Progress::Done { .. } => return Ok(()),
                Progress::Pending if look < LOOKS => core::hint::spin_loop(),
                Progress::Pending => {
                    let until = time::since_boot_ns().saturating_add(PAUSE);
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
    fn send(&mut self, src: &mut Source<'_>) -> Result<usize> {
        self.wait()?;
        let taken = src.take(&mut self.buffer)?;
        match self.buffer.get(..taken) {
            Some(bytes) if taken > 0 => self.channel.send(bytes).map_err(|_| Errno::EIO),
            _ => Ok(0),
        }
    }
}

impl FileOps for Port {
    fn write(&self, _f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        let mut state = self.state.lock_interruptible()?;
        let mut done = 0;
        while src.remaining() > 0 {
            match state.send(src) {
                Ok(0) => break,
                Ok(sent) => done += sent,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn fsync(&self, _f: &OpenFile, _data_only: bool) -> Result<()> {
        self.state.lock_interruptible()?.wait()
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
