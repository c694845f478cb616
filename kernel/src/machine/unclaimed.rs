//! The devices on the PCI bus, and virtio devices on none, that no driver has taken: one line of the log for each, so that a user can
//! tell a missing driver from an option that did not work.
//!
//! Owns nothing. Bridges and the SMBus need no driver here and get no line. Locks: none.
#![forbid(unsafe_code)]

use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::DeviceFunctionInfo;
use virtio_drivers::transport::pci::virtio_device_type;

use super::{mmio, pci};
use crate::base::boot_info::BootInfo;

const BRIDGE: u8 = 0x06;
/// A kind that the library of virtio devices does not know: number 26 of the specification's list.
const VIRTIO_FS: (u16, u16) = (0x1af4, 0x105a);
const VIRTIO_FS_KIND: u32 = 26;
const ANOTHER: &str = "not used: another one is";
const NO_DRIVER: &str = "no driver";
const SERIAL_BUS: (u8, u8) = (0x0c, 0x05);

/// Says which devices have no driver. Once, after all drivers have looked for theirs.
pub fn log(info: &BootInfo) {
    for (device, taken) in pci::devices_taken() {
        let identity = &device.info;
        if taken || identity.class == BRIDGE || (identity.class, identity.subclass) == SERIAL_BUS {
            continue;
        }
        let (place, kind) = (device.place, kind(identity));
        let (vendor, model) = (identity.vendor_id, identity.device_id);
        let same = |other: &pci::Device, taken: bool| {
            taken && (other.info.vendor_id, other.info.device_id) == (vendor, model)
        };
        let why = match pci::devices_taken().any(|(other, taken)| same(other, taken)) {
            true => ANOTHER,
            false => NO_DRIVER,
        };
        let (bus, slot, function) = (place.bus, place.device, place.function);
        log::info!(
            "pci 0000:{bus:02x}:{slot:02x}.{function}: {kind} [{vendor:04x}:{model:04x}]: {why}"
        );
    }
    for (device, _) in mmio::devices_taken(info).filter(|(_, taken)| !taken) {
        let kind = match device.kind {
            VIRTIO_FS_KIND => "virtio-fs",
            number => DeviceType::try_from(number).map_or("virtio device", virtio_kind),
        };
        let same = |(other, taken): (&mmio::Device, bool)| taken && other.kind == device.kind;
        let why = if mmio::devices_taken(info).any(same) { ANOTHER } else { NO_DRIVER };
        log::info!("virtio-mmio {:#x}: {kind}: {why}", device.start);
    }
}

/// What a user calls the device.
fn kind(info: &DeviceFunctionInfo) -> &'static str {
    if let Some(kind) = virtio_device_type(info) {
        return virtio_kind(kind);
    }
    match (info.class, info.subclass) {
        _ if (info.vendor_id, info.device_id) == VIRTIO_FS => "virtio-fs",
        (0x01, 0x01) => "IDE controller",
        (0x01, 0x06) => "SATA controller",
        (0x01, 0x08) => "NVMe controller",
        (0x01, _) => "storage controller",
        (0x02, _) => "network card",
        (0x03, _) => "display",
        (0x04, _) => "sound device",
        (0x07, _) => "communication controller",
        (0x09, _) => "input device",
        (0x0c, 0x03) => "USB controller",
        _ => "device",
    }
}

fn virtio_kind(kind: DeviceType) -> &'static str {
    match kind {
        DeviceType::Network => "virtio-net",
        DeviceType::Block => "virtio-blk",
        DeviceType::Console => "virtio-console",
        DeviceType::EntropySource => "virtio-rng",
        DeviceType::MemoryBalloon | DeviceType::MemoryBallooning => "virtio-balloon",
        DeviceType::ScsiHost => "virtio-scsi",
        DeviceType::_9P => "virtio-9p",
        DeviceType::GPU => "virtio-gpu",
        DeviceType::Input => "virtio-input",
        DeviceType::Socket => "virtio-vsock",
        _ => "virtio device",
    }
}
