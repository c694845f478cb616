//! The kernel's own page tables and the final memory map.
//!
//! Owns the kernel half of the address space: the direct map of all memory (2 MiB pages, 1 GiB
//! where possible, writable, never executable), the image with one protection per section and an
//! unmapped page below each boot stack, and empty third-level tables for the areas that are filled
//! later, so that the upper half of the top-level table never changes after boot.
//!
//! Of the image, the direct map has code and constants read-only too: there is no address at which they can
//! be written.
//!
//! Never changed after boot but by `kmap` and by `mm::kernel`, each in an area of its own. Locks: none: one CPU runs.

use crate::base::boot_info;
use crate::base::image::image_start;
use x86_64::PhysAddr;

use super::handover::Handover;
use crate::arch::entry::gdt;
use crate::base::areas::{self, DIRECT_MAP_BASE};
use crate::base::boot_info::{MemoryKind, MemoryMap, MemoryRegion};
use crate::base::page::{LARGE_PAGE_SIZE, PTE_ADDRESS, PteFlags, nx};
use crate::base::{PAGE_SIZE, cpu, kmap, memparse::memparse};
use crate::cmdline::{self, words};

/// Linked addresses of the image minus this are physical addresses under PVH.
pub const KERNEL_OFFSET: u64 = 0xffff_ffff_8000_0000;

const PAGE: u64 = PAGE_SIZE as u64;
const LARGE: u64 = LARGE_PAGE_SIZE as u64;
const HUGE: u64 = 1 << 30;

unsafe extern "C" {
    static __kernel_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __kernel_end: u8;
    static __boot_start: u8;
    static __boot_end: u8;
    static __boot_stacks_start: u8;
    static __boot_stacks_end: u8;
}

/// Where code and constants lie in physical memory.
pub fn constant_range() -> core::ops::Range<u64> {
    let start = crate::base::boot_info::kernel_phys();
    start..start + (&raw const __rodata_end as u64 - image_start())
}

/// Takes page-table pages from the map, lowest suitable region first.
struct Builder {
    phys_offset: u64,
    next: u64,
    end: u64,
    root: u64,
}

/// Builds the tables; marks in the map what is taken by the image, the initramfs and the tables.
///
/// # Safety
/// The handover is true, and nothing lives in usable memory but what it names.
pub(super) unsafe fn build(handover: &mut Handover) -> PhysAddr {
    let map = &mut handover.info.memory_map;
    normalise(map);
    let image_len = &raw const __kernel_end as u64 - image_start();
    let given_back = boot_only();
    let phys = |virt: u64| virt - image_start() + handover.kernel_phys;
    carve(map, phys(given_back.start), given_back.end - given_back.start, MemoryKind::Loader);
    carve(
        map,
        handover.kernel_phys,
        phys(given_back.start) - handover.kernel_phys,
        MemoryKind::Kernel,
    );
    carve(
        map,
        phys(given_back.end),
        image_start() + image_len - given_back.end,
        MemoryKind::Kernel,
    );
    handover.info.startup = startup_pages(map);
    // The first page is never handed out: a zero physical address means "none" too often, and the
    // rest of the first MiB belongs to the firmware's habits and to the starting of other CPUs.
    carve(map, 0, 1 << 20, MemoryKind::Reserved);
    handover.info.initramfs = handover.info.initramfs.or_else(|| named_initramfs(map));
    if let Some((start, len)) = handover.info.initramfs {
        carve(map, start.as_u64(), len, MemoryKind::Initramfs);
    }
    let needed = table_pages(map) * PAGE;
    let pool = map
        .iter()
        .find(|region| {
            region.kind == MemoryKind::Usable && region.len >= needed && region.end() <= 1 << 32
        })
        .map(|region| region.start.as_u64());
    let Some(pool) = pool else { panic!("no room for {needed} bytes of page tables below 4 GiB") };
    let phys_offset = handover.phys_offset;
    let mut builder = Builder { phys_offset, next: pool, end: pool + needed, root: 0 };
    builder.root = builder.allocate();
    builder.direct_map(map, handover.kernel_phys);
    builder.image(handover.kernel_phys);
    for base in [areas::vmalloc(), kmap::MMIO_BASE] {
        builder.entry(base, 2);
    }
    // SAFETY: the table behind the MMIO area was just made and is reachable through the old tables.
    unsafe { kmap::init(builder.entry(kmap::MMIO_BASE, 2), handover.kernel_phys) };
    let used = builder.next - pool;
    carve(map, pool, used, MemoryKind::PageTables);
    release_loader(map);
    PhysAddr::new_truncate(builder.root)
}

/// Where `initrdmem=` says that the initramfs lies, if that is usable memory.
fn named_initramfs(map: &MemoryMap) -> Option<(PhysAddr, u64)> {
    let (start, len) = cmdline::value(words::INITRDMEM)?.split_once(',')?;
    let (start, len) = (memparse(start)?, memparse(len).filter(|len| *len > 0)?);
    let end = start.checked_add(len)?;
    let holds = |region: &MemoryRegion| region.start.as_u64() <= start && end <= region.end();
    let is_usable = |region: &&MemoryRegion| region.kind == MemoryKind::Usable;
    let found = map.iter().filter(is_usable).any(holds);
    found.then_some((PhysAddr::new_truncate(start), len))
}

/// Usable pages below 1 MiB where other CPUs can start; not the lowest ones, where a BIOS has its data.
fn startup_pages(map: &MemoryMap) -> Option<PhysAddr> {
    const LOWEST: u64 = 0x8000;
    const END: u64 = 0x9_0000;
    map.iter().filter(|region| region.kind == MemoryKind::Usable).find_map(|region| {
        let start = region.start.as_u64().max(LOWEST);
        let end = start + boot_info::STARTUP_PAGES as u64 * PAGE;
        (end <= region.end().min(END)).then_some(PhysAddr::new_truncate(start))
    })
}

/// An upper bound of the table pages that `build` takes.
fn table_pages(map: &MemoryMap) -> u64 {
    let mut pages = 64;
    // The blocks of 2 MiB around the image's constants are mapped page by page.
    pages += (&raw const __rodata_end as u64 - image_start()) / LARGE + 2;
    for region in map.iter().filter(|region| is_memory(region.kind)) {
        pages += region.len / HUGE + 2;
        pages += (region.len / HUGE / 512) + 1;
    }
    pages
}

/// Sorts, trims to pages, and lets what is not usable win where entries overlap.
fn normalise(map: &mut MemoryMap) {
    let old = core::mem::take(map);
    let (usable, other): (MemoryMap, MemoryMap) =
        old.into_iter().filter(|r| r.len > 0).partition(|r| is_free(r.kind));
    for region in usable {
        let start = region.start.as_u64().next_multiple_of(PAGE);
        let end = region.end() & !(PAGE - 1);
        if start < end {
            let start = PhysAddr::new_truncate(start);
            let len = end - start.as_u64();
            let _ = map.try_push(MemoryRegion { start, len, kind: region.kind });
        }
    }
    for region in other {
        carve(map, region.start.as_u64(), region.len, region.kind);
        if !map.iter().any(|r| r.start == region.start && r.kind == region.kind) {
            let _ = map.try_push(region);
        }
    }
    map.sort_unstable_by_key(|region| region.start);
}

fn is_free(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::Usable | MemoryKind::Loader)
}

/// The loader's memory becomes usable; neighbours are joined.
fn release_loader(map: &mut MemoryMap) {
    for mut region in core::mem::take(map) {
        if region.kind == MemoryKind::Loader {
            region.kind = MemoryKind::Usable;
        }
        match map.last_mut() {
            Some(last) if last.kind == region.kind && last.end() == region.start.as_u64() => {
                last.len += region.len;
            }
            _ => map.push(region),
        }
    }
}

/// Marks `start..start+len`, rounded out to pages, where it lies in free regions.
fn carve(map: &mut MemoryMap, start: u64, len: u64, kind: MemoryKind) {
    let (start, end) = (start & !(PAGE - 1), (start + len).next_multiple_of(PAGE));
    let mut index = 0;
    while index < map.len() {
        let region = map[index];
        let (from, to) = (region.start.as_u64().max(start), region.end().min(end));
        if !is_free(region.kind) || from >= to {
            index += 1;
            continue;
        }
        let piece = |from: u64, to: u64, kind| MemoryRegion {
            start: PhysAddr::new_truncate(from),
            len: to - from,
            kind,
        };
        map.remove(index);
        for part in [
            piece(region.start.as_u64(), from, region.kind),
            piece(from, to, kind),
            piece(to, region.end(), region.kind),
        ] {
            if part.len > 0 && map.try_insert(index, part).is_ok() {
                index += 1;
            }
        }
    }
}

/// What the direct map covers: memory, also memory with tables of the firmware in it.
fn is_memory(kind: MemoryKind) -> bool {
    !matches!(kind, MemoryKind::Reserved | MemoryKind::Bad)
}

impl Builder {
    fn allocate(&mut self) -> u64 {
        assert!(self.next < self.end, "ran out of memory for page tables");
        let page = self.next;
        self.next += PAGE;
        // SAFETY: the page lies in usable memory that only this builder takes from.
        unsafe { ((page + self.phys_offset) as *mut [u64; 512]).write([0; 512]) };
        page
    }

    /// The entry for `virt` at `level` (1: 4 KiB pages, 2: 2 MiB, 3: 1 GiB), making what lies above.
    /// For level 2 and 3 the table of that level exists afterwards.
    fn entry(&mut self, virt: u64, level: u32) -> *mut u64 {
        let mut table = self.root;
        let mut at = 4;
        loop {
            let index = virt >> (12 + 9 * (at - 1)) & 511;
            let entry = ((table + self.phys_offset) as *mut u64).wrapping_add(index as usize);
            if at == level {
                return entry;
            }
            // SAFETY: the table is one of ours and the index is below 512.
            table = unsafe {
                if *entry == 0 {
                    *entry = self.allocate() | (PteFlags::PRESENT | PteFlags::WRITABLE).bits();
                }
                assert!(*entry & PteFlags::LARGE.bits() == 0, "{virt:#x} is mapped twice");
                *entry & PTE_ADDRESS
            };
            at -= 1;
        }
    }

    fn map(&mut self, virt: u64, phys: u64, level: u32, flags: PteFlags) {
        let large = if level > 1 { PteFlags::LARGE } else { PteFlags::empty() };
        let entry = self.entry(virt, level);
        // SAFETY: `entry` points into one of our tables.
        unsafe { *entry = phys | (flags | large | PteFlags::PRESENT | PteFlags::GLOBAL).bits() };
    }

    fn direct_map(&mut self, map: &MemoryMap, image: u64) {
        let flags = PteFlags::WRITABLE | PteFlags::ACCESSED | PteFlags::DIRTY | nx();
        let constant = image..image + (&raw const __rodata_end as u64 - image_start());
        let is_mixed = |at: u64, len: u64| at < constant.end && constant.start < at + len;
        let huge = cpu::features().pages_1g;
        let mut done = 0;
        // Regions that touch are one run: protections do not differ, and large pages may span them.
        let mut regions = map.iter().filter(|region| is_memory(region.kind)).peekable();
        while let Some(first) = regions.next() {
            let mut end = first.end();
            while let Some(next) = regions.next_if(|next| next.start.as_u64() <= end) {
                end = end.max(next.end());
            }
            // Rounded out to 2 MiB: what else lies in such a block is firmware-owned memory.
            let mut at = (first.start.as_u64() & !(LARGE - 1)).max(done);
            let end = end.next_multiple_of(LARGE);
            while at < end {
                if huge && at % HUGE == 0 && end - at >= HUGE && !is_mixed(at, HUGE) {
                    self.map(DIRECT_MAP_BASE + at, at, 3, flags);
                    at += HUGE;
                } else if is_mixed(at, LARGE) {
                    for page in (at..at + LARGE).step_by(PAGE_SIZE) {
                        let fixed = if constant.contains(&page) {
                            PteFlags::WRITABLE | PteFlags::DIRTY
                        } else {
                            PteFlags::empty()
                        };
                        self.map(DIRECT_MAP_BASE + page, page, 1, flags - fixed);
                    }
                    at += LARGE;
                } else {
                    self.map(DIRECT_MAP_BASE + at, at, 2, flags);
                    at += LARGE;
                }
            }
            done = at.max(done);
        }
    }

    fn image(&mut self, phys: u64) {
        let seen = PteFlags::ACCESSED | PteFlags::DIRTY;
        let text_end = &raw const __text_end as u64;
        let rodata_end = &raw const __rodata_end as u64;
        let end = &raw const __kernel_end as u64;
        let mut at = image_start();
        while at < end {
            let flags = if at < text_end {
                PteFlags::ACCESSED
            } else if at < rodata_end {
                PteFlags::ACCESSED | nx()
            } else {
                seen | PteFlags::WRITABLE | nx()
            };
            if !is_guard(at) && !boot_only().contains(&at) {
                self.map(at, phys + (at - image_start()), 1, flags);
            }
            at += PAGE;
        }
    }
}

/// What of the image nothing uses once these tables are active: it is not mapped, and its memory is as free as the loader's.
fn boot_only() -> core::ops::Range<u64> {
    &raw const __boot_start as u64..&raw const __boot_end as u64
}

fn is_guard(page: u64) -> bool {
    let stacks = &raw const __boot_stacks_start as u64..&raw const __boot_stacks_end as u64;
    stacks.contains(&page)
        && (gdt::BOOT_STACK.guard_page() == page
            || gdt::BOOT_IST.iter().any(|stack| stack.guard_page() == page))
}
