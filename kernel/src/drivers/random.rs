//! /dev/random, /dev/urandom and the files about them in /proc.
//!
//! Owns the device numbers and file names. What the files do is the service's (`random::service`); here it
//! only gets the shape of an open file. Never makes a byte itself. Locks: none.
#![forbid(unsafe_code)]

use crate::fs::devfs;
use crate::fs::procfs::{self, ProcFile};
use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::mm::{Sink, Source};
use crate::sync::{Once, PollTable};
use crate::vfs::chardev::CharDriver;
use crate::vfs::{Abilities, FileOps, OpenFile, Position, Whence};
use crate::{random, try_format};
use abi::fs::{OpenFlags, PollEvents};
use abi::{Errno, Result};
use alea_random::credit::State;
use alea_random::request::Device;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Major number of the memory devices.
const MAJOR: u32 = 1;

/// Registers the devices and files. After devtmpfs and procfs exist.
pub fn init() -> Result<()> {
    for (device, name) in [(Device::Random, "random"), (Device::Urandom, "urandom")] {
        let file = RandomFile(device);
        devfs::register_char(MAJOR, device.minor(), name, 0o666, try_arc(Driver(try_arc(file)?))?);
    }
    for (name, mode, file) in [
        ("boot_id", 0o444, SysFile::BootId),
        ("uuid", 0o444, SysFile::Uuid),
        ("entropy_avail", 0o444, SysFile::EntropyAvail),
        ("poolsize", 0o444, SysFile::Constant(256)),
        ("urandom_min_reseed_secs", 0o644, SysFile::Ignored(60)),
        ("write_wakeup_threshold", 0o644, SysFile::Ignored(256)),
    ] {
        let register = match file {
            SysFile::BootId | SysFile::Uuid => procfs::register_line,
            _ => procfs::register_numbers,
        };
        register(&try_format!("kernel/random/{name}")?, mode, try_arc(file)?)?;
    }
    procfs::register_file("alea/jitter_raw", 0o400, try_arc(RawJitter)?)?;
    procfs::register_file("alea/random", 0o644, try_arc(Report)?)
}

struct Driver(Arc<RandomFile>);

impl CharDriver for Driver {
    fn open(&self, _minor: u32, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(self.0.clone())
    }

    /// What the vector unit makes at once. Random bytes cost by the byte, unlike a disk's: who reads through a buffer
    /// wants a key, not 4096 bytes of which the rest is thrown away.
    fn block_size(&self) -> u32 {
        512
    }
}

/// An open random device; has no state of its own.
struct RandomFile(Device);

impl FileOps for RandomFile {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        random::device_read(self.0, dst, f.nonblock())
    }

    fn write(&self, _f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        random::device_write(src)
    }

    fn position(&self) -> Position {
        Position::Ignored
    }

    fn never_waits(&self) -> bool {
        self.0 == Device::Urandom || random::state() == State::Ready
    }

    /// Any seek leads to 0, as Linux's `noop_llseek`.
    fn lseek(&self, _f: &OpenFile, _pos: u64, _offset: i64, _whence: Whence) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        random::device_poll(self.0, table)
    }

    fn is_watchable(&self, _: &OpenFile) -> bool {
        self.0 == Device::Random
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        random::device_ioctl(cmd, arg)
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS | Abilities::SPLICES
    }
}

/// A file of /proc/sys/kernel/random.
enum SysFile {
    BootId,
    Uuid,
    EntropyAvail,
    Constant(u32),
    /// Accepts writes and ignores them, as Linux does since the pool no longer drains.
    Ignored(u32),
}

impl ProcFile for SysFile {
    fn read(&self) -> Result<Vec<u8>> {
        /// Made at the first read, the same until the next boot.
        static BOOT_ID: Once<[u8; 36]> = Once::new();
        let text = match self {
            Self::BootId => return line(BOOT_ID.call_once(random::uuid)),
            Self::Uuid => return line(&random::uuid()),
            Self::EntropyAvail => try_format!("{}\n", random::credited().0)?,
            Self::Constant(number) | Self::Ignored(number) => try_format!("{number}\n")?,
        };
        Ok(text.into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        match self {
            Self::Ignored(_) => {
                let number = core::str::from_utf8(data).map_err(|_| Errno::EINVAL)?.trim();
                if !number.is_empty() {
                    number.parse::<i32>().map_err(|_| Errno::EINVAL)?;
                }
                Ok(data.len())
            }
            _ => Err(Errno::EPERM),
        }
    }
}

fn line(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    out.try_reserve_exact(text.len() + 1).map_err(|_| Errno::ENOMEM)?;
    out.try_extend_from_slice(text)?;
    out.try_push(b'\n')?;
    Ok(out)
}

/// /proc/alea/jitter_raw: a few thousand raw samples of jitter, one byte each, new ones at each opening.
struct RawJitter;

impl RawJitter {
    /// As many as are made without holding up the other tasks for long.
    const SAMPLES: usize = 16384;
}

impl ProcFile for RawJitter {
    fn read(&self) -> Result<Vec<u8>> {
        let mut samples = Vec::new();
        samples.try_reserve_exact(Self::SAMPLES).map_err(|_| Errno::ENOMEM)?;
        samples.try_resize(Self::SAMPLES, 0)?;
        random::raw_samples(&mut samples);
        Ok(samples)
    }
}

/// /proc/alea/random.
struct Report;

impl ProcFile for Report {
    fn read(&self) -> Result<Vec<u8>> {
        random::report().map(alloc::string::String::into_bytes)
    }

    /// `test` has everything tested; `EIO` if something has failed, now or before.
    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.trim_ascii() != b"test" {
            return Err(Errno::EINVAL);
        }
        if random::test_on_demand() { Ok(data.len()) } else { Err(Errno::EIO) }
    }
}
