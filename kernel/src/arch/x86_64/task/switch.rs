//! The context switch and the first stack of a new task.
//!
//! Owns what lies on a kernel stack while its task does not run: the callee-saved registers and a
//! return address. Switching is done with interrupts off, by the scheduler only; FPU state, FS/GS
//! bases, CR3 and the per-CPU task pointer are switched by it beside this (`fpu`, `set_fs_base`,
//! `percpu::set_current`).
//!
//! Never called with interrupts on: who switches vouches for it. Locks: none.

use core::arch::{asm, naked_asm};

use crate::arch::copy::site::{purge_site_macros, site_macros};
use crate::arch::entry::frame::TrapFrame;
use crate::base::page::USER_HALF;
use crate::base::{cpu, msr};

/// A task that does not run: its kernel stack pointer.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    rsp: u64,
}

impl Context {
    /// A context to be filled by the first switch away from it.
    pub const fn empty() -> Self {
        Self { rsp: 0 }
    }
}

/// What a new kernel stack starts with, lowest address first.
#[repr(C)]
struct FirstFrame {
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    rbx: u64,
    rbp: u64,
    start: u64,
    /// Ends the frame-pointer chain and keeps the stack aligned.
    end: [u64; 2],
}

/// Saves the running task in `prev` and resumes `next`; returns when something switches back.
///
/// # Safety
/// Interrupts are off. `prev` belongs to the running task, `next` to a task that does not run on
/// any CPU and whose stack is mapped; per-CPU state was set for `next` already.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(prev: *mut Context, next: *const Context) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        site_macros!(),
        "771:",
        "mov [rdi], rsp",
        "mov rsp, [rsi]",
        "DETOUR NEED_FILL, alea_switch_filling",
        purge_site_macros!(),
        "alea_switch_goes_on:",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        // The same where programs could be led by each other's returns: 32 calls, none of which is returned from.
        "alea_switch_filling:",
        "mov [rdi], rsp",
        "mov rsp, [rsi]",
        "mov ecx, 16",
        "2:",
        "call 3f",
        "int3",
        "3:",
        "call 4f",
        "int3",
        "4:",
        "add rsp, 16",
        "dec ecx",
        "jnz 2b",
        "lfence",
        "jmp alea_switch_goes_on",
    )
}

/// A stack that starts in `entry(arg)` with interrupts off; `entry` must not return.
///
/// # Safety
/// `stack_top` is the 16-byte aligned top of an unused, mapped kernel stack.
pub unsafe fn prepare_kernel_stack(
    stack_top: u64,
    entry: extern "C" fn(usize) -> !,
    arg: usize,
) -> Context {
    let start = start_kernel as *const () as u64;
    // SAFETY: passed on.
    unsafe { prepare(stack_top, start, entry as *const () as u64, arg) }
}

/// A stack whose task calls `first(arg)` with interrupts off (the scheduler's second half), then
/// goes to user mode with `frame`, which is copied to the top of the stack. Returns the context and
/// the frame's address.
///
/// # Safety
/// As `prepare_kernel_stack`.
pub unsafe fn prepare_user_stack(
    stack_top: u64,
    frame: &TrapFrame,
    first: extern "C" fn(usize),
    arg: usize,
) -> (Context, *mut TrapFrame) {
    let place = (stack_top as *mut TrapFrame).wrapping_sub(1);
    // SAFETY: the caller owns the stack.
    unsafe {
        place.write(*frame);
        let start = start_user as *const () as u64;
        // One word keeps `prepare`'s stack aligned: a frame is 21 words.
        (prepare(place as u64 - 8, start, first as *const () as u64, arg), place)
    }
}

/// Where the user frame of the task with this kernel stack lies.
pub fn user_frame(stack_top: u64) -> *mut TrapFrame {
    (stack_top as *mut TrapFrame).wrapping_sub(1)
}

/// # Safety
/// `top` is 16-byte aligned and the stack below it is free.
unsafe fn prepare(top: u64, start: u64, entry: u64, arg: usize) -> Context {
    let place = (top as *mut FirstFrame).wrapping_sub(1);
    // SAFETY: the caller owns the stack.
    unsafe {
        place.write(FirstFrame {
            r15: 0,
            r14: 0,
            r13: arg as u64,
            r12: entry,
            rbx: 0,
            rbp: 0,
            start,
            end: [0; 2],
        });
    }
    Context { rsp: place as u64 }
}

#[unsafe(naked)]
unsafe extern "C" fn start_kernel() {
    naked_asm!("mov rdi, r13", "call r12", "ud2")
}

#[unsafe(naked)]
unsafe extern "C" fn start_user() {
    // rsp points at `FirstFrame::end`; the user frame lies above it and the alignment word.
    naked_asm!("mov rdi, r13", "call r12", "add rsp, 24", "jmp alea_fork_return")
}

/// Sets the FS base of the running task.
#[inline]
pub fn set_fs_base(base: u64) {
    // SAFETY: the kernel does not use FS; the value is canonical by the caller's check, and a
    // non-canonical one is refused here because both instructions would fault.
    unsafe {
        let base = canonical_user(base);
        if cpu::features().fsgsbase {
            asm!("wrfsbase {}", in(reg) base, options(nomem, nostack, preserves_flags));
        } else {
            msr::write(msr::FS_BASE, base);
        }
    }
}

/// The FS base of the running task.
#[inline]
pub fn fs_base() -> u64 {
    // SAFETY: reading has no effect.
    unsafe {
        if cpu::features().fsgsbase {
            let base: u64;
            asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
            base
        } else {
            msr::read(msr::FS_BASE)
        }
    }
}

/// Sets the user GS base of the running task (inactive while in the kernel).
#[inline]
pub fn set_user_gs_base(base: u64) {
    let base = canonical_user(base);
    if cpu::features().fsgsbase {
        // SAFETY: the user's base is active for just one instruction; interrupts are off, and an NMI
        // trusts no GS.
        cpu::without_interrupts(|| unsafe {
            asm!("swapgs", "wrgsbase {}", "swapgs", in(reg) base, options(nostack, preserves_flags));
        });
    } else {
        // SAFETY: the inactive base is the user's.
        unsafe { msr::write(msr::KERNEL_GS_BASE, base) };
    }
}

/// The user GS base of the running task. With FSGSBASE the user may have changed it.
#[inline]
pub fn user_gs_base() -> u64 {
    if !cpu::features().fsgsbase {
        // SAFETY: reading has no effect.
        return unsafe { msr::read(msr::KERNEL_GS_BASE) };
    }
    // SAFETY: as in `set_user_gs_base`.
    cpu::without_interrupts(|| unsafe {
        let base: u64;
        asm!("swapgs", "rdgsbase {}", "swapgs", out(reg) base, options(nostack, preserves_flags));
        base
    })
}

fn canonical_user(base: u64) -> u64 {
    if base < USER_HALF { base } else { 0 }
}
