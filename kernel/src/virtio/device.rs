//! What virtio devices need of memory: pages to share with them, their registers mapped, their addresses.
//!
//! Owns the one implementation of `virtio-drivers`' memory interface, and the search for devices of
//! one kind. Pages given to devices are never given back: a device may write to them for ever, so
//! nobody else may have them.
//!
//! Trust: configuration space belongs to the machine (a hypervisor can stop or read it at any time anyway);
//! it is still checked that registers do not lie in memory. What comes through the rings may come from
//! anybody and is checked in [`queue`]. Locks: none.

use super::ports;
use super::queue::{self, Broken};
pub use virtio_drivers::transport::DeviceType;

use crate::base::PAGE_SIZE;
use crate::base::boot_info::BootInfo;
use crate::base::kmap::{self, Cache};
use crate::machine::mmio;
use crate::machine::pci::{self, ConfigPorts};
use crate::mm::frames::{self, Pfn};
use crate::mm::layout::DIRECT_MAP_BASE;
use alea_frames::Owner;
use core::ptr::NonNull;
use virtio_drivers::transport::SomeTransport;
use virtio_drivers::transport::mmio::MmioTransport;
use virtio_drivers::transport::pci::bus::{Command, DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, virtio_device_type};
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

/// A device and one of its queues.
pub type Channel = queue::Channel<KernelHal, SomeTransport<'static>>;

/// A console.
pub type Ports = ports::Ports<KernelHal, SomeTransport<'static>>;

/// A device that was found and not touched yet.
pub struct Device {
    place: Place,
}

/// Where a device's registers are.
enum Place {
    Pci(DeviceFunction),
    /// In memory, and on no bus.
    Memory(mmio::Device),
}

/// The first device of that kind, of those on the PCI bus if there is one.
pub fn find(kind: DeviceType, info: &BootInfo) -> Option<Device> {
    let mut devices = pci::devices().iter();
    let place = match devices.find(|device| virtio_device_type(&device.info) == Some(kind)) {
        Some(device) => {
            pci::registers(device.place, info)?;
            pci::take(device.place);
            Place::Pci(device.place)
        }
        None => {
            let mut others = mmio::devices(info).iter();
            let device = others.find(|device| DeviceType::try_from(device.kind) == Ok(kind))?;
            mmio::take(device.start, info);
            Place::Memory(*device)
        }
    };
    Some(Device { place })
}

impl Device {
    /// Sets the device up with its queue number `index` and a buffer of `pages`.
    pub fn open(self, index: u16, pages: usize) -> Result<Channel, Broken> {
        Channel::new(self.transport()?, index, pages)
    }

    /// Sets the device up as a console whose ports get a buffer of `pages` for each direction.
    pub fn open_ports(self, pages: usize) -> Result<Ports, Broken> {
        Ports::new(self.transport()?, pages)
    }

    fn transport(&self) -> Result<SomeTransport<'static>, Broken> {
        match self.place {
            Place::Pci(place) => on_bus(place).map(SomeTransport::from),
            Place::Memory(device) => in_memory(device).map(SomeTransport::from),
        }
    }
}

fn on_bus(place: DeviceFunction) -> Result<PciTransport, Broken> {
    // SAFETY: the device gets the right to move data here, and moves them to its queues and buffers only: these
    // are what it is told of, and they are its own as long as it may.
    let mut root = PciRoot::new(unsafe { ConfigPorts::new() });
    // Its interrupt line may be shared with a device that has a driver: it never uses it.
    let command = Command::MEMORY_SPACE | Command::BUS_MASTER | Command::INTERRUPT_DISABLE;
    root.set_command(place, command);
    let transport = PciTransport::new::<KernelHal, _>(&mut root, place);
    transport.map_err(|error| {
        log::warn!("virtio: {error}");
        Broken
    })
}

fn in_memory(device: mmio::Device) -> Result<MmioTransport<'static>, Broken> {
    let (at, len) = device.registers;
    let header = NonNull::new(at as *mut _).ok_or(Broken)?;
    // SAFETY: these are the registers of a virtio device, as their first word says, aligned and mapped for ever with what follows
    // them; `machine::mmio` only reads them, and `find` gives each kind of device to one driver.
    let transport = unsafe { MmioTransport::new(header, len) };
    transport.map_err(|error| {
        log::warn!("virtio: {error}");
        Broken
    })
}

/// Memory as `virtio-drivers` wants it.
pub struct KernelHal;

// SAFETY: pages come zeroed and aligned from the frame allocator and are never freed; the direct map covers
// them, so that a pointer into it and its physical address determine each other.
unsafe impl Hal for KernelHal {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let order = pages.next_power_of_two().trailing_zeros() as usize;
        let Some(first) = frames::alloc_block(order, Owner::Kernel) else {
            return (0, NonNull::dangling());
        };
        for page in 0..1u64 << order {
            Pfn::of_phys(first.phys() + page * PAGE_SIZE as u64).clear();
        }
        match NonNull::new(first.ptr()) {
            Some(start) => (first.phys(), start),
            None => (0, NonNull::dangling()),
        }
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        // Kept: see the file header.
        0
    }

    unsafe fn mmio_phys_to_virt(phys: PhysAddr, size: usize) -> NonNull<u8> {
        let mapped = kmap::map(phys, size, Cache::Uncached);
        let mapped = mapped.and_then(|at| NonNull::new(at as *mut u8));
        mapped.expect("a device's registers are larger than the area for registers")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().addr().get() as u64 - DIRECT_MAP_BASE
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}
