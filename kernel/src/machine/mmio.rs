//! virtio devices whose registers lie in memory and on no bus, as QEMU's microvm and Firecracker have them: named by ACPI's tables
//! (`LNRO0005`), or by `virtio_mmio.device=` words of the command line, which such machines add where there are no tables.
//!
//! Owns the list of them, made at the first look, with a note of which a driver has taken. Never writes to a register. An area that
//! lies in memory, which no honest machine has, is no device. Locks: none.

use core::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;

use super::acpi;
use crate::base::boot_info::{BootInfo, MemoryKind};
use crate::base::kmap::{self, Cache};
use crate::base::page::PAGE_SIZE;
use crate::cmdline::{self, words};
use crate::sync::Once;

/// More are not looked at; QEMU's microvm has room for 24.
const MOST: usize = 32;
/// The registers that each has, and the start of what is its own.
const LEAST: u64 = 0x100;
const MOST_BYTES: u64 = PAGE_SIZE as u64;
const MAGIC: u32 = u32::from_le_bytes(*b"virt");

static DEVICES: Once<ArrayVec<Device, MOST>> = Once::new();
/// A bit for each entry of the list. Relaxed: nothing else depends on it.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// A device: where it is, and what it says it is.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// In physical memory.
    pub start: u64,
    /// Where the registers are mapped, and how many bytes.
    pub registers: (u64, usize),
    /// By the numbers of the specification; never 0, which is a slot that is empty.
    pub kind: u32,
}

/// All that are there, as they are listed.
pub fn devices(info: &BootInfo) -> &'static [Device] {
    DEVICES.call_once(|| {
        let mut found = ArrayVec::new();
        let mut add = |start, len| {
            if let Some(device) = identify(start, len, info) {
                found.push(device);
            }
            !found.is_full()
        };
        let tables = acpi::get().map_or(&[][..], |acpi| &acpi.byte_code);
        alea_aml::areas(tables, b"LNRO0005", &mut add);
        for word in cmdline::values(words::VIRTIO_MMIO) {
            match area(word) {
                Some((start, len)) if add(start, len) => {}
                Some(_) => break,
                None => log::warn!("virtio_mmio.device={word}: this is no SIZE@BASE:IRQ"),
            }
        }
        found
    })
}

/// Notes that a driver has taken the device there.
pub fn take(start: u64, info: &BootInfo) {
    if let Some(at) = devices(info).iter().position(|device| device.start == start) {
        TAKEN.fetch_or(1 << at, Ordering::Relaxed);
    }
}

/// All devices, and whether a driver has taken each.
pub fn devices_taken(info: &BootInfo) -> impl Iterator<Item = (&'static Device, bool)> + use<> {
    let taken = TAKEN.load(Ordering::Relaxed);
    devices(info).iter().enumerate().map(move |(at, device)| (device, taken >> at & 1 != 0))
}

/// `SIZE@BASE:IRQ[:ID]`, as Linux reads it: numbers with 0x or without, the size with K or M behind it.
fn area(word: &str) -> Option<(u64, u64)> {
    let (len, rest) = word.split_once('@')?;
    let (start, line) = rest.split_once(':')?;
    let whole = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse::<u64>().ok(),
    };
    let (digits, shift) = match len.as_bytes().last()? {
        b'K' | b'k' => (&len[..len.len() - 1], 10),
        b'M' | b'm' => (&len[..len.len() - 1], 20),
        _ => (len, 0),
    };
    // There is no use for the interrupt: devices are asked.
    line.split(':').all(|number| whole(number).is_some()).then_some(())?;
    Some((whole(start)?, whole(digits)?.checked_mul(1 << shift)?))
}

fn identify(start: u64, len: u64, info: &BootInfo) -> Option<Device> {
    let len = len.min(MOST_BYTES);
    let end = start.checked_add(len)?;
    if len < LEAST || !start.is_multiple_of(4) {
        return None;
    }
    if info.memory_map.iter().any(|region| {
        region.kind != MemoryKind::Reserved && region.start.as_u64() < end && start < region.end()
    }) {
        log::error!("virtio: a device's registers lie in memory, it is not used");
        return None;
    }
    let len = usize::try_from(len).ok()?;
    let at = kmap::map(start, len, Cache::Uncached)?;
    // SAFETY: mapped above for as long as the kernel runs, aligned, and within the area; reading these registers has no effect.
    let register = |offset: u64| unsafe { ((at + offset) as *const u32).read_volatile() };
    let [magic, kind] = [register(0), register(8)];
    (magic == MAGIC && kind != 0).then_some(Device { start, registers: (at, len), kind })
}
