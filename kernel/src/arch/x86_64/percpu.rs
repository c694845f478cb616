//! Per-CPU data, reached through the GS base.
//!
//! Owns the fixed block that the entry assembly uses (`CpuBlock`) and the typed variables that
//! upper floors declare with `per_cpu!`. All of it lies in the `.percpu` section: the linked copy
//! serves the boot CPU, every other CPU gets a copy at a constant distance (`CpuBlock::offset`).
//!
//! Rules: kernel code is not preempted, so a reference obtained here stays this CPU's own until
//! the task blocks; it must never be kept across a point that may block. Interrupt handlers run at
//! any time: what they share with task code is either `Sync` (atomics) or used with interrupts off.

use core::arch::asm;
use core::cell::{Cell, RefCell, UnsafeCell};
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
    user_rsp: Cell<u64>,
    cpu: Cell<u32>,
    irq_depth: Cell<u32>,
    /// NMIs taken, for diagnosis; also places the TSS.
    nmis: Cell<u32>,
    // The TSS must start at an address that is 4 modulo 8 so that its RSP0 is naturally aligned;
    // the pad above and this field give exactly that.
    tss: Cell<TaskStateSegment>,
}

// SAFETY: each CPU touches only its own copy, through its own GS base.
unsafe impl Sync for CpuBlock {}

pub const SELF: usize = offset_of!(CpuBlock, this);
pub const OFFSET: usize = offset_of!(CpuBlock, offset);
pub const CURRENT: usize = offset_of!(CpuBlock, current);
pub const WORK: usize = offset_of!(CpuBlock, work);
pub const USER_RSP: usize = offset_of!(CpuBlock, user_rsp);
pub const CPU: usize = offset_of!(CpuBlock, cpu);
pub const IRQ_DEPTH: usize = offset_of!(CpuBlock, irq_depth);
/// RSP0 of the TSS doubles as the stack that SYSCALL switches to.
pub const KERNEL_STACK: usize = offset_of!(CpuBlock, tss) + 4;

const _: () = assert!(KERNEL_STACK.is_multiple_of(8), "RSP0 must be naturally aligned");

static NO_WORK: AtomicU32 = AtomicU32::new(0);
/// Set for each CPU that runs; only ever grows.
static ONLINE: AtomicU32 = AtomicU32::new(0);

/// How far each CPU's section lies from the linked one.
static OFFSETS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

#[unsafe(link_section = ".percpu.head")]
static BLOCK: CpuBlock = CpuBlock {
    this: Cell::new(ptr::null()),
    offset: Cell::new(0),
    current: Cell::new(ptr::null()),
    work: Cell::new(&raw const NO_WORK),
    user_rsp: Cell::new(0),
    cpu: Cell::new(0),
    irq_depth: Cell::new(0),
    nmis: Cell::new(0),
    tss: Cell::new(TaskStateSegment::new()),
};

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

/// How many CPUs run.
pub fn cpus_online() -> usize {
    // Relaxed: a plain count, nothing is published through it.
    ONLINE.load(Ordering::Relaxed) as usize
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

/// Makes `task` the running task: its pointer, its work flags and its kernel stack.
///
/// # Safety
/// `work` must stay valid for as long as the task may run on this CPU, and `stack_top` must be the
/// 16-byte aligned top of a mapped kernel stack that nothing else uses. Interrupts are off.
#[inline]
pub unsafe fn set_current(task: *const (), work: *const AtomicU32, stack_top: u64) {
    // SAFETY: GS is valid as in `cpu_id`; the caller vouches for the pointers.
    unsafe {
        asm!(
            "mov gs:[{c}], {task}",
            "mov gs:[{w}], {work}",
            "mov gs:[{s}], {stack}",
            c = const CURRENT, w = const WORK, s = const KERNEL_STACK,
            task = in(reg) task, work = in(reg) work, stack = in(reg) stack_top,
            options(nostack, preserves_flags),
        );
    }
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
pub(super) fn irq_enter() {
    // SAFETY: as in `cpu_id`.
    unsafe { asm!("inc dword ptr gs:[{0}]", const IRQ_DEPTH, options(nostack)) };
}

/// The counterpart of `irq_enter`.
pub(super) fn irq_exit() {
    // SAFETY: as in `cpu_id`.
    unsafe { asm!("dec dword ptr gs:[{0}]", const IRQ_DEPTH, options(nostack)) };
}

/// The block of this CPU.
pub(super) fn block() -> &'static CpuBlock {
    let this: *const CpuBlock;
    // SAFETY: as in `cpu_id`; the block is never freed.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) this, const SELF, options(nostack, preserves_flags, readonly));
        &*this
    }
}

impl CpuBlock {
    /// The TSS of this CPU.
    pub(super) fn tss(&self) -> *mut TaskStateSegment {
        self.tss.as_ptr()
    }
}

/// Points GS at the boot CPU's block. The first thing Rust does.
pub(super) fn init_boot_cpu() {
    BLOCK.this.set(&raw const BLOCK);
    // SAFETY: the block is static; both GS bases are kernel values until the first user entry.
    unsafe {
        msr::write(msr::GS_BASE, &raw const BLOCK as u64);
        msr::write(msr::KERNEL_GS_BASE, 0);
    }
    // Relaxed: see `cpus_online`.
    ONLINE.store(1, Ordering::Relaxed);
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
        // Relaxed: written before the CPU was counted as online.
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
        // SAFETY: only this CPU sees the copy, and of its code only what is not a handler: that is
        // one task at a time, which is not preempted. The `RefCell` stops it from nesting.
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

/// Declares per-CPU variables: `per_cpu! { static HITS: AtomicU64 = AtomicU64::new(0); }`.
#[macro_export]
macro_rules! per_cpu {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;)+) => {$(
        $(#[$meta])*
        #[allow(unsafe_code, reason = "placing a static in a section is all that is unsafe")]
        #[unsafe(link_section = ".percpu")]
        $vis static $name: $crate::arch::percpu::PerCpu<$type> =
            $crate::arch::percpu::PerCpu::new($init);
    )+};
}
