//! From the boot protocols to `kernel_main`.
//!
//! Owns the one `BootInfo` type that the rest of the kernel sees; nothing above this folder knows
//! by which protocol it was started. Runs once, on the boot CPU, with interrupts off.
//!
//! Never returns to the loader. Locks: none: nothing else runs.

use super::handover::Handover;
use super::{sites, speculation, tables};
use crate::base::boot_info::{BootInfo, KERNEL_PHYS};
use core::sync::atomic::Ordering;

use crate::arch::entry::{extable, gdt, idt, syscall};
use crate::arch::task::fpu;
use crate::base::{console, cpu, isolation, page, percpu};
use crate::cmdline;

/// The longest command line that is kept.
pub const MAX_CMDLINE: usize = 4096;

struct Cmdline(core::cell::UnsafeCell<[u8; MAX_CMDLINE]>);
// SAFETY: written once by `keep_cmdline`, before anything reads it.
unsafe impl Sync for Cmdline {}
static CMDLINE: Cmdline = Cmdline(core::cell::UnsafeCell::new([0; MAX_CMDLINE]));

/// Copies the command line into kernel memory; bytes that are not ASCII become `?`.
pub(super) fn keep_cmdline(bytes: impl Iterator<Item = u8>) -> &'static str {
    // SAFETY: called once, by the one entry that ran.
    let buffer: &'static mut [u8; MAX_CMDLINE] = unsafe { &mut *CMDLINE.0.get() };
    let mut len = 0;
    for (slot, byte) in buffer.iter_mut().zip(bytes) {
        *slot = if byte.is_ascii() { byte } else { b'?' };
        len += 1;
    }
    core::str::from_utf8(&buffer[..len]).unwrap_or("").trim()
}

/// The first thing each entry does: GS, early console, CPU features, traps.
pub(super) fn early_init() {
    percpu::init_boot_cpu();
    console::init();
    cpu::init();
    sites::choose_by_features();
    gdt::init(gdt::BOOT_IST.each_ref().map(gdt::GuardedStack::top));
    idt::init();
    syscall::init();
    extable::check();
}

struct Kept(core::cell::UnsafeCell<Option<BootInfo>>);
// SAFETY: written once and taken once, by the boot CPU.
unsafe impl Sync for Kept {}
static KEPT: Kept = Kept(core::cell::UnsafeCell::new(None));

/// Builds and activates the kernel's page tables, then goes on in `kernel_main` on the guarded
/// boot stack.
pub(super) fn enter_kernel(mut handover: Handover) -> ! {
    // Relaxed: see `kernel_phys`.
    KERNEL_PHYS.store(handover.kernel_phys, Ordering::Relaxed);
    cmdline::init(handover.info.cmdline);
    speculation::choose();
    // SAFETY: the handover describes the machine as the loader left it.
    let root = unsafe { tables::build(&mut handover) };
    fpu::init();
    // SAFETY: the tables map the image, both stacks and the direct map; `KEPT` is ours alone.
    unsafe {
        *KEPT.0.get() = Some(handover.info);
        core::arch::asm!(
            // Limine's stack is not mapped in the new tables.
            "mov rsp, {stack}",
            "mov cr3, {root}",
            "xor ebp, ebp",
            "push rbp",
            "push rbp",
            "call {next}",
            "ud2",
            stack = in(reg) gdt::BOOT_STACK.top(),
            root = in(reg) root.as_u64(),
            next = sym on_boot_stack,
            options(noreturn),
        );
    }
}

/// Names the function that goes on when the machine is ready: the boot order, which stands on all floors.
#[macro_export]
macro_rules! kernel_entry {
    ($main:path) => {
        // SAFETY: no other symbol has the name; `boot` declares it with this type.
        #[unsafe(no_mangle)]
        extern "Rust" fn alea_kernel_main(info: $crate::base::boot_info::BootInfo) -> ! {
            $main(info)
        }
    };
}

unsafe extern "Rust" {
    safe fn alea_kernel_main(info: BootInfo) -> !;
}

extern "C" fn on_boot_stack() -> ! {
    page::flush_tlb_all();
    isolation::init_cpu();
    sites::choose_by_flaws();
    gdt::choose_stacks();
    // SAFETY: `enter_kernel` stored it.
    let info = unsafe { (*KEPT.0.get()).take() };
    // SAFETY: no task runs yet; the boot stack stays this CPU's for traps from user mode that
    // happen before the first task exists (none).
    unsafe { percpu::set_kernel_stack(gdt::BOOT_STACK.top()) };
    match info {
        Some(info) => alea_kernel_main(info),
        None => panic!("no boot information"),
    }
}

/// Prints the memory map as the log's first lines.
pub fn log_memory_map(info: &BootInfo) {
    for region in &info.memory_map {
        let (start, end) = (region.start.as_u64(), region.end() - 1);
        log::debug!("memory [{start:#013x}-{end:#013x}] {:?}", region.kind);
    }
}
