//! The seed that a boot loader leaves in memory for the kernel, where UEFI's configuration table says.
//!
//! Owns nothing. The seed is lent once, because who reads it wipes it. Never believes that what the table names is there: only
//! memory that is nobody's to use. No locks.

use core::slice;
use core::sync::atomic::{AtomicBool, Ordering};

use alea_random::handed;

use crate::base::boot_info::{BootInfo, MemoryKind};
use crate::base::kmap::{self, Cache};

/// Hands the seed to `read`, if there is one and it was not lent before.
pub fn with_seed(info: &BootInfo, read: impl FnOnce(&mut [u8])) {
    static LENT: AtomicBool = AtomicBool::new(false);
    // Relaxed: who comes second touches nothing.
    if LENT.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some(seed) = seed(info) {
        read(seed);
    }
}

fn seed(info: &BootInfo) -> Option<&'static mut [u8]> {
    const HEADER: usize = size_of::<u32>();
    let start = info.efi_seed?.as_u64();
    let most = HEADER + handed::LONGEST;
    let place = info.memory_map.iter().find(|region| {
        (region.start.as_u64()..region.end()).contains(&start)
            && matches!(region.kind, MemoryKind::AcpiReclaimable | MemoryKind::Reserved)
    })?;
    let room = most.min((place.end() - start) as usize);
    let at = kmap::map(start, room, Cache::WriteBack)?;
    // SAFETY: mapped for ever just now, readable and writable; memory of the firmware's, of which nobody in this kernel makes
    // another reference: `with_seed` comes here once.
    let bytes = unsafe { slice::from_raw_parts_mut(at as *mut u8, room) };
    let (header, seed) = bytes.split_first_chunk_mut::<HEADER>()?;
    seed.get_mut(..handed::efi_seed_len(*header)?)
}
