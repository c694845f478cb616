//! Device memory and firmware tables: physical ranges mapped for the kernel on request.
//!
//! Owns the MMIO area, the first 4 MiB of the last GiB of the address space, whose tables are part of
//! the image. Never undoes a mapping. `map` is safe because it hands out raw addresses only;
//! using one is the caller's `unsafe`. Locks: none; the
//! area's cursor is an atomic.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::image::image_start;
use super::page::{PAGE_SIZE, PteFlags, invlpg, nx};

/// Where the area starts.
pub const MMIO_BASE: u64 = 0xffff_ffff_c000_0000;
const TABLES: usize = 2;
const PAGES: usize = TABLES * 512;

#[repr(C, align(4096))]
struct Tables(UnsafeCell<[[u64; 512]; TABLES]>);
// SAFETY: each entry is written once, by the caller that claimed it through `NEXT`.
unsafe impl Sync for Tables {}

static TABLE: Tables = Tables(UnsafeCell::new([[0; 512]; TABLES]));
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// How a range is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Ordinary memory.
    WriteBack,
    /// Device registers.
    Uncached,
}

/// Hangs the area's tables into the kernel's page directory.
///
/// # Safety
/// `directory` is the entry for `MMIO_BASE` of the directory that becomes active, and the image
/// lies at `kernel_phys`.
pub unsafe fn init(directory: *mut u64, kernel_phys: u64) {
    for index in 0..TABLES {
        let table = TABLE.0.get() as u64 + (index * PAGE_SIZE) as u64;
        let phys = table - image_start() + kernel_phys;
        let flags = (PteFlags::PRESENT | PteFlags::WRITABLE).bits();
        // SAFETY: the area starts at a GiB boundary, so the next entries are its own.
        unsafe { directory.add(index).write(phys | flags) };
    }
}

/// Maps `len` bytes at `phys`, readable and writable, and returns the address of the first; nothing
/// when the area is used up.
pub fn map(phys: u64, len: usize, cache: Cache) -> Option<u64> {
    let offset = (phys as usize) % PAGE_SIZE;
    let pages = offset.checked_add(len)?.div_ceil(PAGE_SIZE);
    // Relaxed: the claim itself is all that matters; the entries are written after it by one CPU.
    let first = NEXT
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            next.checked_add(pages).filter(|&end| end <= PAGES)
        })
        .ok()?;
    let cached = match cache {
        Cache::WriteBack => PteFlags::empty(),
        Cache::Uncached => PteFlags::NO_CACHE | PteFlags::WRITE_THROUGH,
    };
    let flags = PteFlags::PRESENT | PteFlags::WRITABLE | PteFlags::GLOBAL | cached | nx();
    for page in 0..pages {
        let index = first + page;
        let frame = (phys & !(PAGE_SIZE as u64 - 1)) + (page * PAGE_SIZE) as u64;
        // SAFETY: the entries `first..first + pages` were claimed above and are unused.
        unsafe { TABLE.0.get().cast::<u64>().add(index).write_volatile(frame | flags.bits()) };
        invlpg(MMIO_BASE + (index * PAGE_SIZE) as u64);
    }
    Some(MMIO_BASE + (first * PAGE_SIZE) as u64 + offset as u64)
}
