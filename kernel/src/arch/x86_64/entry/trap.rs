//! Traps: the register frame, the hooks of the upper floors, and what becomes of each vector.
//!
//! Owns `TrapFrame` (Linux's pt_regs order) and the hook table, filled once at boot by `register`.
//! Called with interrupts off by the entry assembly; user-mode exceptions and page faults turn them
//! on again before they call a hook. Must never allocate. Locks: none.

use super::frame::{FLAG_IF, FLAG_TF, SYSCALLS, SyscallTable, TrapFrame};
use core::sync::atomic::{AtomicPtr, Ordering};

use bitflags::bitflags;

use super::extable;
use crate::arch::irq::{self, Interrupted};
use crate::arch::task::debug;
use crate::base::page::USER_HALF;
use crate::base::{cpu, percpu};
use spin::Once;

bitflags! {
    /// The error code of a page fault.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PageFaultCode: u32 {
        const PRESENT = 1 << 0;
        const WRITE = 1 << 1;
        const USER = 1 << 2;
        const RESERVED = 1 << 3;
        const FETCH = 1 << 4;
        const PROTECTION_KEY = 1 << 5;
        const SHADOW_STACK = 1 << 6;
    }
}

/// What the upper floors do with traps. Registered once, before the first user program.
pub struct TrapHooks {
    /// The system calls by number; interrupts are on. What an entry returns goes to rax.
    pub syscalls: &'static SyscallTable,
    /// The call of a task that is watched (`Tasks::call_through`), in place of the table's entry.
    pub watched: fn(&mut TrapFrame) -> i64,
    /// A fault in user mode, or a kernel fault on a user address at an instruction that has an
    /// exception-table entry. The hook calls `extable::fixup` for the latter when it cannot resolve
    /// the fault. Interrupts are on when the interrupted code had them on.
    pub page_fault: fn(&mut TrapFrame, addr: u64, code: PageFaultCode),
    /// Any other exception in user mode; interrupts are on. The error of a debug exception is what DR6 had.
    pub user_exception: fn(&mut TrapFrame, vector: u8, error: u64),
    /// The work flags are nonzero on the way to user mode; interrupts are on. Called until they
    /// are zero.
    pub exit_to_user: fn(&mut TrapFrame),
    /// The slice set by `time::timer::set_slice_end` is over; interrupts are off.
    pub timer: fn(),
    /// A look at what runs: whether user mode was interrupted. Interrupts are off; whether to look again.
    pub sample: fn(bool) -> bool,
}

extern "C" fn no_syscall(_: &mut TrapFrame) -> i64 {
    -38 // ENOSYS
}

fn no_page_fault(frame: &mut TrapFrame, addr: u64, code: PageFaultCode) {
    if frame.user_mode() || !extable::fixup(frame) {
        fatal(frame, Vector::PAGE_FAULT, u64::from(code.bits()), Some(addr));
    }
}

fn no_user_exception(frame: &mut TrapFrame, vector: u8, error: u64) {
    fatal(frame, vector, error, None);
}

static NO_HOOKS: TrapHooks = TrapHooks {
    syscalls: &[no_syscall; SYSCALLS],
    watched: |_| -38, // ENOSYS
    page_fault: no_page_fault,
    user_exception: no_user_exception,
    exit_to_user: |_| (),
    timer: || (),
    sample: |_| false,
};

static HOOKS: AtomicPtr<TrapHooks> = AtomicPtr::new((&raw const NO_HOOKS).cast_mut());

/// Registers the hooks of the upper floors; returns those that were registered before.
pub fn register(hooks: &'static TrapHooks) -> &'static TrapHooks {
    super::syscall::set_table(hooks.syscalls);
    // AcqRel: pairs with itself and with the Acquire in `hooks`.
    // SAFETY: only `&'static TrapHooks` are ever stored.
    unsafe { &*HOOKS.swap((&raw const *hooks).cast_mut(), Ordering::AcqRel) }
}

fn hooks() -> &'static TrapHooks {
    // Acquire: pairs with the Release in `register`.
    // SAFETY: only `&'static TrapHooks` are ever stored.
    unsafe { &*HOOKS.load(Ordering::Acquire) }
}

/// The system calls that are registered.
pub fn system_calls() -> &'static SyscallTable {
    hooks().syscalls
}

/// Runs the `timer` hook: the running task's slice is over.
pub fn timer_hook() {
    (hooks().timer)();
}

/// The table of tasks whose calls are watched: whatever the number, the hook `watched` is called.
pub(in crate::arch) static WATCHED_CALLS: SyscallTable = [watched_call; SYSCALLS];

extern "C" fn watched_call(frame: &mut TrapFrame) -> i64 {
    (hooks().watched)(frame)
}

/// Runs the `sample` hook.
pub fn sample_hook(from_user: bool) -> bool {
    (hooks().sample)(from_user)
}

/// The vectors that are named in code.
pub struct Vector;

impl Vector {
    pub const DEBUG: u8 = 1;
    pub const NMI: u8 = 2;
    pub const BREAKPOINT: u8 = 3;
    pub const DOUBLE_FAULT: u8 = 8;
    pub const PAGE_FAULT: u8 = 14;
}

/// What the manuals call each exception.
pub fn vector_name(vector: u8) -> &'static str {
    match vector {
        0 => "divide error",
        1 => "debug",
        2 => "NMI",
        3 => "int3",
        4 => "overflow",
        5 => "bounds",
        6 => "invalid opcode",
        7 => "device not available",
        8 => "double fault",
        10 => "invalid TSS",
        11 => "segment not present",
        12 => "stack segment",
        13 => "general protection fault",
        14 => "page fault",
        16 => "x87 FPU error",
        17 => "alignment check",
        18 => "machine check",
        19 => "SIMD floating-point error",
        20 => "virtualization exception",
        21 => "control protection",
        _ => "unexpected trap",
    }
}

/// Every vector but the paranoid ones arrives here, interrupts off, GS the kernel's.
pub(super) extern "C" fn trap_entry(frame: &mut TrapFrame, vector: u64, error: u64) {
    match vector as u8 {
        Vector::PAGE_FAULT => page_fault(frame, error),
        vector @ 0..32 => exception(frame, vector, error),
        vector => {
            let at = Interrupted { ip: frame.rip, bp: frame.rbp, from_user: frame.user_mode() };
            irq::dispatch(vector, at);
        }
    }
}

fn page_fault(frame: &mut TrapFrame, error: u64) {
    let addr: u64;
    // SAFETY: reads the faulting address before anything can fault again.
    unsafe {
        core::arch::asm!("mov {}, cr2", out(reg) addr, options(nomem, nostack, preserves_flags))
    };
    let code = PageFaultCode::from_bits_retain(error as u32);
    if !frame.user_mode() && extable::give_up(frame, addr) {
        return;
    }
    if !frame.user_mode() && !kernel_fault_is_user_access(frame, addr, code) {
        fatal(frame, Vector::PAGE_FAULT, error, Some(addr));
    }
    if code.contains(PageFaultCode::RESERVED) {
        fatal(frame, Vector::PAGE_FAULT, error, Some(addr));
    }
    if frame.rflags & FLAG_IF != 0 {
        cpu::irq_enable();
    }
    (hooks().page_fault)(frame, addr, code);
}

/// True when a kernel-mode fault may be a legitimate user access: a data access to the lower half
/// by an instruction that has an exception-table entry.
fn kernel_fault_is_user_access(frame: &TrapFrame, addr: u64, code: PageFaultCode) -> bool {
    addr < USER_HALF && !code.contains(PageFaultCode::FETCH) && extable::covers(frame.rip)
}

fn exception(frame: &mut TrapFrame, vector: u8, error: u64) {
    if frame.user_mode() {
        // Before another task may have one.
        let error = if vector == Vector::DEBUG { debug::take_status() } else { error };
        cpu::irq_enable();
        (hooks().user_exception)(frame, vector, error);
    } else if vector == Vector::BREAKPOINT {
        log::warn!("breakpoint at {:#x}", frame.rip);
    } else if !extable::fixup(frame) {
        fatal(frame, vector, error, None);
    }
}

/// #DB, NMI, #DF and #MC on their own stacks; interrupts off, the block found without GS.
pub(super) extern "C" fn paranoid_entry(frame: &mut TrapFrame, vector: u64, error: u64) {
    match vector as u8 {
        Vector::NMI => crate::arch::stop::on_nmi(frame),
        // A single step that user code carried into the kernel (a blocked #DB after MOV SS): SYSCALL
        // and the gates have cleared TF, so there is no second one.
        // Or a watchpoint on what the kernel has read or written for the program: only events count these.
        Vector::DEBUG => {
            frame.rflags &= !FLAG_TF;
            debug::note_met(debug::take_status(), frame.rip);
        }
        vector => fatal(frame, vector, error, None),
    }
}

/// On the way to user mode with work pending. Called and returns with interrupts off.
pub(super) extern "C" fn exit_work(frame: &mut TrapFrame) {
    // Relaxed: a flag that is set meanwhile by this CPU is seen; one that another CPU sets is followed by
    // an interrupt, which comes as soon as user mode is entered. Interrupts are off here.
    while percpu::work().load(Ordering::Relaxed) != 0 {
        cpu::irq_enable();
        (hooks().exit_to_user)(frame);
        cpu::irq_disable();
    }
}

/// True for the double fault that a push into a guard page becomes: the fault address is near the
/// stack pointer.
pub fn is_stack_overflow(frame: &TrapFrame, vector: u8) -> bool {
    let [_, cr2, ..] = cpu::control_registers();
    vector == Vector::DOUBLE_FAULT && !frame.user_mode() && cr2.abs_diff(frame.rsp) < 4096
}

/// Ends the kernel and says why: the trap, its error code, and the address if it was a page fault.
pub type Fatal = fn(&TrapFrame, vector: u8, error: u64, addr: Option<u64>) -> !;

static FATAL: Once<Fatal> = Once::new();

/// Registers what reports a trap that nothing can resolve; the boot order's first act.
pub fn set_fatal(fatal: Fatal) {
    FATAL.call_once(|| fatal);
}

/// Ends the kernel: a trap that nothing can resolve.
pub fn fatal(frame: &TrapFrame, vector: u8, error: u64, addr: Option<u64>) -> ! {
    cpu::irq_disable();
    match FATAL.get() {
        Some(fatal) => fatal(frame, vector, error, addr),
        None => panic!("{} at {:#x}, before the log", vector_name(vector), frame.rip),
    }
}
