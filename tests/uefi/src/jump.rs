//! The page tables, the stack and the jump by which the kernel starts.
//!
//! Owns the memory of both, which the kernel takes when it has its own. Locks: none.

use core::arch::asm;

use uefi::boot::{self, AllocateType, MemoryType};

use crate::answers::DIRECT_MAP;
use crate::image::{Image, LARGE};

const PAGE: usize = 4096;
const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const IS_LARGE: u64 = 1 << 7;

/// What is mapped of physical memory.
const GIBS: usize = 4;
const STACK: usize = 64 << 10;

type Table = [u64; 512];

fn table() -> &'static mut Table {
    let page = boot::allocate_pages(AllocateType::AnyPages, MemoryType::LOADER_DATA, 1);
    // SAFETY: a page of our own, for which zeros are right.
    unsafe {
        let table = page.expect("a page").as_ptr().cast::<Table>();
        table.write([0; 512]);
        &mut *table
    }
}

/// Points `entry` of `upper` to `lower`.
fn link(upper: &mut Table, entry: usize, lower: &Table) {
    upper[entry] = lower.as_ptr() as u64 | PRESENT | WRITABLE;
}

/// Physical memory where it is and in the direct map, and the image where it was linked; the address of the first table.
pub fn tables(image: &Image) -> u64 {
    let index = |virt: u64, level: u32| (virt >> (12 + 9 * (level - 1)) & 511) as usize;
    let (root, low, high, of_image) = (table(), table(), table(), table());
    for gib in 0..GIBS {
        let directory = table();
        for (n, entry) in directory.iter_mut().enumerate() {
            *entry = ((gib * 512 + n) as u64 * LARGE) | PRESENT | WRITABLE | IS_LARGE;
        }
        link(low, gib, directory);
    }
    for n in 0..image.len / LARGE {
        of_image[index(image.virt + n * LARGE, 2)] =
            (image.phys + n * LARGE) | PRESENT | WRITABLE | IS_LARGE;
    }
    link(high, index(image.virt, 3), of_image);
    link(root, 0, low);
    link(root, index(DIRECT_MAP, 4), low);
    link(root, index(image.virt, 4), high);
    root.as_ptr() as u64
}

/// The end of the kernel's first stack, in the direct map.
pub fn stack() -> u64 {
    let pages = STACK / PAGE;
    let stack = boot::allocate_pages(AllocateType::AnyPages, MemoryType::LOADER_DATA, pages);
    DIRECT_MAP + stack.expect("a stack").as_ptr() as u64 + STACK as u64
}

/// Starts the kernel, as Limine does: interrupts off, pages that may not be executed, a return address of 0.
pub fn enter(tables: u64, stack: u64, entry: u64) -> ! {
    // SAFETY: the tables have this code where it is, the stack and the entry.
    unsafe {
        asm!(
            "cli",
            "mov ecx, 0xc0000080",
            "rdmsr",
            "or eax, 0x800",
            "wrmsr",
            "mov cr3, rdi",
            "mov rsp, rsi",
            "push 0",
            "jmp r8",
            in("rdi") tables,
            in("rsi") stack,
            in("r8") entry,
            options(noreturn),
        )
    }
}
