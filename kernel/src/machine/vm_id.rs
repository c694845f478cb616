//! The virtual machine's generation id: 16 bytes of memory that the hypervisor changes when the machine
//! is restored or cloned, before any of its CPUs runs again.
//!
//! Owns the pointer to them, written once by `init`; without such a device it points to zeros that never
//! change, so that whoever compares needs no branch. The memory is never written to but by the hypervisor.
//! Locks: none.
//!
//! Reference: "Virtual Machine Generation ID", Microsoft, 2012; QEMU, docs/specs/vmgenid.rst.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};

use x86_64::PhysAddr;

use super::acpi;
use crate::base::kmap::{self, Cache};
use crate::sync::Once;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmId(pub [u64; 2]);

static NONE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static PLACE: AtomicPtr<[AtomicU64; 2]> = AtomicPtr::new((&raw const NONE).cast_mut());
static PHYS: Once<PhysAddr> = Once::new();

/// Finds the device; whether there is one. Called once, after ACPI's tables were read.
pub fn init() -> bool {
    let Some(phys) = find() else { return false };
    let Some(place) = kmap::map(phys.as_u64(), size_of::<VmId>(), Cache::WriteBack) else {
        return false;
    };
    PHYS.call_once(|| phys);
    // Relaxed: stored by the boot CPU before another one runs; the memory behind it was not ours to
    // initialise.
    PLACE.store(ptr::with_exposed_provenance_mut(place as usize), Ordering::Relaxed);
    true
}

fn find() -> Option<PhysAddr> {
    let address = alea_aml::address(&acpi::get()?.byte_code, b"VM_Gen_Counter", *b"ADDR")?;
    // The interface promises this much, and it keeps the 16 bytes inside one page.
    (address != 0 && address.is_multiple_of(8) && address % 4096 <= 4096 - 16)
        .then(|| PhysAddr::try_new(address).ok())?
}

/// Where the id lies, for those who show it to user space.
pub fn place() -> Option<PhysAddr> {
    PHYS.get().copied()
}

/// The id now. What the program did before this call, it did before the id is read: a copy of the machine
/// made in between is noticed.
#[inline]
pub fn read() -> VmId {
    // A machine is stopped between two instructions, so the compiler's order is all that matters.
    compiler_fence(Ordering::SeqCst);
    // Relaxed: see `init`.
    let place = PLACE.load(Ordering::Relaxed);
    // SAFETY: `place` is the static above, or memory that was mapped for ever and only the hypervisor
    // writes to; atomics because it does.
    let [low, high] = unsafe { &*place };
    // Relaxed: no CPU of this machine runs while the hypervisor writes.
    VmId([low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)])
}
