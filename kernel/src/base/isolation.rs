//! Isolated page tables (Meltdown): user mode runs on a second top-level table, of which the kernel's half maps what entries and exits need and
//! no more.
//!
//! The two tables of an address space may lie anywhere. Each CPU keeps where those of the space lie that it has loaded: the kernel's on its
//! [`EntryPage`], where an entry finds it, and the program's in its block, for exits. Each write of CR3 has the CPU forget what it knows of
//! either table; PCIDs, with which it would keep that, are not used.
//!
//! Owns whether that is so, and for each CPU the entry page and those two words, which change with what is loaded. The page is the only
//! memory of the kernel besides the entry code and the table of interrupts that the second table maps: so a program may be taken to read
//! all of it. Never puts a secret there, nor what a program left there before another one that runs on this CPU. Locks: none.

use super::page::{self, PAGE_SIZE};
use super::percpu;
use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use x86_64::PhysAddr;
use x86_64::structures::tss::TaskStateSegment;

/// Relaxed: written before a second CPU runs.
static ON: AtomicBool = AtomicBool::new(false);
/// The physical address of a top-level table that has the kernel's half of every user's table. Relaxed: written once, before
/// any table is made by it.
static SHOWN: AtomicU64 = AtomicU64::new(0);

/// Words of the stack of entries from user mode: the CPU's frame, a second one of an IRET that it refuses, and two registers of each.
const STACK: usize = 32;
/// Words of the stacks of NMI, #DF, #MC and #DB, on which an entry stays for a few instructions.
const INTERRUPT: usize = 16;
const INTERRUPTS: usize = 4;

/// What an entry needs before it is on the kernel's table, and an exit behind it. Lies right in front of the CPU's block, so that GS reaches it.
///
/// The stacks come first: one that overflows meets a page that the user's table does not map.
#[repr(C, align(4096))]
pub struct EntryPage {
    stack: [u64; STACK],
    interrupt: [[u64; INTERRUPT]; INTERRUPTS],
    /// One register, on the way from SYSCALL and to SYSRET.
    scratch: u64,
    /// The descriptors, also where tables are not isolated.
    pub gdt: [u64; 16],
    /// What CR3 is in the kernel: what has been loaded last.
    kernel_table: u64,
    _pad: u32,
    /// The CPU's where tables are isolated; otherwise it has the block's.
    pub tss: TaskStateSegment,
}

/// The page, as the linker lays it in front of the pattern of each CPU's section.
#[repr(transparent)]
struct Shown(UnsafeCell<EntryPage>);
// SAFETY: a pattern that nobody uses; each CPU touches its own copy.
unsafe impl Sync for Shown {}

#[unsafe(link_section = ".percpu.entry")]
#[used]
static PAGE_PATTERN: Shown = Shown(UnsafeCell::new(EntryPage {
    stack: [0; STACK],
    interrupt: [[0; INTERRUPT]; INTERRUPTS],
    scratch: 0,
    gdt: [0; 16],
    kernel_table: 0,
    _pad: 0,
    tss: TaskStateSegment::new(),
}));

/// From GS, which points to the byte behind the page.
const fn from_gs(offset: usize) -> i32 {
    offset as i32 - PAGE_SIZE as i32
}

pub const SCRATCH: i32 = from_gs(offset_of!(EntryPage, scratch));
pub const KERNEL_TABLE: i32 = from_gs(offset_of!(EntryPage, kernel_table));
/// RSP0: the top of the stack of entries.
pub const ENTRY_STACK: i32 = from_gs(offset_of!(EntryPage, tss) + 4);
/// How an interrupt stack is found by an address on it: this mask and a shift make eight times its number, plus `INTERRUPT_FIRST`.
pub const INTERRUPT_MASK: u32 = (PAGE_SIZE - INTERRUPT * 8) as u32;
pub const INTERRUPT_SHIFT: u32 = (INTERRUPT as u32).trailing_zeros();
pub const INTERRUPT_FIRST: usize = offset_of!(EntryPage, interrupt) / INTERRUPT;

const _: () = {
    assert!(size_of::<EntryPage>() == PAGE_SIZE);
    assert!(offset_of!(EntryPage, stack) == 0 && STACK.is_multiple_of(INTERRUPT));
    assert!((offset_of!(EntryPage, tss) + 4).is_multiple_of(8), "RSP0 must be naturally aligned");
};

impl EntryPage {
    /// The stacks' topmost addresses: of entries from user mode, and of one of the interrupt stacks.
    pub fn tops(this: *const Self) -> (u64, [u64; INTERRUPTS]) {
        let start = this as u64;
        let first = start + (STACK * 8) as u64;
        (first, core::array::from_fn(|n| first + ((n + 1) * INTERRUPT * 8) as u64))
    }
}

/// The page of this CPU.
pub fn entry_page() -> *mut EntryPage {
    (core::ptr::from_ref(percpu::block()) as *mut EntryPage).wrapping_sub(1)
}

/// Whether tables are isolated.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Decides; once, before any table is made and before another CPU runs.
pub fn choose(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// Has the calling CPU keep no translation beyond a change of tables.
pub fn init_cpu() {
    const PGE: u64 = 1 << 7;
    if !is_on() {
        return;
    }
    // SAFETY: without PGE no entry is global, whatever it says of itself; changing the bit flushes all.
    unsafe {
        let cr4: u64;
        asm!("mov {}, cr4", out(reg) cr4, options(nomem, nostack, preserves_flags));
        asm!("mov cr4, {}", in(reg) cr4 & !PGE, options(nostack, preserves_flags));
    }
}

/// Remembers a table that has what users' tables have of the kernel.
pub fn set_shown(table: u64) {
    SHOWN.store(table, Ordering::Relaxed);
}

/// That table's physical address; 0 if there is none.
pub fn shown() -> u64 {
    SHOWN.load(Ordering::Relaxed)
}

/// The top-level tables of an address space.
#[derive(Clone, Copy)]
pub struct Roots {
    /// The kernel's, which has both halves.
    pub kernels: PhysAddr,
    /// The program's; the same where tables are not isolated.
    pub programs: PhysAddr,
}

/// Names the tables between which the calling CPU's entries and exits change from now on. An NMI that comes before CR3 is written goes to
/// the new table of the kernel, and does not come back to the old one: either is whole.
fn name_tables(kernels: u64, programs: u64) {
    // SAFETY: GS is valid as in `percpu::cpu_id`; the words are read by entries and exits, and nowhere else.
    unsafe {
        asm!(
            "mov gs:[{0}], {2}",
            "mov gs:[{1}], {3}",
            const percpu::USER_TABLE, const KERNEL_TABLE, in(reg) programs, in(reg) kernels,
            options(nostack, preserves_flags),
        );
    }
}

/// The active table is the kernel's own. For a CPU that begins to enter by the stacks of its entry page.
pub fn name_active_table() {
    name_tables(page::read_cr3().as_u64(), 0);
}

/// Activates the tables of an address space: the kernel's now, and the program's on the way to user mode.
///
/// # Safety
/// As [`page::write_cr3`], for the kernel's table. Where tables are isolated, the other one has the same of the user's half, and `shown`
/// of the kernel's.
#[inline]
pub unsafe fn load_space(roots: &Roots) {
    if is_on() {
        begin(roots);
    }
    // SAFETY: the caller vouches for the table.
    unsafe { page::write_cr3(roots.kernels) };
}

/// Activates the kernel's own table, with which nobody goes to user mode.
///
/// # Safety
/// As [`page::write_cr3`].
#[inline]
pub unsafe fn load_kernel(table: PhysAddr) {
    if is_on() {
        end(table);
    }
    // SAFETY: the caller vouches for the table.
    unsafe { page::write_cr3(table) };
}

/// An address space is about to be loaded. What other programs left on the page is gone.
#[cold]
fn begin(roots: &Roots) {
    debug_assert!(roots.kernels != roots.programs, "a program would run on the kernel's table");
    name_tables(roots.kernels.as_u64(), roots.programs.as_u64());
    forget_others();
}

/// The kernel's own table is about to be loaded: nobody goes to user mode from there.
#[cold]
fn end(table: PhysAddr) {
    name_tables(table.as_u64(), 0);
}

/// Takes what entries and exits left on the page away. Not for who is on one of its stacks.
fn forget_others() {
    let words = entry_page().cast::<u64>();
    for word in 0..offset_of!(EntryPage, gdt) / 8 {
        // SAFETY: this CPU's page, whose stacks are in use only by entries and exits: neither is under way here, and an NMI that
        // comes between has left the page when it returns.
        unsafe { words.wrapping_add(word).write_volatile(0) };
    }
}
