//! The devices on the PCI bus that no driver has taken: one line of the log for each, so that a user can tell a missing driver from
//! an option that did not work.
//!
//! Owns nothing. Bridges and the SMBus need no driver here and get no line. Locks: none.
#![forbid(unsafe_code)]

use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::DeviceFunctionInfo;
use virtio_drivers::transport::pci::virtio_device_type;

use super::pci;

const BRIDGE: u8 = 0x06;
/// A kind that the library of virtio devices does not know: number 26 of the specification's list.
const VIRTIO_FS: (u16, u16) = (0x1af4, 0x105a);
const SERIAL_BUS: (u8, u8) = (0x0c, 0x05);

/// Says which devices have no driver. Once, after all drivers have looked for theirs.
pub fn log() {
    for (device, taken) in pci::devices_taken() {
        let info = &device.info;
        if taken || info.class == BRIDGE || (info.class, info.subclass) == SERIAL_BUS {
            continue;
        }
        let (place, kind) = (device.place, kind(info));
        let (vendor, model) = (info.vendor_id, info.device_id);
        let same = |other: &pci::Device, taken: bool| {
            taken && (other.info.vendor_id, other.info.device_id) == (vendor, model)
        };
        let why = match pci::devices_taken().any(|(other, taken)| same(other, taken)) {
            true => "not used: another one is",
            false => "no driver",
        };
        let (bus, slot, function) = (place.bus, place.device, place.function);
        log::info!(
            "pci 0000:{bus:02x}:{slot:02x}.{function}: {kind} [{vendor:04x}:{model:04x}]: {why}"
        );
    }
}

/// What a user calls the device.
fn kind(info: &DeviceFunctionInfo) -> &'static str {
    match virtio_device_type(info) {
        Some(DeviceType::Network) => return "virtio-net",
        Some(DeviceType::Block) => return "virtio-blk",
        Some(DeviceType::Console) => return "virtio-console",
        Some(DeviceType::EntropySource) => return "virtio-rng",
        Some(DeviceType::MemoryBalloon | DeviceType::MemoryBallooning) => return "virtio-balloon",
        Some(DeviceType::ScsiHost) => return "virtio-scsi",
        Some(DeviceType::_9P) => return "virtio-9p",
        Some(DeviceType::GPU) => return "virtio-gpu",
        Some(DeviceType::Input) => return "virtio-input",
        Some(DeviceType::Socket) => return "virtio-vsock",
        Some(_) => return "virtio device",
        None => {}
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
