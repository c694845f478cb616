//! [`TrapFrame`]: the registers of interrupted code, in Linux's pt_regs order, and the types of the system-call table.
//!
//! Owns the invariants of a user frame: user selectors, interrupts on, no privileged flag. Must never allocate. No locks.

use super::gdt;
use crate::base::page::USER_END;

/// All registers of the interrupted or calling code, at the top of its kernel stack.
///
/// `orig_rax` is the system call number inside a system call and -1 in every other trap. Setting it
/// to -1 (`mark_changed`) makes the return from a system call restore every register, including
/// rcx, r11 and the callee-saved ones, by IRET.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TrapFrame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

/// Offsets for the assembly.
pub(super) mod frame_offset {
    use super::TrapFrame;
    use core::mem::offset_of;
    pub const RAX: usize = offset_of!(TrapFrame, rax);
    pub const RCX: usize = offset_of!(TrapFrame, rcx);
    pub const R11: usize = offset_of!(TrapFrame, r11);
    pub const RIP: usize = offset_of!(TrapFrame, rip);
    pub const RFLAGS: usize = offset_of!(TrapFrame, rflags);
    pub const CS: usize = offset_of!(TrapFrame, cs);
    pub const RSP: usize = offset_of!(TrapFrame, rsp);
    pub const SS: usize = offset_of!(TrapFrame, ss);
    pub const RDI: usize = offset_of!(TrapFrame, rdi);
    pub const ORIG_RAX: usize = offset_of!(TrapFrame, orig_rax);
    pub const SIZE: usize = size_of::<TrapFrame>();
}

/// RFLAGS bits that user code may change through sigreturn (Linux's FIX_EFLAGS).
pub const USER_FLAGS: u64 = 0x0005_0dd5;

/// RFLAGS bits that user code can set itself, and that a signal leaves as they are: nested task, and the one that shows CPUID.
const KEPT_FLAGS: u64 = 1 << 14 | 1 << 21;

/// Interrupt flag, always on in user mode.
pub const FLAG_IF: u64 = 1 << 9;

/// Single-step flag.
pub const FLAG_TF: u64 = 1 << 8;

/// The next instruction meets no breakpoint.
pub const FLAG_RF: u64 = 1 << 16;

impl TrapFrame {
    /// A fresh user-mode frame: all registers zero, interrupts on.
    pub fn new_user(ip: u64, sp: u64) -> Self {
        Self {
            orig_rax: u64::MAX,
            rip: ip,
            cs: u64::from(gdt::USER_CODE),
            rflags: FLAG_IF | 2,
            rsp: sp,
            ss: u64::from(gdt::USER_DATA),
            ..Self::default()
        }
    }

    /// True when the trap came from user mode.
    #[inline]
    pub fn user_mode(&self) -> bool {
        self.cs & 3 != 0
    }

    /// True inside a system call whose result has not been replaced by another context.
    #[inline]
    pub fn in_syscall(&self) -> bool {
        // The low half, as the entry looks at it; a call that there is none of is one all the same.
        self.orig_rax as i32 != -1
    }

    /// The system call number.
    #[inline]
    pub fn syscall_number(&self) -> u64 {
        self.orig_rax
    }

    /// The six system call arguments.
    #[inline]
    pub fn syscall_args(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// The value that the system call returns.
    #[inline]
    pub fn set_return(&mut self, value: i64) {
        self.rax = value as u64;
    }

    /// The value that the system call is about to return.
    #[inline]
    pub fn return_value(&self) -> i64 {
        self.rax as i64
    }

    /// Makes the return restore the whole frame, exactly as written. Must be called by anything
    /// that replaces registers other than rax inside a system call (exec, sigreturn, ptrace).
    #[inline]
    pub fn mark_changed(&mut self) {
        self.orig_rax = u64::MAX;
    }

    /// Makes the return from a system call an IRET if SYSRET, which takes rip and flags from rcx and r11, would do something
    /// else: a tracer may have set any of them.
    #[inline]
    pub fn leave_as_it_stands(&mut self) {
        if self.rcx != self.rip || self.r11 != self.rflags || self.rip >= USER_END {
            self.mark_changed();
        }
    }

    /// Takes the flags that a program may set from a context that is its own; the others stay as they are, as on Linux.
    pub fn take_user_flags(&mut self, flags: u64) {
        self.rflags = self.rflags & !USER_FLAGS | flags & USER_FLAGS;
    }

    /// Forces the segment and flag invariants of a user frame whose registers came from user
    /// memory (sigreturn): user selectors, interrupts on, no privileged flag.
    pub fn sanitize_user(&mut self) {
        self.cs = u64::from(gdt::USER_CODE);
        self.ss = u64::from(gdt::USER_DATA);
        self.rflags = self.rflags & (USER_FLAGS | KEPT_FLAGS) | FLAG_IF | 2;
        self.mark_changed();
    }
}

/// One system call.
pub type SyscallEntry = extern "C" fn(&mut TrapFrame) -> i64;

/// The length of the system-call table.
pub const SYSCALLS: usize = 512;

/// The system calls by number. The entry code takes the low 32 bits of rax and turns every number that
/// is too great into the last one, so the last entry must be the answer to unknown calls.
pub type SyscallTable = [SyscallEntry; SYSCALLS];
