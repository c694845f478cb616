//! Tests of this floor, run at boot when the command line has `alea.selftest`.
//!
//! A hand-made address space, one user program in assembly and hooks of its own: system calls by
//! SYSRET and by IRET, work on the way out, user faults of every kind, a context switch, the FPU
//! and the user-copy primitives with faults in the middle. Runs before the upper floors register
//! their hooks, with interrupts off outside the user program. A failed check panics.
//!
//! Owns static pages and a stack for this. Never runs without `alea.selftest`. Locks: none.

use super::{bounds, shift, sites, user};
use crate::arch::boot::tables;
use crate::arch::entry::frame;
use crate::base::{areas, boot_info, image, speculation};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::user::{CODE, STACK, UNMAPPED};
use crate::arch::copy::{mem, usercopy};
use crate::arch::entry::extable;
use crate::arch::entry::frame::TrapFrame;
use crate::arch::entry::trap::{self, PageFaultCode, TrapHooks};
use crate::arch::task::fpu;
use crate::arch::task::switch::{self, Context};
use crate::base::page::{self, PTE_ADDRESS, PteFlags, USER_HALF};
use crate::base::{cpu, isolation, percpu};

#[repr(C, align(4096))]
struct Page(UnsafeCell<[u64; 512]>);
// SAFETY: used by these tests alone, on the boot CPU.
unsafe impl Sync for Page {}

impl Page {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; 512]))
    }

    fn phys(&self) -> u64 {
        self.0.get() as u64 - image::image_start() + boot_info::kernel_phys()
    }

    fn set(&self, index: usize, entry: u64) {
        // SAFETY: see the impl of `Sync`.
        unsafe { (*self.0.get())[index] = entry };
    }
}

/// The kernel's table and the program's.
static ROOTS: [Page; 2] = [const { Page::new() }; 2];
static TABLES: [Page; 3] = [const { Page::new() }; 3];
static CODE_PAGE: Page = Page::new();
static STACK_PAGE: Page = Page::new();

/// A kernel stack for the user program's task.
#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; 16384]>);
// SAFETY: used by these tests alone.
unsafe impl Sync for Stack {}
static KERNEL_STACK: Stack = Stack(UnsafeCell::new([0; 16384]));

struct Contexts {
    main: UnsafeCell<Context>,
    user: UnsafeCell<Context>,
}
// SAFETY: used by these tests alone, on one CPU.
unsafe impl Sync for Contexts {}
static CONTEXTS: Contexts =
    Contexts { main: UnsafeCell::new(Context::empty()), user: UnsafeCell::new(Context::empty()) };

static WORK: AtomicU32 = AtomicU32::new(0);
static FIRST_CALLS: AtomicU32 = AtomicU32::new(0);
static WORK_CALLS: AtomicU32 = AtomicU32::new(0);
/// The last exception: vector, or 0x100 + the page fault's code.
static LAST_TRAP: AtomicU64 = AtomicU64::new(0);
static RESULT: AtomicU64 = AtomicU64::new(u64::MAX);

static HOOKS: TrapHooks = TrapHooks {
    syscalls: &[syscall; frame::SYSCALLS],
    watched: |_| -38, // ENOSYS
    page_fault,
    user_exception,
    exit_to_user,
    timer: || (),
    sample: |_| false,
};

/// Runs every test.
pub fn run() {
    let old = trap::register(&HOOKS);
    let kernel_root = page::read_cr3();
    build_space(kernel_root.as_u64());
    let [kernels, programs] = ROOTS.each_ref().map(|root| x86_64::PhysAddr::new(root.phys()));
    // SAFETY: the new roots have the kernel's upper half, or what is shown of it, and are static.
    unsafe { isolation::load_space(&isolation::Roots { kernels, programs }) };
    mem::check();
    copies();
    strings_and_words();
    bounds::check();
    sites::check();
    user_program();
    fpu_images();
    indices();
    constants_are_read_only(kernel_root.as_u64());
    // SAFETY: as it was before.
    unsafe { isolation::load_kernel(kernel_root) };
    shift::check();
    trap::register(old);
    log::info!("arch: self tests passed");
}

/// What a mispredicted branch may index with.
fn indices() {
    for len in [0, 1, 7, usize::MAX] {
        for index in [0, 1, 6, 7, usize::MAX / 2, usize::MAX] {
            let wanted = if index < len { index } else { 0 };
            assert_eq!(speculation::clamp(index, len), wanted, "{index} of {len}");
        }
    }
}

/// Code and constants of the kernel cannot be written to through the direct map either.
fn constants_are_read_only(root: u64) {
    let constants = tables::constant_range();
    for phys in constants.clone().step_by(page::PAGE_SIZE) {
        assert!(!may_write(root, phys), "the kernel's constants at {phys:#x} are writable");
    }
    assert!(may_write(root, constants.end), "its data are not");
    assert!(may_write(root, constants.start - 1), "what lies in front of it is not");
}

/// Whether the direct map has the physical address writable.
fn may_write(root: u64, phys: u64) -> bool {
    let addr = areas::DIRECT_MAP_BASE + phys;
    let mut table = root;
    for level in (1..=4).rev() {
        let index = addr >> (12 + 9 * (level - 1)) & 511;
        // SAFETY: an active table, which the direct map covers.
        let entry = unsafe {
            *((table + areas::DIRECT_MAP_BASE) as *const u64).wrapping_add(index as usize)
        };
        let flags = PteFlags::from_bits_truncate(entry);
        assert!(flags.contains(PteFlags::PRESENT), "the direct map has a hole at {phys:#x}");
        if !flags.contains(PteFlags::WRITABLE) {
            return false;
        }
        if flags.contains(PteFlags::LARGE) {
            break;
        }
        table = entry & PTE_ADDRESS;
    }
    true
}

fn build_space(kernel_root: u64) {
    let all = (PteFlags::PRESENT | PteFlags::WRITABLE | PteFlags::USER).bits();
    let shown = if isolation::is_on() { isolation::shown() } else { kernel_root };
    for (root, from) in ROOTS.iter().zip([kernel_root, shown]) {
        // SAFETY: both are top-level tables, mapped in the direct map.
        let kernel = unsafe { &*((from + areas::DIRECT_MAP_BASE) as *const [u64; 512]) };
        for (index, entry) in kernel.iter().enumerate().skip(256) {
            root.set(index, *entry);
        }
        root.set(0, TABLES[0].phys() | all);
    }
    TABLES[0].set(0, TABLES[1].phys() | all);
    TABLES[1].set(CODE as usize >> 21, TABLES[2].phys() | all);
    let index = |addr: u64| (addr >> 12 & 511) as usize;
    TABLES[2].set(index(CODE), CODE_PAGE.phys() | (PteFlags::PRESENT | PteFlags::USER).bits());
    TABLES[2].set(index(STACK), STACK_PAGE.phys() & PTE_ADDRESS | all | page::nx().bits());
    let code = user::code();
    assert!(code.len() <= 4096);
    // SAFETY: the page is ours and the program fits.
    unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), CODE_PAGE.0.get().cast(), code.len()) };
}

/// Block copies against a page that ends in nothing.
fn copies() {
    let mut bytes = [0u8; 512];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = index as u8;
    }
    for len in 0..bytes.len() {
        for room in [0, 1, 3, 7, 8, 9, 63, 64, 65, 100, 512] {
            let start = UNMAPPED - room;
            let fits = len.min(room as usize);
            let mut back = [0u8; 512];
            // SAFETY: the ranges are user addresses; faults end in the table.
            let (to, from, cleared) = unsafe {
                let to = usercopy::copy_to_user(start, bytes.as_ptr(), len);
                let from = usercopy::copy_from_user(back.as_mut_ptr(), start, len);
                (to, from, usercopy::clear_user(start, len))
            };
            assert!(len - to == fits, "copy_to_user: {len} bytes, room for {room}, left {to}");
            assert!(len - from == fits, "copy_from_user: {len} bytes of {room}, left {from}");
            assert!(len - cleared == fits, "clear_user: {len} bytes of {room}, left {cleared}");
            assert!(back[..fits] == bytes[..fits], "copied bytes differ");
        }
    }
}

fn strings_and_words() {
    let text = b"a string of some length\0tail";
    let mut back = [0u8; 64];
    // SAFETY: as in `copies`.
    unsafe {
        for cut in [0u64, 1, 8, 16] {
            let start = UNMAPPED - 24 - cut;
            usercopy::copy_to_user(start, text.as_ptr(), 24);
            assert!(usercopy::strncpy_from_user(back.as_mut_ptr(), start, 64) == Some(23));
            assert!(back[..23] == text[..23]);
            assert!(usercopy::strnlen_user(start, 64) == Some(23));
            assert!(usercopy::strnlen_user(start, 5) == Some(5));
        }
        usercopy::copy_to_user(UNMAPPED - 1, b"x".as_ptr(), 1);
        assert!(usercopy::strnlen_user(UNMAPPED - 1, 64).is_none());
        assert!(usercopy::strncpy_from_user(back.as_mut_ptr(), UNMAPPED - 1, 1) == Some(1));
        let word = UNMAPPED - 8;
        assert!(usercopy::put_u64(word, 0x1122_3344_5566_7788));
        assert!(usercopy::get_u32(word) == Some(0x5566_7788));
        assert!(usercopy::get_u32(word + 4) == Some(0x1122_3344));
        assert!(usercopy::get_u64(word + 1).is_none() && !usercopy::put_u32(UNMAPPED, 1));
        assert!(usercopy::atomic_cmpxchg_u32(word, 0x5566_7788, 5) == Some(0x5566_7788));
        assert!(usercopy::atomic_cmpxchg_u32(word, 0, 6) == Some(5));
        assert!(usercopy::atomic_add_u32(word, 2) == Some(5));
        assert!(usercopy::atomic_xchg_u32(word, 9) == Some(7));
        assert!(usercopy::atomic_load_u32(word) == Some(9));
        assert!(usercopy::atomic_add_u32(UNMAPPED, 1).is_none());
        assert!(usercopy::probe_kernel(0xffff_ffff_f000_0000).is_none());
    }
}

extern "C" fn first_half(arg: usize) {
    // Relaxed: one CPU.
    FIRST_CALLS.store(arg as u32, Relaxed);
}

fn user_program() {
    let top = KERNEL_STACK.0.get() as u64 + 16384;
    let mut frame = TrapFrame::new_user(CODE, STACK + 4096);
    frame.rdi = UNMAPPED;
    let (task, work) = (percpu::current(), &raw const *percpu::work());
    let old = (task, work, percpu::kernel_stack_top(), percpu::calls());
    // SAFETY: stack, frame and work flags are static; interrupts are off; the program's end
    // switches back to `main`.
    unsafe {
        let (context, _) = switch::prepare_user_stack(top, &frame, first_half, 7);
        *CONTEXTS.user.get() = context;
        percpu::set_current(core::ptr::null(), &raw const WORK, top, old.3);
        switch::switch(CONTEXTS.main.get(), CONTEXTS.user.get());
        percpu::set_current(old.0, old.1, old.2, old.3);
    }
    // Relaxed: one CPU.
    let result = RESULT.load(Relaxed);
    assert!(result == 0, "the user program failed at step {result}");
    assert!(FIRST_CALLS.load(Relaxed) == 7);
    assert!(WORK_CALLS.load(Relaxed) == 2, "work ran {} times", WORK_CALLS.load(Relaxed));
}

extern "C" fn syscall(frame: &mut TrapFrame) -> i64 {
    assert!(cpu::interrupts_enabled());
    let [a, b, c, d, e, f] = frame.syscall_args();
    match frame.syscall_number() {
        1 => return (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f) as i64,
        2 => {
            // Replaces everything, as sigreturn does.
            frame.rbx = 0x77;
            frame.rcx = 0x88;
            frame.r11 = 0x99;
            frame.mark_changed();
        }
        // Relaxed: one CPU.
        3 => WORK.store(1, Relaxed),
        // Relaxed: one CPU.
        4 => return LAST_TRAP.swap(0, Relaxed) as i64,
        5 => {
            frame.r15 = frame.rip;
            frame.rip = 0x8000_0000_0000_0000;
            frame.mark_changed();
        }
        // A number beyond the table.
        0x1_0000_1000 => return 0x66,
        _ => {
            // Relaxed: one CPU.
            RESULT.store(a, Relaxed);
            cpu::irq_disable();
            // SAFETY: `main` waits in `user_program`; this stack is never resumed.
            unsafe { switch::switch(CONTEXTS.user.get(), CONTEXTS.main.get()) };
        }
    }
    0
}

fn page_fault(frame: &mut TrapFrame, addr: u64, code: PageFaultCode) {
    if !frame.user_mode() {
        assert!(extable::fixup(frame), "kernel fault at {addr:#x}");
        return;
    }
    assert!(cpu::interrupts_enabled());
    // Relaxed: one CPU.
    let seen = if addr < USER_HALF { code } else { code | PageFaultCode::PRESENT };
    LAST_TRAP.store(0x100 + u64::from(seen.bits()), Relaxed);
    frame.rip = frame.r15;
}

fn user_exception(frame: &mut TrapFrame, vector: u8, _error: u64) {
    assert!(frame.user_mode() && cpu::interrupts_enabled());
    // Relaxed: one CPU.
    LAST_TRAP.store(u64::from(vector), Relaxed);
    frame.rflags &= !frame::FLAG_TF;
    frame.rip = frame.r15;
}

fn exit_to_user(_frame: &mut TrapFrame) {
    assert!(cpu::interrupts_enabled());
    // Relaxed: one CPU. The first call leaves work behind.
    if WORK_CALLS.fetch_add(1, Relaxed) == 1 {
        WORK.store(0, Relaxed);
    }
}

/// Signal images: what is written can be read back, what is wrong is refused.
fn fpu_images() {
    let (Some(a), Some(b)) = (fpu::FpuState::try_new(), fpu::FpuState::try_new()) else {
        panic!("no memory for two FPU states")
    };
    assert!(fpu::FpuState::try_copy(&a).is_some());
    a.load();
    b.copy_from(&a);
    let image = a.signal_image();
    a.load();
    let taken = b.read_signal_image(|room| {
        room.copy_from_slice(image);
        room[160] = 0x5a; // the first byte of xmm0
        if fpu::xcr0() != 0 {
            room[512] |= 2;
        }
        room.len()
    });
    assert!(taken == Ok(()));
    fpu::switch(Some(&b), Some(&a));
    fpu::switch(Some(&a), Some(&b));
    let xmm0: u64;
    // SAFETY: stores a register.
    unsafe {
        let mut word = 0u64;
        core::arch::asm!("movq [{}], xmm0", in(reg) &raw mut word, options(nostack));
        xmm0 = word;
    }
    assert!(xmm0 == 0x5a, "xmm0 is {xmm0:#x}");
    let refused = a.read_signal_image(|room| {
        room.fill(0xff); // also the reserved bits of MXCSR
        room.len()
    });
    assert!(refused.is_err() && a.read_signal_image(|_| 511).is_err());
    assert!(a.read_signal_image(|_| 512) == Ok(()));
}
