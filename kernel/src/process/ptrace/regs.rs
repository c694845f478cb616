//! A tracee's registers, as its tracer sees and sets them.

use crate::arch::entry::frame::{self, TrapFrame};
use crate::arch::task::switch;
use crate::base::page::USER_END;
use crate::process::task::flags::LeavesByIret;
use abi::ptrace::Regs;
use abi::{Errno, Result};

/// The flags that a tracer may change: those of a signal's frame, and the nested-task flag, as on Linux.
const USER_FLAGS: u64 = frame::USER_FLAGS | 1 << 14;

/// The registers of the running task, whose user registers are `frame`.
pub(in crate::process) fn take(frame: &TrapFrame) -> Regs {
    Regs {
        r15: frame.r15,
        r14: frame.r14,
        r13: frame.r13,
        r12: frame.r12,
        rbp: frame.rbp,
        rbx: frame.rbx,
        r11: frame.r11,
        r10: frame.r10,
        r9: frame.r9,
        r8: frame.r8,
        rax: frame.rax,
        rcx: frame.rcx,
        rdx: frame.rdx,
        rsi: frame.rsi,
        rdi: frame.rdi,
        orig_rax: frame.orig_rax,
        rip: frame.rip,
        cs: frame.cs,
        rflags: frame.rflags,
        rsp: frame.rsp,
        ss: frame.ss,
        fs_base: switch::fs_base(),
        gs_base: switch::user_gs_base(),
        ..Regs::default()
    }
}

/// Gives the running task, whose user registers are `frame`, those that [`set`] has checked.
pub(super) fn put(frame: &mut TrapFrame, regs: &Regs, _way: &LeavesByIret) {
    *frame = TrapFrame {
        r15: regs.r15,
        r14: regs.r14,
        r13: regs.r13,
        r12: regs.r12,
        rbp: regs.rbp,
        rbx: regs.rbx,
        r11: regs.r11,
        r10: regs.r10,
        r9: regs.r9,
        r8: regs.r8,
        rax: regs.rax,
        rcx: regs.rcx,
        rdx: regs.rdx,
        rsi: regs.rsi,
        rdi: regs.rdi,
        orig_rax: regs.orig_rax,
        rip: regs.rip,
        rflags: frame.rflags & !USER_FLAGS | regs.rflags & USER_FLAGS,
        rsp: regs.rsp,
        ..*frame
    };
    switch::set_fs_base(regs.fs_base);
    switch::set_user_gs_base(regs.gs_base);
}

/// Sets the word `at` of the registers.
///
/// # Errors
/// `EIO` for what no user program may have: another segment than Linux's, a base beyond user space.
pub(super) fn set(regs: &mut Regs, at: usize, value: u64) -> Result<()> {
    use core::mem::offset_of;
    const fn word(offset: usize) -> usize {
        offset / 8
    }
    const CS: usize = word(offset_of!(Regs, cs));
    const SS: usize = word(offset_of!(Regs, ss));
    const DS: usize = word(offset_of!(Regs, ds));
    const GS: usize = word(offset_of!(Regs, gs));
    const RFLAGS: usize = word(offset_of!(Regs, rflags));
    const FS_BASE: usize = word(offset_of!(Regs, fs_base));
    const GS_BASE: usize = word(offset_of!(Regs, gs_base));
    let words: &mut [u64; abi::ptrace::REGS] = zerocopy::transmute_mut!(regs);
    let place = words.get_mut(at).ok_or(Errno::EIO)?;
    match at {
        // There are no other selectors: what is not the one that is there is as bad as Linux's invalid ones.
        CS | SS | DS..=GS => {
            if value != *place {
                return Err(Errno::EIO);
            }
        }
        FS_BASE | GS_BASE if value >= USER_END => return Err(Errno::EIO),
        RFLAGS => *place = *place & !USER_FLAGS | value & USER_FLAGS,
        _ => *place = value,
    }
    Ok(())
}
