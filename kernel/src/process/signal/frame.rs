//! The signal frame: what a handler finds on its stack, and the way back.
//!
//! Layout as Linux's `struct rt_sigframe`: red zone, extended state aligned to 64, frame so that `rsp` is
//! 8 below a multiple of 16, as after a call. Everything read back is the program's own and is
//! sanitised: user selectors, no privileged flag, a valid extended state.

use super::force;
use crate::arch::entry::frame::TrapFrame;
use crate::arch::task::fpu;
use crate::mm::user::{self, UserPtr};
use crate::process;
use crate::process::task::current::Current;
use abi::signal::{
    RtSigFrame, SaFlags, SigAction, SigContext, SigInfo, SigSet, Signal, UC_FP_XSTATE,
    UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS, UContext,
};
use abi::{Errno, Result};

/// What a function may use below its stack pointer (x86_64 psABI).
const RED_ZONE: u64 = 128;
const FPU_ALIGN: u64 = 64;

/// Makes `frame` enter the handler, with the interrupted context on the user stack.
///
/// # Errors
/// `EFAULT` if the stack cannot take it: then neither `frame` nor anything of the task has changed.
pub fn push(
    task: Current,
    frame: &mut TrapFrame,
    signal: Signal,
    info: &SigInfo,
    action: &SigAction,
    mask: SigSet,
) -> Result<()> {
    let flags = action.known_flags();
    if !flags.contains(SaFlags::RESTORER) {
        // x86_64 has no other way back: Linux refuses too.
        return Err(Errno::EFAULT);
    }
    let altstack = task.signals.altstack(frame.rsp);
    let on_alternate = flags.contains(SaFlags::ONSTACK);
    let place = task.signals.place_of_frame(frame.rsp, RED_ZONE, on_alternate);
    let fpstate = place.below.wrapping_sub(fpu::signal_size() as u64) & !(FPU_ALIGN - 1);
    let at = (fpstate.wrapping_sub(size_of::<RtSigFrame>() as u64) & !15).wrapping_sub(8);
    if !place.holds(at) {
        return Err(Errno::EFAULT);
    }
    let image = RtSigFrame {
        pretcode: action.restorer,
        uc: UContext {
            flags: UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
            link: 0,
            stack: altstack,
            mcontext: context_of(frame, fpstate, mask, info, signal),
            sigmask: mask,
        },
        info: *info,
    };
    let written = write_fpu(task, fpstate).and_then(|()| UserPtr::new(at).write(&image));
    if written.is_err() {
        // The registers count again.
        task.vectors().load();
        return written;
    }
    task.vectors().start_handler();
    task.signals.handler_entered();
    let uc = at + core::mem::offset_of!(RtSigFrame, uc) as u64;
    let siginfo = at + core::mem::offset_of!(RtSigFrame, info) as u64;
    frame.rdi = signal.number() as u64;
    frame.rsi = siginfo;
    frame.rdx = uc;
    frame.rax = 0;
    frame.rsp = at;
    frame.rip = action.handler;
    // Direction and trace flags are clear in a handler.
    frame.rflags &= !(1 << 10 | 1 << 8 | 1 << 16);
    frame.sanitize_user();
    Ok(())
}

/// Writes the extended state to `at`; afterwards the registers may count no more.
fn write_fpu(task: Current, at: u64) -> Result<()> {
    match task.vectors().save_to_user(at) {
        Some(saved) => saved.then_some(()).ok_or(Errno::EFAULT),
        None => user::write_bytes(at, task.vectors().signal_image()),
    }
}

fn context_of(
    frame: &TrapFrame,
    fpstate: u64,
    mask: SigSet,
    info: &SigInfo,
    signal: Signal,
) -> SigContext {
    let is_fault = SigSet::SYNCHRONOUS.contains(signal) && info.code > 0;
    let trap = if is_fault { process::current().last_trap() } else { Default::default() };
    SigContext {
        r8: frame.r8,
        r9: frame.r9,
        r10: frame.r10,
        r11: frame.r11,
        r12: frame.r12,
        r13: frame.r13,
        r14: frame.r14,
        r15: frame.r15,
        rdi: frame.rdi,
        rsi: frame.rsi,
        rbp: frame.rbp,
        rbx: frame.rbx,
        rdx: frame.rdx,
        rax: frame.rax,
        rcx: frame.rcx,
        rsp: frame.rsp,
        rip: frame.rip,
        eflags: frame.rflags,
        cs: frame.cs as u16,
        gs: 0,
        fs: 0,
        ss: frame.ss as u16,
        err: trap.error,
        trapno: trap.vector,
        oldmask: mask.0,
        cr2: trap.address,
        fpstate,
        reserved: [0; 8],
    }
}

/// `rt_sigreturn`: takes the context back from the frame that `rsp` is just above. Returns what goes to
/// `rax`; a bad frame raises SIGSEGV, as nothing better can be returned to.
pub fn sigreturn(frame: &mut TrapFrame) -> i64 {
    let task = process::current();
    match restore(task, frame) {
        Ok(()) => frame.return_value(),
        Err(_) => {
            force::force_fault(Signal::SIGSEGV, abi::signal::code::SI_KERNEL, 0);
            0
        }
    }
}

fn restore(task: Current, frame: &mut TrapFrame) -> Result<()> {
    // The handler's `ret` has taken `pretcode` off the stack. The stack pointer is the program's: any number.
    const UC: u64 = core::mem::offset_of!(RtSigFrame, uc) as u64;
    let at = frame.rsp.wrapping_sub(8);
    let uc = UserPtr::<UContext>::new(at.wrapping_add(UC)).read()?;
    let handler_stack = frame.rsp;
    super::change::set_blocked(&task, uc.sigmask);
    let c = &uc.mcontext;
    frame.r8 = c.r8;
    frame.r9 = c.r9;
    frame.r10 = c.r10;
    frame.r11 = c.r11;
    frame.r12 = c.r12;
    frame.r13 = c.r13;
    frame.r14 = c.r14;
    frame.r15 = c.r15;
    frame.rdi = c.rdi;
    frame.rsi = c.rsi;
    frame.rbp = c.rbp;
    frame.rbx = c.rbx;
    frame.rdx = c.rdx;
    frame.rax = c.rax;
    frame.rcx = c.rcx;
    frame.rsp = c.rsp;
    frame.rip = c.rip;
    frame.take_user_flags(c.eflags);
    frame.sanitize_user();
    // Last, as on Linux: with a state that no CPU has, SIGSEGV finds the other registers restored.
    if let Err(error) = restore_fpu(task, uc.mcontext.fpstate) {
        task.vectors().reset();
        return Err(error);
    }
    // One that is in use stays, even if the handler has put it there itself.
    task.signals.restore_altstack(handler_stack, uc.stack);
    Ok(())
}

/// The state at `addr`, or that of a new program if there is none.
fn restore_fpu(task: Current, addr: u64) -> Result<()> {
    if addr == 0 {
        task.vectors().reset();
        return Ok(());
    }
    if task.vectors().load_from_user(addr) {
        return Ok(());
    }
    task.vectors()
        .read_signal_image(|image| user::read_partial(addr, image))
        .map_err(|_| Errno::EFAULT)
}
