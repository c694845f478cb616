//! Starting further CPUs, and naming them afterwards.
//!
//! Owns the code that a CPU begins with in real mode, its temporary page tables (the low 2 MiB beside the
//! kernel's half, in pages below 1 MiB), and which CPU has which APIC id. One CPU is started at a time. A
//! CPU takes its number, stack and section by one atomic exchange (`CLAIM`), so that one that comes up
//! after it was given up finds nothing and halts. Never lets a CPU in that was given up.
//! Locks: none.

use super::ipi::APIC_IDS;
use crate::base::boot_info::STARTUP_PAGES;
use alloc::boxed::Box;
use core::alloc::Layout;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use x86_64::PhysAddr;

use crate::arch::entry::gdt::{self, IST_STACKS};
use crate::arch::entry::{idt, syscall};
use crate::arch::irq::apic;
use crate::arch::task::fpu;
use crate::arch::time::tsc_check;
use crate::base::kmap::{self, Cache};
use crate::base::page::{self, PteFlags, read_cr3};
use crate::base::percpu::{self, CpuBlock, MAX_CPUS};
use crate::base::{PAGE_SIZE, areas, cpu, isolation, msr, speculation, tsc};
use crate::machine::acpi;

/// The CPU being started runs its own code.
static ARRIVED: AtomicBool = AtomicBool::new(false);

/// The stacks of a CPU: the topmost addresses, 16-byte aligned, of mapped stacks that nothing else uses.
pub struct Stacks {
    pub idle: u64,
    pub interrupt: [u64; IST_STACKS],
}

/// What a CPU finds when it starts. Never freed.
struct Start {
    block: *const CpuBlock,
    stacks: Stacks,
    cpu: usize,
    main: fn() -> !,
}

unsafe extern "C" {
    static alea_startup: u8;
    static alea_startup_end: u8;
    static alea_startup_claim: u8;
    static alea_startup_values: u8;
}

/// What the startup code reads, in its page.
#[repr(C)]
struct Values {
    table: u32,
    efer: u32,
    far_offset: u32,
    far_selector: u32,
    gdt_limit: u16,
    gdt_base: [u16; 2],
    pad: u16,
    gdt: [u64; 2],
    start: u64,
    entry: u64,
    root: u64,
}

/// The APIC ids of the CPUs that the firmware lists, without this one, each once.
pub fn others() -> impl Iterator<Item = u32> {
    let listed = acpi::get().map(|acpi| &acpi.local_apics[..]).unwrap_or_default();
    let own = apic::id();
    let reachable = if apic::is_x2apic() { u32::MAX } else { 255 };
    listed.iter().enumerate().filter_map(move |(at, &id)| {
        (id != own && id < reachable && !listed[..at].contains(&id)).then_some(id)
    })
}

/// The startup code in its place.
pub struct Starter {
    phys: u64,
    virt: u64,
    tsc_hz: u64,
}

impl Starter {
    /// Lays the startup code into `STARTUP_PAGES` pages at `pages`, and tells all CPUs of `targets` to
    /// wait for it. Nothing when the pages cannot be mapped.
    pub fn prepare(
        pages: PhysAddr,
        targets: impl Iterator<Item = u32>,
        tsc_hz: u64,
    ) -> Option<Self> {
        APIC_IDS[0].store(apic::id(), Ordering::Relaxed);
        let phys = pages.as_u64();
        let virt = kmap::map(phys, STARTUP_PAGES * PAGE_SIZE, Cache::WriteBack)?;
        let starter = Self { phys, virt, tsc_hz };
        starter.lay_code();
        starter.lay_tables();
        for id in targets {
            apic::send_init(id);
        }
        // Old hardware wants 10 ms between INIT and STARTUP; virtual CPUs and new ones none.
        let patience = if cpu::features().hypervisor { 10 } else { 10_000 };
        starter.wait_micros(patience, || false);
        Some(starter)
    }

    fn lay_code(&self) {
        let code = &raw const alea_startup;
        let len = (&raw const alea_startup_end).addr() - code.addr();
        assert!(len <= PAGE_SIZE);
        // SAFETY: the page was mapped by `prepare` and is nobody else's; the code is `len` bytes.
        unsafe { core::ptr::copy_nonoverlapping(code, self.virt as *mut u8, len) };
    }

    fn lay_tables(&self) {
        let table = |n: u64| (self.virt + n * PAGE_SIZE as u64) as *mut [u64; 512];
        let phys = |n: u64| self.phys + n * PAGE_SIZE as u64;
        let flags = (PteFlags::PRESENT | PteFlags::WRITABLE).bits();
        let root = (read_cr3().as_u64() + areas::DIRECT_MAP_BASE) as *const [u64; 512];
        // SAFETY: the pages are ours (`prepare`); the active table is in the direct map.
        unsafe {
            let mut top = [0; 512];
            top[256..].copy_from_slice(&(&(*root))[256..]);
            top[0] = phys(2) | flags;
            table(1).write(top);
            table(2).write([0; 512]);
            (&mut (*table(2)))[0] = phys(3) | flags;
            table(3).write([0; 512]);
            (&mut (*table(3)))[0] = flags | PteFlags::LARGE.bits();
        }
    }

    /// The word by which a starting CPU takes what `start` laid out for it.
    fn claim(&self) -> &AtomicU32 {
        let at = (&raw const alea_startup_claim).addr() - (&raw const alea_startup).addr();
        // SAFETY: the word lies in the mapped page, aligned, and is used as an atomic by both sides.
        unsafe { &*((self.virt + at as u64) as *const AtomicU32) }
    }

    fn lay_values(&self, start: *const Start, root: u64) {
        let base = self.phys;
        let at = (&raw const alea_startup_values).addr() - (&raw const alea_startup).addr();
        let gdt_at = (at + core::mem::offset_of!(Values, gdt)) as u64 + base;
        let nx = u32::from(cpu::features().nx) << 11;
        let long_mode = long_mode_offset() + base;
        let values = Values {
            table: (base + PAGE_SIZE as u64) as u32,
            efer: 1 << 8 | 1 | nx,
            far_offset: long_mode as u32,
            far_selector: 8,
            gdt_limit: 15,
            gdt_base: [gdt_at as u16, (gdt_at >> 16) as u16],
            pad: 0,
            gdt: [0, 0x00af_9b00_0000_ffff],
            start: start as u64,
            entry: alea_startup_high as *const () as u64,
            root,
        };
        // SAFETY: the values lie in the mapped page, aligned; no CPU has a claim to read them by now.
        unsafe { ((self.virt + at as u64) as *mut Values).write_volatile(values) };
    }

    /// Starts the CPU with this APIC id as CPU number `cpu`, which must be the next one. It ends in
    /// `main`, interrupts off, on its idle stack, counted as online. False if it does not come.
    pub fn start(&self, apic_id: u32, cpu: usize, stacks: Stacks, main: fn() -> !) -> bool {
        assert!(cpu == percpu::cpus_online() && cpu < MAX_CPUS);
        let Ok(layout) = Layout::from_size_align(percpu::section_size(), PAGE_SIZE) else {
            return false;
        };
        // SAFETY: the section is not empty. It is never freed.
        let section = unsafe { alloc::alloc::alloc(layout) };
        if section.is_null() {
            return false;
        }
        // SAFETY: just allocated for this.
        let block = unsafe { percpu::lay_section(section, cpu) };
        #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
        let start = Box::into_raw(Box::new(Start { block, stacks, cpu, main }));
        // Relaxed: ordered by the claim.
        ARRIVED.store(false, Ordering::Relaxed);
        tsc_check::begin();
        self.lay_values(start, read_cr3().as_u64());
        // Release: pairs with the CPU's exchange.
        self.claim().store(1, Ordering::Release);
        let page = (self.phys / PAGE_SIZE as u64) as u8;
        for patience in [1000, STARTUP_MICROS] {
            apic::send_startup(apic_id, page);
            // Relaxed: only whether it was taken; ARRIVED orders.
            self.wait_micros(patience, || self.claim().load(Ordering::Relaxed) == 0);
        }
        // AcqRel: pairs with the CPU's exchange; after it no CPU takes what was laid out.
        if self.claim().swap(0, Ordering::AcqRel) != 0 {
            return false;
        }
        // Acquire: pairs with the Release in `started`. It has its number: there is no way back.
        while !ARRIVED.load(Ordering::Acquire) {
            tsc_check::look();
        }
        if let Some(behind) = tsc_check::result() {
            log::warn!("TSC of CPU {cpu}: {behind} ticks out of step; clocks may go back by that");
        }
        percpu::set_online(cpu);
        true
    }

    /// Waits so long, or until `done`.
    fn wait_micros(&self, micros: u64, done: impl Fn() -> bool) {
        let from = tsc::read();
        let ticks = (self.tsc_hz / 1_000_000).saturating_mul(micros);
        while !done() && tsc::read().saturating_sub(from) < ticks {
            cpu::relax();
        }
    }
}

/// How long a CPU may take to begin: a virtual one may have to wait for a real one.
const STARTUP_MICROS: u64 = 5_000_000;

fn long_mode_offset() -> u64 {
    unsafe extern "C" {
        static alea_startup_long: u8;
    }
    ((&raw const alea_startup_long).addr() - (&raw const alea_startup).addr()) as u64
}

unsafe extern "C" {
    fn alea_startup_high();
}

/// The first Rust of a new CPU: on its idle stack, GS set, the kernel's own page tables.
extern "C" fn started(start: &'static Start) -> ! {
    cpu::enable(cpu::features());
    speculation::init_cpu();
    gdt::init(start.stacks.interrupt);
    idt::load();
    syscall::init();
    page::flush_tlb_all();
    isolation::init_cpu();
    fpu::init_cpu();
    apic::init_cpu();
    // SAFETY: the stack is this CPU's idle stack, on which no task of user mode runs.
    unsafe { percpu::set_kernel_stack(start.stacks.idle) };
    APIC_IDS[start.cpu].store(apic::id(), Ordering::Relaxed);
    for _ in 0..tsc_check::ROUNDS {
        tsc_check::look();
    }
    // Release: pairs with the Acquire in `Starter::start`.
    ARRIVED.store(true, Ordering::Release);
    while percpu::cpus_online() <= start.cpu {
        cpu::relax();
    }
    (start.main)()
}

global_asm!(
    r#"
    .section .rodata.startup, "a"
    .balign 16
    .global alea_startup
    .code16
alea_startup:
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    xorl %ebx, %ebx
    movw %ax, %bx
    shll $4, %ebx                   // where this page lies
    xorl %eax, %eax
    xchgl %eax, (alea_startup_claim - alea_startup)
    testl %eax, %eax
    jz 2f
    lgdtl (alea_startup_values - alea_startup + {gdt_limit})
    movl $0x20, %eax                // PAE
    movl %eax, %cr4
    movl (alea_startup_values - alea_startup + {table}), %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    movl (alea_startup_values - alea_startup + {efer}), %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80010011, %eax          // protection and paging at once: straight to long mode
    movl %eax, %cr0
    ljmpl *(alea_startup_values - alea_startup + {far_offset})
2:  hlt
    jmp 2b

    .code64
    .global alea_startup_long
alea_startup_long:
    movl %ebx, %ebx
    movq (alea_startup_values - alea_startup + {start})(%rbx), %rdi
    movq (alea_startup_values - alea_startup + {root})(%rbx), %rsi
    movq (alea_startup_values - alea_startup + {entry})(%rbx), %rax
    jmpq *%rax

    .balign 8
    .global alea_startup_claim
alea_startup_claim:
    .quad 0
    .balign 16
    .global alea_startup_values
alea_startup_values:
    .skip {size}
    .global alea_startup_end
alea_startup_end:

    .section .entry.text, "ax"
    .balign 16
    .global alea_startup_high
alea_startup_high:
    movq %rsi, %cr3
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl %eax, %fs
    movl %eax, %gs
    movq {stack}(%rdi), %rsp
    movq {block}(%rdi), %rax
    movq %rax, %rdx
    shrq $32, %rdx
    movl ${gs_base}, %ecx
    wrmsr
    xorl %ebp, %ebp
    pushq %rbp
    pushq %rbp
    callq {started}
    ud2
    "#,
    table = const core::mem::offset_of!(Values, table),
    efer = const core::mem::offset_of!(Values, efer),
    far_offset = const core::mem::offset_of!(Values, far_offset),
    gdt_limit = const core::mem::offset_of!(Values, gdt_limit),
    start = const core::mem::offset_of!(Values, start),
    entry = const core::mem::offset_of!(Values, entry),
    root = const core::mem::offset_of!(Values, root),
    size = const size_of::<Values>(),
    stack = const core::mem::offset_of!(Start, stacks) + core::mem::offset_of!(Stacks, idle),
    block = const core::mem::offset_of!(Start, block),
    gs_base = const msr::GS_BASE,
    started = sym started,
    options(att_syntax),
);
