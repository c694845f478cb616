//! Per-CPU data, reached through the GS base.
//!
//! Owns the fixed block that the entry assembly uses (`CpuBlock`) and the typed variables that
//! upper floors declare with `per_cpu!`. All of it lies in the `.percpu` section, which is only a
//! pattern: every CPU has a copy of it, at a distance of its own (`CpuBlock::offset`), that starts with
//! the values the variables were declared with. The boot CPU's copy is part of the image. A copy begins with the page that
//! `isolation` owns; GS points behind it.
//!
//! Rules: kernel code is not preempted, so a reference obtained here stays this CPU's own until the task blocks. It
//! cannot leave the closure it is given to, and inside of that the CPU is [`Pinned`]: the checking kernel panics where
//! a task could block, or be made to give its CPU away, while it uses what is per CPU. Interrupt handlers run at any
//! time: what they share with task code is either `Sync` (atomics) or used with interrupts off.
//!
//! Never gives a section back: CPUs do not go away. Locks: none.

use core::arch::asm;
use core::cell::{Cell, RefCell, UnsafeCell};
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use x86_64::structures::tss::TaskStateSegment;

use super::msr;

/// The most CPUs a kernel image can drive.
pub const MAX_CPUS: usize = 64;

/// What the entry assembly and the hottest paths reach by a fixed offset from GS.
#[repr(C, align(128))]
pub struct CpuBlock {
    this: Cell<*const CpuBlock>,
    offset: Cell<u64>,
    /// The running task, owned by the process floor.
    current: Cell<*const ()>,
    /// The running task's work flags: nonzero means it must not return to user mode directly.
    work: Cell<*const AtomicU32>,
    /// The running task's table of system calls, owned by the machine floor.
    calls: Cell<*const ()>,
    user_rsp: Cell<u64>,
    /// What CR3 is on the way to user mode, where tables are isolated, and 0 if nobody goes there; `isolation` owns it.
    user_table: Cell<u64>,
    cpu: Cell<u32>,
    irq_depth: Cell<u32>,
    /// What tracepoints there are to be told of here (`trace`); other CPUs change it.
    traced: AtomicU32,
    /// NMIs taken, for diagnosis.
    nmis: Cell<u32>,
    /// Places the TSS.
    _pad: u32,
    // The TSS must start at an address that is 4 modulo 8 so that its RSP0 is naturally aligned;
    // the pad gives exactly that.
    tss: Cell<TaskStateSegment>,
}

// SAFETY: each CPU touches only its own copy, through its own GS base.
unsafe impl Sync for CpuBlock {}

pub const SELF: usize = offset_of!(CpuBlock, this);
pub const OFFSET: usize = offset_of!(CpuBlock, offset);
pub const CURRENT: usize = offset_of!(CpuBlock, current);
pub const WORK: usize = offset_of!(CpuBlock, work);
pub const CALLS: usize = offset_of!(CpuBlock, calls);
pub const USER_RSP: usize = offset_of!(CpuBlock, user_rsp);
pub const USER_TABLE: usize = offset_of!(CpuBlock, user_table);
pub const CPU: usize = offset_of!(CpuBlock, cpu);
pub const IRQ_DEPTH: usize = offset_of!(CpuBlock, irq_depth);
const TRACED: usize = offset_of!(CpuBlock, traced);
/// RSP0 of the TSS doubles as the stack that SYSCALL switches to.
pub const KERNEL_STACK: usize = offset_of!(CpuBlock, tss) + 4;

/// The interrupt stack table of the TSS.
pub const INTERRUPT_STACKS: usize = offset_of!(CpuBlock, tss) + 36;

const _: () = assert!(KERNEL_STACK.is_multiple_of(8), "RSP0 must be naturally aligned");

static NO_WORK: AtomicU32 = AtomicU32::new(0);
/// How many CPUs run; only ever grows.
static ONLINE: AtomicU32 = AtomicU32::new(0);

/// How far each CPU's section lies from the pattern.
static OFFSETS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

#[unsafe(link_section = ".percpu.head")]
static BLOCK: CpuBlock = CpuBlock {
    this: Cell::new(ptr::null()),
    offset: Cell::new(0),
    current: Cell::new(ptr::null()),
    work: Cell::new(&raw const NO_WORK),
    calls: Cell::new(ptr::null()),
    user_rsp: Cell::new(0),
    user_table: Cell::new(0),
    cpu: Cell::new(0),
    irq_depth: Cell::new(0),
    traced: AtomicU32::new(0),
    nmis: Cell::new(0),
    _pad: 0,
    tss: Cell::new(TaskStateSegment::new()),
};

/// The block of a CPU that runs.
pub fn block_of(cpu: usize) -> Option<*const CpuBlock> {
    // Relaxed: as in `PerCpu::of`.
    let offset = OFFSETS.iter().take(cpus_online()).nth(cpu)?.load(Ordering::Relaxed);
    Some((&raw const BLOCK).wrapping_byte_add(offset as usize))
}

/// This CPU's number, 0 for the boot CPU.
#[inline]
pub fn cpu_id() -> usize {
    let id: u32;
    // SAFETY: GS points to this CPU's block from the first line of Rust on.
    unsafe {
        asm!("mov {0:e}, gs:[{1}]", out(reg) id, const CPU, options(nostack, preserves_flags, readonly))
    };
    id as usize
}

/// What tracepoints there are to be told of on this CPU.
#[inline(always)]
pub fn traced() -> u32 {
    let points: u32;
    // SAFETY: as in `cpu_id`; one aligned load, which is Relaxed: who changes it waits for nobody to see it.
    unsafe {
        asm!("mov {0:e}, gs:[{1}]", out(reg) points, const TRACED, options(nostack, preserves_flags, readonly))
    };
    points
}

/// Changes that word on every CPU that runs: what is `gone`, and what is `new`.
pub fn set_traced(gone: u32, new: u32) {
    for offset in OFFSETS.iter().take(cpus_online()) {
        // Relaxed: as in `PerCpu::of`.
        let offset = offset.load(Ordering::Relaxed);
        let block = (&raw const BLOCK).wrapping_byte_add(offset as usize);
        // SAFETY: the block of a CPU that runs lies there and is never freed; the field is atomic.
        let traced = unsafe { &(*block).traced };
        // Relaxed: see `traced`. The closure always gives a value.
        let change = |old: u32| Some(old & !gone | new);
        let _ = traced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

/// How many CPUs run: their numbers are the ones below.
#[inline]
pub fn cpus_online() -> usize {
    // Acquire: pairs with the Release in `set_online`: the CPU's section is in place.
    ONLINE.load(Ordering::Acquire) as usize
}

/// A bit for each CPU that runs.
#[inline]
pub fn online_mask() -> u64 {
    u64::MAX >> (64 - cpus_online())
}

/// Counts `cpu`, the next one, as running.
pub fn set_online(cpu: usize) {
    // Release: pairs with the Acquire in `cpus_online`.
    ONLINE.store(cpu as u32 + 1, Ordering::Release);
}

/// The pointer stored by `set_current`; null before the first task runs.
#[inline]
pub fn current() -> *const () {
    let task: *const ();
    // SAFETY: as in `cpu_id`.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) task, const CURRENT, options(nostack, preserves_flags, readonly))
    };
    task
}

/// Makes `task` the running task: its pointer, its work flags, its kernel stack and its table of system calls.
///
/// # Safety
/// `work` must stay valid for as long as the task may run on this CPU, and `stack_top` must be the
/// 16-byte aligned top of a mapped kernel stack that nothing else uses. Before the task enters user mode
/// `calls` is a whole table, that stays while the task may run with it. Interrupts are off.
#[inline]
pub unsafe fn set_current(
    task: *const (),
    work: *const AtomicU32,
    stack_top: u64,
    calls: *const (),
) {
    // SAFETY: GS is valid as in `cpu_id`; the caller vouches for the pointers.
    unsafe {
        asm!(
            "mov gs:[{c}], {task}",
            "mov gs:[{w}], {work}",
            "mov gs:[{s}], {stack}",
            "mov gs:[{t}], {calls}",
            c = const CURRENT, w = const WORK, s = const KERNEL_STACK, t = const CALLS,
            task = in(reg) task, work = in(reg) work, stack = in(reg) stack_top,
            calls = in(reg) calls,
            options(nostack, preserves_flags),
        );
    }
}

/// Sets the running task's table of system calls.
///
/// # Safety
/// It is a whole table, that stays until the task has another one.
pub unsafe fn set_calls(calls: *const ()) {
    // SAFETY: GS is valid as in `cpu_id`.
    unsafe {
        asm!("mov gs:[{0}], {1}", const CALLS, in(reg) calls, options(nostack, preserves_flags))
    };
}

/// The running task's table of system calls.
pub fn calls() -> *const () {
    let calls: *const ();
    // SAFETY: as in `cpu_id`.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) calls, const CALLS, options(nostack, preserves_flags, readonly))
    };
    calls
}

/// Sets the stack of the next entry from user mode.
///
/// # Safety
/// `top` is the 16-byte aligned top of a mapped kernel stack that belongs to the running task.
pub unsafe fn set_kernel_stack(top: u64) {
    // SAFETY: GS is valid as in `cpu_id`.
    unsafe {
        asm!("mov gs:[{0}], {1}", const KERNEL_STACK, in(reg) top, options(nostack, preserves_flags))
    };
}

/// The work flag of a task to which a signal may have to be delivered.
pub const WORK_SIGNAL: u32 = 1 << 0;
/// The work flag of a task that should let another one run.
pub const WORK_RESCHED: u32 = 1 << 1;
/// The work flag of a task whose breakpoints are to be loaded, or looked at.
pub const WORK_DEBUG: u32 = 1 << 4;
/// The work flag that the frame allocator raises for the running task: memory is nearly out.
pub const WORK_MEMORY: u32 = 1 << 31;

/// The running task's work flags.
#[inline]
pub fn work() -> &'static AtomicU32 {
    let work: *const AtomicU32;
    // SAFETY: as in `cpu_id`; `set_current` promises that the flags live while the task runs here.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) work, const WORK, options(nostack, preserves_flags, readonly));
        &*work
    }
}

/// The kernel stack top that the next entry from user mode will use.
pub fn kernel_stack_top() -> u64 {
    let top: u64;
    // SAFETY: as in `cpu_id`.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) top, const KERNEL_STACK, options(nostack, preserves_flags, readonly))
    };
    top
}

/// True while an interrupt handler runs on this CPU.
#[inline]
pub fn in_interrupt() -> bool {
    let depth: u32;
    // SAFETY: as in `cpu_id`.
    unsafe {
        asm!("mov {0:e}, gs:[{1}]", out(reg) depth, const IRQ_DEPTH, options(nostack, preserves_flags, readonly))
    };
    depth != 0
}

/// Entering (+1) and leaving (-1) an interrupt handler.
pub fn irq_enter() {
    // SAFETY: as in `cpu_id`.
    unsafe { asm!("inc dword ptr gs:[{0}]", const IRQ_DEPTH, options(nostack)) };
}

/// The counterpart of `irq_enter`.
pub fn irq_exit() {
    // SAFETY: as in `cpu_id`.
    unsafe { asm!("dec dword ptr gs:[{0}]", const IRQ_DEPTH, options(nostack)) };
}

/// The block of this CPU.
pub fn block() -> &'static CpuBlock {
    let this: *const CpuBlock;
    // SAFETY: as in `cpu_id`; the block is never freed.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) this, const SELF, options(nostack, preserves_flags, readonly));
        &*this
    }
}

impl CpuBlock {
    /// The TSS of this CPU.
    pub fn tss(&self) -> *mut TaskStateSegment {
        self.tss.as_ptr()
    }
}

unsafe extern "C" {
    static __percpu_pages: u8;
    static __percpu_end: u8;
    static mut __percpu_boot: u8;
}

/// Bytes of one CPU's section.
pub fn section_size() -> usize {
    (&raw const __percpu_end).addr() - (&raw const __percpu_pages).addr()
}

/// Makes the section of CPU `cpu` at `place`, and gives its block, which lies a page behind its start.
///
/// # Safety
/// `place` is page-aligned memory of `section_size()` bytes that is mapped for ever and that nothing
/// else uses; the CPU does not run yet.
pub unsafe fn lay_section(place: *mut u8, cpu: usize) -> *const CpuBlock {
    let pattern = &raw const __percpu_pages;
    let offset = place.addr().wrapping_sub(pattern.addr()) as u64;
    // Relaxed: published by `set_online`.
    OFFSETS[cpu].store(offset, Ordering::Relaxed);
    // SAFETY: the caller vouches for the place; the block is part of the section.
    unsafe {
        core::ptr::copy_nonoverlapping(pattern, place, section_size());
        let block = (&raw const BLOCK).wrapping_byte_add(offset as usize);
        (*block).this.set(block);
        (*block).offset.set(offset);
        (*block).cpu.set(cpu as u32);
        block
    }
}

/// Points GS at the boot CPU's block. The first thing Rust does.
pub fn init_boot_cpu() {
    // SAFETY: the linker keeps room for the copy; it is static, and nothing has used it. Both GS bases
    // are kernel values until the first user entry.
    unsafe {
        let block = lay_section(&raw mut __percpu_boot, 0);
        msr::write(msr::GS_BASE, block as u64);
        msr::write(msr::KERNEL_GS_BASE, 0);
    }
    set_online(0);
}

/// One variable per CPU; declare it with [`per_cpu!`](crate::per_cpu).
#[repr(transparent)]
pub struct PerCpu<T: 'static>(UnsafeCell<T>);

// SAFETY: `with` hands out shared references only when `T: Sync`; `with_irq_off`, `with_mut` and the
// `Cell` accessors touch this CPU's copy alone, with interrupts off, outside of interrupts, or in
// single volatile accesses.
unsafe impl<T> Sync for PerCpu<T> {}

impl<T: 'static> PerCpu<T> {
    /// For `per_cpu!` only: the value is copied to every CPU's section.
    #[doc(hidden)]
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The address of this CPU's copy.
    #[inline]
    pub fn as_ptr(&'static self) -> *const T {
        let offset: u64;
        // SAFETY: as in `cpu_id`.
        unsafe {
            asm!("mov {0}, gs:[{1}]", out(reg) offset, const OFFSET, options(nostack, preserves_flags, readonly))
        };
        self.0.get().cast_const().wrapping_byte_add(offset as usize)
    }

    /// Runs `f` on this CPU's copy. `f` must not block.
    #[inline]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R
    where
        T: Sync,
    {
        let _pinned = Pinned::new();
        // SAFETY: the copy is static and `T: Sync` allows interrupt handlers to share it.
        f(unsafe { &*self.as_ptr() })
    }

    /// The copy of another CPU, or of this one; nothing for a CPU that does not run.
    pub fn of(&'static self, cpu: usize) -> Option<&'static T>
    where
        T: Sync,
    {
        if cpu >= cpus_online() {
            return None;
        }
        // Relaxed: written before the CPU was counted as online, which `cpus_online` has seen.
        let offset = OFFSETS[cpu].load(Ordering::Relaxed);
        let copy = self.0.get().cast_const().wrapping_byte_add(offset as usize);
        // SAFETY: the CPU's section lies at this distance and is never freed.
        Some(unsafe { &*copy })
    }
}

impl<T: 'static> PerCpu<RefCell<T>> {
    /// Runs `f` with this CPU's copy to itself, interrupts as they are: for data that interrupt
    /// handlers never use. Nothing from within a handler or from within another `f`. `f` must not
    /// block.
    #[inline]
    pub fn with_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        if in_interrupt() { None } else { self.with_mut_in_task(f) }
    }

    /// As [`with_mut`](Self::with_mut), for callers that cannot be interrupt handlers.
    #[inline]
    pub fn with_mut_in_task<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        debug_assert!(!in_interrupt());
        let _pinned = Pinned::new();
        // SAFETY: only this CPU sees the copy, and of its code only what is not a handler: that is
        // one task at a time, which is not preempted. The `RefCell` stops it from nesting.
        let cell = unsafe { &*self.as_ptr() };
        Some(f(&mut *cell.try_borrow_mut().ok()?))
    }

    /// For interrupt handlers, of which one at a time runs on a CPU: runs `f` with this CPU's copy to itself. Nothing
    /// outside of handlers, and where a task was interrupted while it had the copy.
    pub fn with_mut_in_interrupt<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !in_interrupt() {
            return None;
        }
        // SAFETY: only this CPU sees the copy, and handlers run with interrupts off; the `RefCell` keeps what
        // they interrupted apart.
        let cell = unsafe { &*self.as_ptr() };
        Some(f(&mut *cell.try_borrow_mut().ok()?))
    }
}

impl<T: Copy + 'static> PerCpu<Cell<T>> {
    /// Reads this CPU's value.
    #[inline]
    pub fn get(&'static self) -> T {
        // SAFETY: one volatile read of this CPU's own copy; an interrupt handler may change it
        // before or after, as the memory of a signal handler may.
        unsafe { self.as_ptr().cast::<T>().read_volatile() }
    }

    /// Writes this CPU's value.
    #[inline]
    pub fn set(&'static self, value: T) {
        // SAFETY: as in `get`; a `Cell` may be written through a shared pointer.
        unsafe { self.as_ptr().cast_mut().cast::<T>().write_volatile(value) }
    }
}

/// While one of these exists, the code that made it uses what is per CPU and must not block: a count that the checking
/// kernel keeps, and nothing in the ordinary one.
#[must_use]
pub struct Pinned(PhantomData<*const ()>);

impl Pinned {
    #[inline(always)]
    pub fn new() -> Self {
        #[cfg(debug_assertions)]
        pins().fetch_add(1, Ordering::Relaxed); // Relaxed: this CPU's own
        Self(PhantomData)
    }
}

impl Drop for Pinned {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        pins().fetch_sub(1, Ordering::Relaxed); // Relaxed: this CPU's own
    }
}

#[cfg(debug_assertions)]
fn pins() -> &'static AtomicU32 {
    static PINS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];
    &PINS[cpu_id()]
}

/// In the checking kernel: panics if what is per CPU is in use here. Called where a task may block.
#[inline(always)]
pub fn assert_not_pinned() {
    #[cfg(debug_assertions)]
    if pins().load(Ordering::Relaxed) != 0 {
        panic!("blocking while per-CPU data is in use");
    }
}

/// Declares per-CPU variables: `per_cpu! { static HITS: AtomicU64 = AtomicU64::new(0); }`.
#[macro_export]
macro_rules! per_cpu {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;)+) => {$(
        $(#[$meta])*
        #[allow(unsafe_code, reason = "placing a static in a section is all that is unsafe")]
        #[unsafe(link_section = ".percpu")]
        $vis static $name: $crate::base::percpu::PerCpu<$type> =
            $crate::base::percpu::PerCpu::new($init);
    )+};
}
