//! The kernel's image goes to an address that is drawn at boot (KASLR), before anything else runs; so does the vmalloc area.
//!
//! The linker writes down which words of the image hold an address of it (`--emit-relocs`), and `cargo xtask build` puts their
//! places into `.relocs`: two lists, of the words of four bytes and of those of eight. A list has the distance of each place from the one
//! before it in two bytes, and ends with a distance of 0; [`FAR`] goes on without a place. The first eight bytes of the section are
//! the length of both lists.
//!
//! Owns temporary tables by which the image is at the linked address and at the drawn one. They and the lists lie in the
//! part of the image that is given back (`__boot_start`), as nothing uses them after `tables::build`.
//!
//! Never panics: there is no console yet. Locks: none: nothing else runs.

use core::arch::asm;
use core::arch::x86_64::__cpuid;
use core::cell::UnsafeCell;
use core::slice;

use alea_random::splitmix64::SplitMix64;

use crate::base::page::{LARGE_PAGE_SIZE, PTE_ADDRESS, PteFlags};
use crate::base::{PAGE_SIZE, areas, cpu, image, tsc};
use crate::cmdline::words;

const PAGE: u64 = PAGE_SIZE as u64;
const LARGE: u64 = LARGE_PAGE_SIZE as u64;
const GIB: u64 = 1 << 30;
/// What one entry of the top-level table has below it.
const SLOT: u64 = 512 * GIB;

/// The image stays within this GiB, whose end is the MMIO area (`kmap`).
const AREA_END: u64 = 0xffff_ffff_c000_0000;

/// The mark for [`FAR_STEP`] bytes in which there is no place.
const FAR: u16 = u16::MAX;
const FAR_STEP: u64 = 0x8000;

/// Last-level tables; `linker.ld` sees to it that an image never needs more.
const LAST_LEVEL: usize = 16;

#[repr(C, align(4096))]
struct Tables {
    root: [u64; 512],
    third: [u64; 512],
    second: [u64; 512],
    last: [[u64; 512]; LAST_LEVEL],
}

struct Temporary(UnsafeCell<Tables>);
// SAFETY: used by `move_image` alone, which runs once.
unsafe impl Sync for Temporary {}

#[unsafe(link_section = ".bss.boot")]
static TABLES: Temporary = Temporary(UnsafeCell::new(Tables {
    root: [0; 512],
    third: [0; 512],
    second: [0; 512],
    last: [[0; 512]; LAST_LEVEL],
}));

unsafe extern "C" {
    static __kernel_end: u8;
    static __relocs_start: u8;
}

/// Moves the image, unless the command line has the word `nokaslr` or the image has no lists. When this returns the image is
/// at the linked address and at the new one, and every address in it is the new one: the caller jumps there.
///
/// # Safety
/// Called once, before anything is stored that holds an address of the image. The image is in one piece at `kernel_phys`,
/// and what there is of memory can be read at `phys_offset` and above.
pub(super) unsafe fn move_image(kernel_phys: u64, phys_offset: u64, cmdline: &[u8]) {
    let start = image::image_start();
    let len = &raw const __kernel_end as u64 - start;
    let lists = &raw const __relocs_start;
    // SAFETY: the section begins with this word, which `cargo xtask build` writes after the compiler has gone.
    let has_lists = unsafe { lists.cast::<u64>().read_volatile() } != 0;
    if cmdline.split(u8::is_ascii_whitespace).any(|word| words::NOKASLR.is(word)) {
        return;
    }
    let mut draws = SplitMix64::new(seed());
    // The tables of the linked image have large pages: the first 2 MiB behind it are the first that can be mapped anew.
    let new = one_of((start + len).next_multiple_of(LARGE), AREA_END - len, PAGE, &mut draws);
    place_vmalloc(&mut draws);
    if !has_lists {
        return;
    }
    // SAFETY: the caller's promises; the two places do not meet.
    unsafe {
        map(start, new, len, kernel_phys, phys_offset);
        relocate(lists.add(size_of::<u64>()).cast(), new, new - start);
    }
    image::moved_by(new - start);
}

/// Draws where the area of mappings that are made at run time begins.
fn place_vmalloc(draws: &mut SplitMix64) {
    /// Entries of the top-level table from `FIRST_VMALLOC` on, without the last two: the image has the last.
    const SLOTS: u64 = 107;
    /// What `mm` can need of the area, which has to lie below one entry.
    const MOST: u64 = 64 * GIB;
    let last = areas::FIRST_VMALLOC + (SLOTS - 1) * SLOT;
    let slot = one_of(areas::FIRST_VMALLOC, last, SLOT, draws);
    areas::place_vmalloc(one_of(slot, slot + SLOT - MOST, GIB, draws));
}

/// One of the addresses from `first` to `last` in steps of `step`, each as likely as another.
fn one_of(first: u64, last: u64, step: u64, draws: &mut SplitMix64) -> u64 {
    let steps = last.saturating_sub(first) / step + 1;
    let drawn = (u128::from(draws.next_u64()) * u128::from(steps)) >> 64;
    first + drawn as u64 * step
}

/// What RDRAND gives, if there is one, and the time. Of a machine without either nothing is to be had here.
fn seed() -> u64 {
    const HAS_RDRAND: u32 = 1 << 30;
    const TRIES: usize = 10;
    let mut seed = tsc::read();
    if __cpuid(1).ecx & HAS_RDRAND != 0 {
        // SAFETY: CPUID announces the instruction.
        let word = (0..TRIES).find_map(|_| unsafe { cpu::rdrand() });
        seed ^= word.unwrap_or(0);
    }
    seed
}

/// Makes tables active by which the image is at `new`, too.
///
/// # Safety
/// As `move_image`; `new` is a page of the GiB that the image is in, more than 2 MiB away from the image.
unsafe fn map(start: u64, new: u64, len: u64, kernel_phys: u64, phys_offset: u64) {
    let at = |phys: u64| (phys & PTE_ADDRESS).wrapping_add(phys_offset) as *const [u64; 512];
    let phys = |table: *const [u64; 512]| table as u64 - start + kernel_phys;
    let flags = (PteFlags::PRESENT | PteFlags::WRITABLE).bits();
    let index = |virt: u64, level: u32| (virt >> (12 + 9 * (level - 1)) & 511) as usize;
    let tables = TABLES.0.get();
    // SAFETY: the tables in use are memory, and ours are nobody else's. Every index is below 512, and `len` bytes at any page need at
    // most `LAST_LEVEL` tables.
    unsafe {
        let root: u64;
        asm!("mov {}, cr3", out(reg) root, options(nomem, nostack, preserves_flags));
        let tables = &mut *tables;
        tables.root = *at(root);
        tables.third = *at(tables.root[index(start, 4)]);
        tables.second = *at(tables.third[index(start, 3)]);
        tables.root[index(start, 4)] = phys(&raw const tables.third) | flags;
        tables.third[index(start, 3)] = phys(&raw const tables.second) | flags;
        let base = index(new, 2);
        for page in (0..len).step_by(PAGE_SIZE) {
            let large = index(new + page, 2);
            let table = &raw mut tables.last[large - base];
            tables.second[large] = phys(table) | flags;
            (*table)[index(new + page, 1)] = (kernel_phys + page) | flags;
        }
        let root = phys(&raw const tables.root);
        asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags));
    }
}

/// Adds `offset` to each word of the image at `image` that holds an address of it.
///
/// # Safety
/// `lists` are the lists; the image can be written to at `image`.
unsafe fn relocate(lists: *const u16, image: u64, offset: u64) {
    // SAFETY: each place is a word of the image, in which an address of the image lies; the rest stays as it is.
    unsafe {
        let second = each(lists, image, |place| {
            let word = place as *mut u32;
            word.write_unaligned(word.read_unaligned().wrapping_add(offset as u32));
        });
        each(second, image, |place| {
            let word = place as *mut u64;
            word.write_unaligned(word.read_unaligned().wrapping_add(offset));
        });
    }
}

/// Calls `patch` with each place of a list; what is behind the list.
///
/// # Safety
/// It is one of the lists.
unsafe fn each(mut list: *const u16, image: u64, mut patch: impl FnMut(u64)) -> *const u16 {
    let mut place = image;
    loop {
        // SAFETY: the caller's promise: the list has not ended yet.
        let distance = unsafe { list.read() };
        list = list.wrapping_add(1);
        match distance {
            0 => return list,
            FAR => place = place.wrapping_add(FAR_STEP),
            _ => {
                place = place.wrapping_add(u64::from(distance));
                patch(place);
            }
        }
    }
}

/// The bytes of a string that ends with a zero.
///
/// # Safety
/// There is such a string at `start`, and it stays.
pub(super) unsafe fn bytes_of(start: *const u8) -> &'static [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while start.add(len).read() != 0 {
            len += 1;
        }
        slice::from_raw_parts(start, len)
    }
}
