//! Segments and the task state segment of each CPU.
//!
//! Owns the selector values (Linux's, since user code can read them), the descriptors and the
//! interrupt stacks of the boot CPU. Called once per CPU before its first trap. The descriptors lie on the CPU's entry page.
//!
//! Never changed while the CPU runs. Locks: none.

use core::arch::asm;
use core::cell::UnsafeCell;

use crate::base::isolation::{self, EntryPage};
use crate::base::percpu::{self, CpuBlock};

pub const KERNEL_CODE: u16 = 0x10;
pub const KERNEL_DATA: u16 = 0x18;
/// SYSRET takes user SS from this + 8 and user CS from this + 16. Its own descriptor is empty.
pub const USER_CODE_32: u16 = 0x23;
pub const USER_DATA: u16 = 0x2b;
pub const USER_CODE: u16 = 0x33;
const TSS: u16 = 0x40;
/// Programs read this segment's limit: the CPU's number (Linux's place for it).
const CPU_NUMBER: u16 = 0x78;
const ENTRIES: usize = 16;
const TABLE_LIMIT: u16 = ENTRIES as u16 * 8 - 1;

/// Interrupt stack table slots (1 to 7 in a gate; index + 1).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ist {
    None = 0,
    DoubleFault = 1,
    Nmi = 2,
    MachineCheck = 3,
    Debug = 4,
}

pub const IST_STACKS: usize = 4;
/// Bytes of one interrupt stack, without its guard page.
pub const IST_STACK_SIZE: usize = 16 * 1024 - 4096;
/// The boot CPU's first stack, which becomes its idle stack.
pub const BOOT_STACK_SIZE: usize = 64 * 1024 - 4096;

/// A stack whose lowest page is left unmapped by `page::build`.
#[repr(C, align(4096))]
pub struct GuardedStack<const N: usize> {
    guard: UnsafeCell<[u8; 4096]>,
    bytes: UnsafeCell<[u8; N]>,
}

// SAFETY: used by the CPU through its stack pointer only.
unsafe impl<const N: usize> Sync for GuardedStack<N> {}

impl<const N: usize> GuardedStack<N> {
    const fn new() -> Self {
        Self { guard: UnsafeCell::new([0; 4096]), bytes: UnsafeCell::new([0; N]) }
    }

    /// The highest address, where the stack starts.
    pub fn top(&self) -> u64 {
        self.bytes.get() as u64 + N as u64
    }

    /// The unmapped page below the stack.
    pub fn guard_page(&self) -> u64 {
        self.guard.get() as u64
    }
}

#[unsafe(link_section = ".bss.stacks")]
pub static BOOT_STACK: GuardedStack<BOOT_STACK_SIZE> = GuardedStack::new();
#[unsafe(link_section = ".bss.stacks")]
pub static BOOT_IST: [GuardedStack<IST_STACK_SIZE>; IST_STACKS] =
    [const { GuardedStack::new() }; IST_STACKS];

const DESCRIPTORS: [u64; ENTRIES] = [
    0,
    0,
    0x00af_9b00_0000_ffff, // kernel code
    0x00cf_9300_0000_ffff, // kernel data
    // No 32-bit user code: a program could jump to it, and SYSCALL from there enters the kernel
    // elsewhere. SYSRET to 64 bits loads no descriptor.
    0,
    0x00cf_f300_0000_ffff, // user data
    0x00af_fb00_0000_ffff, // user code
    0,
    0, // TSS, two words
    0,
    0,
    0,
    0,
    0,
    0,
    0, // the CPU's number
];

/// Loads the segments and the TSS of the calling CPU; `ist_tops` are its interrupt stacks.
///
/// Each interrupt stack keeps the CPU's block pointer in its topmost word, so that the paranoid
/// entries find their CPU without trusting GS.
pub(in crate::arch) fn init(ist_tops: [u64; IST_STACKS]) {
    let block = percpu::block();
    let tss = block.tss();
    // SAFETY: the block belongs to this CPU, which has no traps yet; the stack tops
    // are mapped stacks of at least 16 bytes.
    unsafe {
        for (slot, top) in ist_tops.into_iter().enumerate() {
            let word = top - 16;
            (word as *mut *const CpuBlock).write(block);
            (&raw mut (*tss).interrupt_stack_table[slot])
                .write_unaligned(x86_64::VirtAddr::new(word));
        }
    }
    choose_stacks();
}

/// Has the calling CPU enter by the stacks of its block, or, where tables are isolated, by those of its entry page: the entry code goes on
/// from there to the others, on the table that is active now. Nothing may come between this and the choice of that code.
pub(in crate::arch) fn choose_stacks() {
    isolation::name_active_table();
    let page = isolation::entry_page();
    let (first, interrupt) = EntryPage::tops(page);
    // SAFETY: the page belongs to this CPU. The stacks are mapped, in both tables; the TSS of the block was filled in by `init`.
    unsafe {
        let own = &raw mut (*page).tss;
        (&raw mut (*own).privilege_stack_table[0]).write_unaligned(x86_64::VirtAddr::new(first));
        for (slot, top) in interrupt.into_iter().enumerate() {
            (&raw mut (*own).interrupt_stack_table[slot])
                .write_unaligned(x86_64::VirtAddr::new(top));
        }
        let tss = if isolation::is_on() { own } else { percpu::block().tss() };
        let mut descriptors = DESCRIPTORS;
        let [low, high] = tss_descriptor(tss as u64);
        descriptors[usize::from(TSS) / 8] = low;
        descriptors[usize::from(TSS) / 8 + 1] = high;
        descriptors[usize::from(CPU_NUMBER) / 8] = number_descriptor(percpu::cpu_id() as u64);
        let table = &raw mut (*page).gdt;
        table.write(descriptors);
        load(table as u64, TABLE_LIMIT);
    }
}

fn tss_descriptor(base: u64) -> [u64; 2] {
    // No I/O bitmap: the limit ends where it would start.
    let limit = 103;
    let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    [low, base >> 32]
}

/// A data segment that user mode may name, in bytes: its limit is `number`, the node above it 0.
fn number_descriptor(number: u64) -> u64 {
    0x0040_f100_0000_0000 | number & 0xfff
}

/// # Safety
/// `base` is this CPU's filled-in table, with the selectors of this file.
unsafe fn load(base: u64, limit: u16) {
    let pointer =
        x86_64::structures::DescriptorTablePointer { limit, base: x86_64::VirtAddr::new(base) };
    // SAFETY: the descriptors are flat; reloading FS and GS with null leaves GS base to be restored
    // from the block, which is done right here before anything uses it.
    unsafe {
        let gs_base = crate::base::msr::read(crate::base::msr::GS_BASE);
        asm!(
            "lgdt [{pointer}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ds, {zero:e}",
            "mov es, {zero:e}",
            "mov fs, {zero:e}",
            "mov gs, {zero:e}",
            "mov ss, {data:e}",
            // No local table: a selector that names one is a general protection fault.
            "lldt {zero:x}",
            "ltr {tss:x}",
            pointer = in(reg) &raw const pointer,
            code = const KERNEL_CODE,
            data = in(reg) u32::from(KERNEL_DATA),
            zero = in(reg) 0u32,
            tss = in(reg) TSS,
            scratch = lateout(reg) _,
        );
        crate::base::msr::write(crate::base::msr::GS_BASE, gs_base);
    }
}
