//! What stands beside the CPUs: the firmware's tables, PCI, virtio devices on no bus, the clock chip, network cards, a TPM, power.
//!
//! It is below the traps and the memory manager, which need it to start: nothing here allocates or sleeps. Registers are
//! reached through `base`.

pub mod acpi;
pub mod confidential;
pub mod efi;
pub mod mmio;
pub mod nic;
pub mod pci;
pub mod power;
pub mod rtc;
pub mod smbios;
pub mod tpm;
pub mod unclaimed;
pub mod vm_id;
