//! PCI: configuration space through the two ports that every PC has, and the devices that are there.
//!
//! Owns the ports 0xcf8 and 0xcfc, the lock between their two accesses, and the list of devices, made at
//! the first look, with a note of which a driver has taken: the first bus and whatever bus the firmware put behind a bridge. Reads of what is not
//! there give all-ones. Never written to by anybody else: the ports are private here. Locks: `Random`, between the two
//! accesses.

use core::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use virtio_drivers::transport::pci::bus::{
    ConfigurationAccess, DeviceFunction, DeviceFunctionInfo, HeaderType, PciRoot,
};

use crate::base::boot_info::{BootInfo, MemoryKind};
use crate::base::port::Ports;
use crate::sync::{Once, SpinLock, level};

// SAFETY: what is written there can make devices read and write memory; the ports stay in this module, and
// `ConfigPorts::new` passes the duty on.
const CONFIG: Ports = unsafe { Ports::new(0xcf8, 8) };
const ADDRESS: u16 = 0;
const DATA: u16 = 4;
const ENABLE: u32 = 1 << 31;

/// Registers of configuration space.
const VENDOR: u8 = 0x00;
const CLASS: u8 = 0x08;
const HEADER: u8 = 0x0c;
/// Of a bridge: the number of the bus behind it is the second byte.
const BUSES: u8 = 0x18;
const ABSENT: u32 = u32::MAX;
const MULTI_FUNCTION: u8 = 0x80;

/// More buses or devices are not looked at; machines that boot Alea have fewer.
const MOST_BUSES: usize = 32;
const MOST_DEVICES: usize = 64;

static PORTS: SpinLock<(), level::Random> = SpinLock::new(());
/// A bit for each entry of the list: a driver has taken the device. Relaxed: nothing else depends on it.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static DEVICES: Once<ArrayVec<Device, MOST_DEVICES>> = Once::new();

/// A device: where it is, and what it says it is.
#[derive(Clone, Debug)]
pub struct Device {
    pub place: DeviceFunction,
    pub info: DeviceFunctionInfo,
}

/// Access to the configuration space of all devices.
pub struct ConfigPorts(());

impl ConfigPorts {
    /// Access to all devices.
    ///
    /// # Safety
    /// Whoever writes answers for what the device then does: its BARs stay where they are, and it gets no
    /// right to move data but to memory that is its own.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

fn select(device: DeviceFunction, register: u8) {
    let place = u32::from(device.bus) << 16
        | u32::from(device.device & 31) << 11
        | u32::from(device.function & 7) << 8;
    CONFIG.write32(ADDRESS, ENABLE | place | u32::from(register & !3));
}

impl ConfigurationAccess for ConfigPorts {
    fn read_word(&self, device: DeviceFunction, register: u8) -> u32 {
        let _guard = PORTS.lock();
        select(device, register);
        CONFIG.read32(DATA)
    }

    fn write_word(&mut self, device: DeviceFunction, register: u8, data: u32) {
        let _guard = PORTS.lock();
        select(device, register);
        CONFIG.write32(DATA, data);
    }

    // SAFETY: has no state, and the lock is shared.
    unsafe fn unsafe_clone(&self) -> Self {
        Self(())
    }
}

/// All devices, those of the first bus first.
pub fn devices() -> &'static [Device] {
    DEVICES.call_once(enumerate)
}

/// Notes that a driver has taken the device there.
pub fn take(place: DeviceFunction) {
    if let Some(at) = devices().iter().position(|device| device.place == place) {
        TAKEN.fetch_or(1 << (at % MOST_DEVICES), Ordering::Relaxed);
    }
}

/// All devices, and whether a driver has taken each.
pub fn devices_taken() -> impl Iterator<Item = (&'static Device, bool)> {
    let taken = TAKEN.load(Ordering::Relaxed);
    devices().iter().enumerate().map(move |(at, device)| (device, taken >> at & 1 != 0))
}

fn enumerate() -> ArrayVec<Device, MOST_DEVICES> {
    let mut devices = ArrayVec::new();
    let mut buses = ArrayVec::<u8, MOST_BUSES>::from_iter([0]);
    let mut at = 0;
    while let Some(&bus) = buses.get(at) {
        for device in 0..32 {
            enumerate_slot(bus, device, &mut devices, &mut buses);
        }
        at += 1;
    }
    devices
}

/// The functions of one device; a bridge among them adds its bus.
fn enumerate_slot(
    bus: u8,
    device: u8,
    devices: &mut ArrayVec<Device, MOST_DEVICES>,
    buses: &mut ArrayVec<u8, MOST_BUSES>,
) {
    for function in 0..8 {
        let place = DeviceFunction { bus, device, function };
        let Some((info, several)) = identify(place) else {
            // Without its first function a device has no other.
            if function == 0 {
                return;
            }
            continue;
        };
        if info.header_type == HeaderType::PciPciBridge {
            let [_, behind, ..] = ConfigPorts(()).read_word(place, BUSES).to_le_bytes();
            if behind != 0 && !buses.contains(&behind) && !buses.is_full() {
                buses.push(behind);
            }
        }
        if !devices.is_full() {
            devices.push(Device { place, info });
        }
        if function == 0 && !several {
            return;
        }
    }
}

/// What is there, and whether it may have further functions.
fn identify(place: DeviceFunction) -> Option<(DeviceFunctionInfo, bool)> {
    let id = ConfigPorts(()).read_word(place, VENDOR);
    if id == ABSENT {
        return None;
    }
    let [revision, prog_if, subclass, class] =
        ConfigPorts(()).read_word(place, CLASS).to_le_bytes();
    let [_, _, header, _] = ConfigPorts(()).read_word(place, HEADER).to_le_bytes();
    let info = DeviceFunctionInfo {
        vendor_id: id as u16,
        device_id: (id >> 16) as u16,
        class,
        subclass,
        prog_if,
        revision,
        header_type: HeaderType::from(header & !MULTI_FUNCTION),
    };
    Some((info, header & MULTI_FUNCTION != 0))
}

/// A device's registers: the start and the length of each area of memory, by the number of its base address
/// register. Nothing if one of them lies in memory, which no honest firmware arranges.
pub fn registers(place: DeviceFunction, info: &BootInfo) -> Option<[Option<(u64, u64)>; 6]> {
    let bars = PciRoot::new(ConfigPorts(())).bars(place).ok()?;
    let areas = bars.map(|bar| bar.and_then(|bar| bar.memory_address_size()));
    for (start, len) in areas.into_iter().flatten() {
        let end = start.checked_add(len)?;
        let memory = |kind| kind != MemoryKind::Reserved;
        if info.memory_map.iter().any(|region| {
            memory(region.kind) && region.start.as_u64() < end && start < region.end()
        }) {
            log::error!("pci: a device's registers lie in memory, it is not used");
            return None;
        }
    }
    Some(areas)
}
