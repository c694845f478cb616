//! Hands all usable memory to the allocator.
//!
//! Runs once, on the boot CPU. The metadata array is carved from the first region that has room for it.
//!
//! Owns nothing afterwards. Never frees what the image, the page tables or a boot module lie in: the memory map says
//! so. Locks: the buddy's.

use super::buddy::{RESERVE, TOTAL, buddy};
use super::charge;
use super::pfn::{META_LEN, META_START, metadata};
use crate::base::PAGE_SIZE;
use crate::base::boot_info::{BootInfo, MemoryKind, MemoryRegion};
use crate::base::page::FRAMES_END;
use crate::mm::layout::{DIRECT_MAP_BASE, PAGE_SHIFT};
use alea_frames::FrameMeta;
use core::sync::atomic::{AtomicU16, Ordering};

/// Usable memory is metadata-covered up to the end of the highest region that may ever be given out.
fn counts(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::Usable | MemoryKind::Initramfs)
}

/// Makes the metadata array and frees every usable frame into the buddy.
pub(in crate::mm) fn init(info: &BootInfo) {
    let frames = info
        .memory_map
        .iter()
        .filter(|region| counts(region.kind))
        .map(|region| page_bounds(region).1 >> PAGE_SHIFT)
        .max()
        .unwrap_or(0) as usize;
    let accounts = frames * size_of::<FrameMeta>();
    let bytes = (accounts + frames * size_of::<AtomicU16>()).next_multiple_of(PAGE_SIZE) as u64;
    let home = info.memory_map.iter().find(|region| {
        region.kind == MemoryKind::Usable && page_bounds(region).1 >= page_bounds(region).0 + bytes
    });
    let Some(home) = home else { panic!("no memory for the metadata of {frames} frames") };
    let start = page_bounds(home).0;
    let array = DIRECT_MAP_BASE.wrapping_add(start) as *mut FrameMeta;
    // SAFETY: the region is usable RAM in the direct map that nobody has yet; zero bytes are valid metadata
    // and valid numbers of accounts.
    unsafe { core::ptr::write_bytes(array.cast::<u8>(), 0, bytes as usize) };
    META_START.store(array, Ordering::Relaxed);
    META_LEN.store(frames, Ordering::Relaxed);
    charge::init(array.cast::<u8>().wrapping_add(accounts).cast());
    super::cpu_cache::init_cpu();
    for region in info.memory_map.iter().filter(|region| region.kind == MemoryKind::Usable) {
        let (low, high) = page_bounds(region);
        let low = if region.start == home.start { low + bytes } else { low };
        add(low, high);
    }
    let total = TOTAL.load(Ordering::Relaxed);
    // 1/64 of memory, but at least 1 MiB and at most 16 MiB.
    RESERVE.store((total / 64).clamp(256, 4096), Ordering::Relaxed);
}

/// Gives a range of memory that has come out of use (the unpacked initramfs) to the allocator.
pub(in crate::mm) fn release(start: u64, len: u64) {
    let low = start.next_multiple_of(PAGE_SIZE as u64);
    let high = start.saturating_add(len) & !(PAGE_SIZE as u64 - 1);
    if high > low && (high >> PAGE_SHIFT) as usize <= META_LEN.load(Ordering::Relaxed) {
        add(low, high);
    }
}

fn add(low: u64, high: u64) {
    let (low, high) = ((low >> PAGE_SHIFT) as u32, (high >> PAGE_SHIFT) as u32);
    if high > low {
        buddy().add_range(metadata(), low, high);
        // Relaxed: a statistic.
        TOTAL.fetch_add(u64::from(high - low), Ordering::Relaxed);
    }
}

/// The region's whole pages.
fn page_bounds(region: &MemoryRegion) -> (u64, u64) {
    let low = region.start.as_u64().next_multiple_of(PAGE_SIZE as u64).min(FRAMES_END);
    let high = region.end().min(FRAMES_END) & !(PAGE_SIZE as u64 - 1);
    (low, high.max(low))
}
