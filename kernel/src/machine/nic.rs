//! The addresses that network cards were given: read where each make keeps its own, for nothing but to tell
//! one machine from another.
//!
//! Owns nothing; a card is only read from, and only if the firmware switched its registers on. There is no
//! driver for any of them. A card that lies gives six bytes that add nothing. Never switches a card on. Locks: those of
//! `pci`.
//!
//! References: Virtual I/O Device 1.2, sections 4.1.4 and 5.1.4; Intel 8254x family manual, section 13.4
//! (the receive address registers, in the same place on all its later cards); Realtek RTL8139 and RTL8168
//! data sheets, registers IDR0 to IDR5.

use core::ptr;

use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::{
    BarInfo, Command, ConfigurationAccess, DeviceFunction, PciRoot,
};
use virtio_drivers::transport::pci::virtio_device_type;

use super::pci::{self, ConfigPorts, Device};
use crate::base::boot_info::BootInfo;
use crate::base::kmap::{self, Cache};
use crate::base::port::Ports;

const NETWORK: u8 = 2;
const INTEL: u16 = 0x8086;
const REALTEK: u16 = 0x10ec;
/// Intel's receive address registers: the low four bytes, then the high two.
const RECEIVE_ADDRESS: u64 = 0x5400;
/// A capability that is the vendor's own; virtio's tell where its structures lie.
const VENDOR_SPECIFIC: u8 = 9;
/// virtio's structure of the device itself, which starts with the address.
const DEVICE_STRUCTURE: u8 = 4;

/// The addresses of the cards whose make is known.
pub fn addresses(info: &BootInfo) -> impl Iterator<Item = [u8; 6]> {
    pci::devices().iter().filter(|device| device.info.class == NETWORK).filter_map(|device| {
        match device.info.vendor_id {
            INTEL => intel(device.place, info),
            REALTEK => realtek(device.place),
            _ => virtio(device, info),
        }
    })
}

fn config() -> ConfigPorts {
    // SAFETY: this module only reads, but for the sizes of BARs, which are put back as they were.
    unsafe { ConfigPorts::new() }
}

fn is_on(place: DeviceFunction, how: Command) -> bool {
    PciRoot::new(config()).get_status_command(place).1.contains(how)
}

/// Six bytes of a card's registers, with accesses of 32 bits as all of them allow.
fn six_at(place: DeviceFunction, bar: usize, offset: u64, info: &BootInfo) -> Option<[u8; 6]> {
    if !is_on(place, Command::MEMORY_SPACE) {
        return None;
    }
    let (start, len) = (*pci::registers(place, info)?.get(bar)?)?;
    if start == 0 || !offset.is_multiple_of(4) || offset.checked_add(8)? > len {
        return None;
    }
    let at = kmap::map(start + offset, 8, Cache::Uncached)? as *const u32;
    // SAFETY: eight bytes of a device's registers were just mapped, and `registers` has made sure that they are
    // no memory of ours; reading them changes nothing.
    let [low, high] = [0, 1].map(|word| unsafe { ptr::read_volatile(at.add(word)) }.to_le_bytes());
    Some([low[0], low[1], low[2], low[3], high[0], high[1]])
}

fn intel(place: DeviceFunction, info: &BootInfo) -> Option<[u8; 6]> {
    six_at(place, 0, RECEIVE_ADDRESS, info)
}

fn realtek(place: DeviceFunction) -> Option<[u8; 6]> {
    if !is_on(place, Command::IO_SPACE) {
        return None;
    }
    let bar = PciRoot::new(config()).bar_info(place, 0).ok()??;
    let BarInfo::IO { address, .. } = bar else { return None };
    let port = u16::try_from(address).ok().filter(|&port| (1..=0xfffa).contains(&port))?;
    // SAFETY: the device's own registers, of which its address is only read.
    let address = unsafe { Ports::new(port, 6) };
    Some([0, 1, 2, 3, 4, 5].map(|byte| address.read8(byte)))
}

fn virtio(device: &Device, info: &BootInfo) -> Option<[u8; 6]> {
    let place = device.place;
    if virtio_device_type(&device.info) != Some(DeviceType::Network) {
        return None;
    }
    let root = PciRoot::new(config());
    let structure = root.capabilities(place).find(|capability| {
        capability.id == VENDOR_SPECIFIC
            && capability.private_header.to_le_bytes()[1] == DEVICE_STRUCTURE
    })?;
    let word = |at: u8| Some(config().read_word(place, structure.offset.checked_add(at)?));
    six_at(place, word(4)? as usize & 0xff, u64::from(word(8)?), info)
}
