//! That the tables which programs run on, where they are isolated, show what the kernel's entries need and nothing else, and of the
//! program what the kernel's own table has.
//!
//! Owns nothing. Never looks at anything without isolated tables. Locks: none.

use super::spaces;
use crate::arch::entry::shown;
use crate::base::page::PteFlags;
use crate::base::{PAGE_SIZE, isolation, percpu};
use crate::mm::frames::root::kernel_root;
use crate::mm::frames::{self, Pfn, Root};
use crate::mm::kernel::shown::for_each_page;
use crate::mm::space::table::assert_agree;
use alloc::vec::Vec;

/// Walks the kernel's half of a new program's table: each page has to be one that `shown` lists, with that protection and nobody else's.
pub fn shows_what_it_must() {
    if !isolation::is_on() {
        return;
    }
    let all = shown::of_all().into_iter();
    let parts = all.chain((0..percpu::cpus_online()).filter_map(shown::of_cpu));
    let counted = PteFlags::WRITABLE | PteFlags::NO_EXECUTE;
    let mut listed: Vec<(u64, u64, PteFlags)> = Vec::new();
    for part in parts {
        for addr in part.each_page() {
            listed.push((addr, phys_of(addr), part.flags & counted));
        }
    }
    let root = frames::alloc_root(Root::Programs).expect("memory");
    let mut found = Vec::new();
    for_each_page(root, |addr, phys, flags| found.push((addr, phys, flags)));
    frames::free_root(root, Root::Programs);
    listed.sort_unstable_by_key(|page| page.0);
    found.sort_unstable_by_key(|page| page.0);
    for page in &found {
        assert!(listed.contains(page), "a program can read the kernel's page {page:x?}");
    }
    assert_eq!(found.len(), listed.len(), "an entry lacks a page: {found:x?} of {listed:x?}");
    log::info!("mm: programs' tables show {} pages of the kernel", found.len());
}

/// Where the kernel's own table has a page.
fn phys_of(addr: u64) -> u64 {
    let mut table = kernel_root();
    for level in (0..4u32).rev() {
        let index = (addr >> (12 + 9 * level)) as usize & 511;
        // SAFETY: a live table of the kernel's.
        let entry = unsafe { table.ptr().cast::<u64>().wrapping_add(index).read_volatile() };
        let flags = PteFlags::from_bits_truncate(entry);
        assert!(flags.contains(PteFlags::PRESENT), "{addr:#x} is not mapped");
        let phys = entry & crate::base::page::PTE_ADDRESS;
        if level == 0 || flags.contains(PteFlags::LARGE) {
            let within = (1u64 << (12 + 9 * level)) - 1;
            return phys & !within | addr & within & !(PAGE_SIZE as u64 - 1);
        }
        table = Pfn::of_phys(phys);
    }
    unreachable!("the last level is a page's")
}

/// The user's half of both tables: the same, but that in the kernel's nothing can be run; also once mappings have come and gone.
pub fn follows() {
    spaces::spread(|roots| {
        if !isolation::is_on() {
            return 0;
        }
        assert_agree(roots)
    });
}
