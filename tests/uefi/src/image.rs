//! The kernel's file, put into memory as its program headers say.
//!
//! Owns the memory that the image lies in, in one piece. The file is the build's own: what is wrong with it ends the loader.
//! Locks: none.

use core::slice;

use uefi::boot::{self, AllocateType, MemoryType};

/// What one entry of a page directory maps.
pub const LARGE: u64 = 2 << 20;
const PAGE: u64 = 4096;

/// A kernel in memory.
pub struct Image {
    pub phys: u64,
    /// Where it has to be seen.
    pub virt: u64,
    pub len: u64,
    pub entry: u64,
}

struct Segment {
    offset: u64,
    virt: u64,
    in_file: u64,
    in_memory: u64,
}

/// Copies the segments of an ELF file, whose first begins on 2 MiB.
pub fn load(file: &[u8]) -> Image {
    let segments = || segments(file);
    let virt = segments().map(|segment| segment.virt).min().expect("segments");
    let end = segments().map(|segment| segment.virt + segment.in_memory).max().expect("segments");
    assert!(virt.is_multiple_of(LARGE), "the image does not begin on 2 MiB");
    let len = (end - virt).next_multiple_of(LARGE);
    let pages = ((len + LARGE) / PAGE) as usize;
    let memory = boot::allocate_pages(AllocateType::AnyPages, MemoryType::LOADER_DATA, pages);
    let start = memory.expect("memory for the kernel").as_ptr();
    let phys = (start as u64).next_multiple_of(LARGE);
    // SAFETY: the memory is ours, `LARGE` longer than this, and nobody else's.
    let image = unsafe { slice::from_raw_parts_mut(phys as *mut u8, len as usize) };
    image.fill(0);
    for segment in segments() {
        let from = &file[segment.offset as usize..][..segment.in_file as usize];
        image[(segment.virt - virt) as usize..][..from.len()].copy_from_slice(from);
    }
    Image { phys, virt, len, entry: word(file, 24) }
}

fn segments(file: &[u8]) -> impl Iterator<Item = Segment> {
    const LOAD: u64 = 1;
    let (table, size) = (word(file, 32) as usize, half(file, 54));
    let headers = (0..half(file, 56)).map(move |n| &file[table + n * size..][..size]);
    headers.filter(|header| word(header, 0) & 0xffff_ffff == LOAD).map(|header| Segment {
        offset: word(header, 8),
        virt: word(header, 16),
        in_file: word(header, 32),
        in_memory: word(header, 40),
    })
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a whole ELF header"))
}

fn half(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(*bytes[at..].first_chunk().expect("a whole ELF header")))
}
