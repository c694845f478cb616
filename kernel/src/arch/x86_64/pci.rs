//! PCI configuration space through the two ports that every PC has.
//!
//! Owns the ports 0xcf8 and 0xcfc and the lock between their two accesses. Reads of what is not there
//! give all-ones.

use virtio_drivers::transport::pci::bus::{ConfigurationAccess, DeviceFunction};

use super::port::{inl, outl};
use crate::sync::{SpinLock, level};

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;

static PORTS: SpinLock<(), level::Random> = SpinLock::new(());

/// Access to the configuration space of all devices.
pub struct ConfigPorts;

fn select(device: DeviceFunction, register: u8) {
    let place = u32::from(device.bus) << 16
        | u32::from(device.device & 31) << 11
        | u32::from(device.function & 7) << 8;
    outl(ADDRESS, ENABLE | place | u32::from(register & !3));
}

impl ConfigurationAccess for ConfigPorts {
    fn read_word(&self, device: DeviceFunction, register: u8) -> u32 {
        let _guard = PORTS.lock();
        select(device, register);
        inl(DATA)
    }

    fn write_word(&mut self, device: DeviceFunction, register: u8, data: u32) {
        let _guard = PORTS.lock();
        select(device, register);
        outl(DATA, data);
    }

    // SAFETY: has no state, and the lock is shared.
    unsafe fn unsafe_clone(&self) -> Self {
        Self
    }
}
