//! [`BootInfo`]: all that the boot loader told the kernel, whatever the protocol was.
//!
//! Owns the physical place of the kernel's image. Filled once by `boot`, on the boot CPU, and never changed. No locks.

use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU64, Ordering};
use x86_64::PhysAddr;

/// The most entries a memory map can have.
pub const MAX_REGIONS: usize = 160;

/// What a stretch of physical memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Free for the frame allocator.
    Usable,
    /// The boot loader's own; `tables::build` turns it into `Usable` once it is out of use.
    Loader,
    Reserved,
    AcpiReclaimable,
    AcpiNvs,
    Bad,
    /// The kernel's image.
    Kernel,
    /// The initramfs, usable once unpacked.
    Initramfs,
    /// Page tables made at boot, in use for ever.
    PageTables,
}

/// One stretch of physical memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRegion {
    pub start: PhysAddr,
    pub len: u64,
    pub kind: MemoryKind,
}

impl MemoryRegion {
    /// The first address behind the region.
    pub fn end(&self) -> u64 {
        self.start.as_u64() + self.len
    }
}

/// The memory map: sorted, without overlaps, page-aligned where usable.
pub type MemoryMap = ArrayVec<MemoryRegion, MAX_REGIONS>;

/// Everything that the boot loader told the kernel.
pub struct BootInfo {
    pub memory_map: MemoryMap,
    /// The command line, in kernel memory.
    pub cmdline: &'static str,
    /// Where the initramfs lies and how long it is.
    pub initramfs: Option<(PhysAddr, u64)>,
    /// The ACPI root pointer, when the loader handed it over.
    pub rsdp: Option<PhysAddr>,
    /// Where UEFI's configuration table says that a seed lies (`LINUX_EFI_RANDOM_SEED`).
    pub efi_seed: Option<PhysAddr>,
    /// Some pages below 1 MiB, for the starting of other CPUs.
    pub startup: Option<PhysAddr>,
    /// The boot protocol, for the log.
    pub protocol: &'static str,
    /// The time-stamp counter at the first instruction.
    pub entry_tsc: u64,
}

pub static KERNEL_PHYS: AtomicU64 = AtomicU64::new(0);

/// The physical address of the image's first byte.
pub fn kernel_phys() -> u64 {
    // Relaxed: written once, before the kernel proper runs.
    KERNEL_PHYS.load(Ordering::Relaxed)
}

/// Pages that the starting takes below 1 MiB: code, and three page tables.
pub const STARTUP_PAGES: usize = 4;
