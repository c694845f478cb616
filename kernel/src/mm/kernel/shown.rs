//! The kernel's half of the tables that programs run on where tables are isolated (`base::isolation`): one for all of them.
//!
//! Owns those tables, which show what `arch::entry::shown` lists and nothing else, at the addresses at which the kernel's own table has it.
//! Never changes the top-level entries once made, since each program's table has a copy; nor anything below them, but that each CPU
//! adds its page before it runs a program. Locks: `Heap` for the tables, as `vmalloc`'s.

use crate::arch::entry::shown::{self, Part};
use crate::base::areas::DIRECT_MAP_BASE;
use crate::base::boot_info::kernel_phys;
use crate::base::image::image_start;
use crate::base::page::{LARGE_PAGE_SIZE, PTE_ADDRESS, PteFlags};
use crate::base::{isolation, percpu};
use crate::mm::frames::root::kernel_root;
use crate::mm::frames::{self, For, Pfn};
use crate::sync::{SpinLock, level};
use alea_frames::Owner;
use core::sync::atomic::{AtomicU64, Ordering};

static TABLES: SpinLock<(), level::Heap> = SpinLock::new(());

/// The tables, if there are to be any, with what all CPUs need and this one. On the boot CPU, before any address space is made.
pub(in crate::mm) fn init() {
    if !isolation::is_on() {
        return;
    }
    let root = table();
    // An entry for each that the kernel has, but for areas that are not shown: so none is added later, wherever a CPU's page may lie.
    let of_direct_map = (0..16).map(|n| DIRECT_MAP_BASE + n * TOP_SPAN);
    for addr in of_direct_map.chain([image_start()]) {
        let at = index(addr, 3);
        // SAFETY: the kernel's own table, and the new one, which is ours.
        unsafe {
            if entry(kernel_root(), at).read_volatile() != 0 {
                entry(root, at).write_volatile(table().phys() | ABOVE);
            }
        }
    }
    isolation::set_shown(root.phys());
    for part in shown::of_all() {
        show(&part);
    }
    init_cpu();
}

/// Shows what the calling CPU needs; before it runs a program.
pub(in crate::mm) fn init_cpu() {
    if isolation::is_on() {
        shown::of_cpu(percpu::cpu_id()).iter().for_each(show);
    }
}

/// The flags of entries that point to tables.
const ABOVE: u64 = PteFlags::PRESENT.union(PteFlags::WRITABLE).union(PteFlags::ACCESSED).bits();
/// Bytes that an entry of the top-level table maps: memory ends below 16 of them (`FRAMES_END`).
const TOP_SPAN: u64 = 1 << 39;

fn index(addr: u64, level: u32) -> usize {
    (addr >> (12 + 9 * level)) as usize & 511
}

fn entry(table: Pfn, index: usize) -> *mut u64 {
    table.ptr().cast::<u64>().wrapping_add(index)
}

/// At boot, as CPUs start: without memory for these there is no going on.
fn table() -> Pfn {
    let Some(table) = frames::alloc_zeroed(Owner::Kernel, For::Kernel) else {
        panic!("no memory for the tables that programs run on")
    };
    table
}

/// Where a page of the image or of the direct map lies in memory.
fn phys(addr: u64) -> u64 {
    if addr >= image_start() {
        addr - image_start() + kernel_phys()
    } else {
        addr - DIRECT_MAP_BASE
    }
}

fn show(part: &Part) {
    let _guard = TABLES.lock();
    for addr in part.each_page() {
        let mut at = Pfn::of_phys(isolation::shown());
        for level in (1..4).rev() {
            let slot = entry(at, index(addr, level));
            // SAFETY: a table of ours, which the lock keeps for us; CPUs write no more than the accessed bits, which are set.
            let mut value = unsafe { slot.read_volatile() };
            if value == 0 {
                assert!(level < 3, "{addr:#x} lies where nothing is shown");
                value = table().phys() | ABOVE;
                // SAFETY: as above.
                unsafe { slot.write_volatile(value) };
            }
            at = Pfn::of_phys(value & PTE_ADDRESS);
        }
        // SAFETY: as above; nothing was there.
        unsafe { entry(at, index(addr, 0)).write_volatile(phys(addr) | part.flags.bits()) };
    }
}

/// Every page that a top-level table maps of the kernel's half, with the flags that count at all levels together: `visit(addr, phys, flags)`.
/// For the self test.
pub(in crate::mm) fn for_each_page(root: Pfn, mut visit: impl FnMut(u64, u64, PteFlags)) {
    walk(root, 3, 0xffff << 48, ALLOWED, &mut visit);
}

const ALLOWED: PteFlags = PteFlags::WRITABLE.union(PteFlags::USER);

fn walk(
    table: Pfn,
    level: u32,
    base: u64,
    above: PteFlags,
    visit: &mut dyn FnMut(u64, u64, PteFlags),
) {
    // SAFETY: a live table, whose entries CPUs read and write as atomic words.
    let entries = unsafe { &*table.ptr().cast::<[AtomicU64; 512]>() };
    let first = if level == 3 { 256 } else { 0 };
    for (at, value) in entries.iter().enumerate().skip(first) {
        // Relaxed: as it is at the moment.
        let value = value.load(Ordering::Relaxed);
        let own = PteFlags::from_bits_truncate(value);
        if !own.contains(PteFlags::PRESENT) {
            continue;
        }
        let addr = base | (at as u64) << (12 + 9 * level);
        // What every level has to allow, and what one level forbids.
        let flags = above & own & ALLOWED | (above | own) & PteFlags::NO_EXECUTE;
        if level == 0 {
            visit(addr, value & PTE_ADDRESS, flags | own & PteFlags::GLOBAL);
        } else if own.contains(PteFlags::LARGE) {
            // Not one of these is ever shown: the caller refuses it by its first page.
            visit(addr, value & PTE_ADDRESS & !(LARGE_PAGE_SIZE as u64 - 1), flags);
        } else {
            walk(Pfn::of_phys(value & PTE_ADDRESS), level - 1, addr, flags, visit);
        }
    }
}
