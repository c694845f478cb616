//! What becomes of a program's faults: memory faults resolved or turned into signals, other exceptions
//! into the signal that Linux sends.
//!
//! Runs in the faulting task with interrupts on. A kernel access to user memory that cannot be resolved
//! continues at its exception-table fixup and becomes `EFAULT` there.

use super::oom;
use crate::arch::entry::extable;
use crate::arch::entry::frame::TrapFrame;
use crate::arch::entry::trap::PageFaultCode;
use crate::base::page::USER_HALF;
use crate::base::tsc;
use crate::mm::space::request::{Fault, FaultAccess};
use crate::process::perf;
use crate::process::ptrace;
use crate::process::signal;
use crate::process::task::current::{Current, current};
use crate::trace::{self, Event, Point};
use abi::signal::{Signal, code};

/// The exception that the running task met last, for the signal frame.
#[derive(Clone, Copy, Default, Debug)]
pub struct LastTrap {
    pub vector: u64,
    pub error: u64,
    /// CR2 of a page fault.
    pub address: u64,
}

const VECTOR_PAGE_FAULT: u64 = 14;

/// The page-fault hook: user-mode faults, and kernel faults on user addresses.
pub fn page_fault(frame: &mut TrapFrame, addr: u64, fault_code: PageFaultCode) {
    let task = current();
    let access = if fault_code.contains(PageFaultCode::FETCH) {
        FaultAccess::Exec
    } else if fault_code.contains(PageFaultCode::WRITE) {
        FaultAccess::Write
    } else {
        FaultAccess::Read
    };
    task.times.count_fault();
    let resolved = if trace::wanted(Point::Fault) {
        told(frame, addr, fault_code, || task.mm().fault(addr, access))
    } else {
        task.mm().fault(addr, access)
    };
    if let Err(fault) = resolved {
        failed(task, frame, addr, fault_code, fault);
    }
}

/// A fault that no mapping resolves: memory is waited for, or a signal is sent.
#[cold]
#[inline(never)]
fn failed(
    task: Current,
    frame: &mut TrapFrame,
    addr: u64,
    fault_code: PageFaultCode,
    fault: Fault,
) {
    if matches!(fault, Fault::Oom | Fault::OomDroppable) {
        if frame.user_mode() || !task.process().is_exiting() {
            match fault {
                Fault::Oom => oom::out_of_memory(),
                _ => oom::wait_for_memory(),
            }
        }
        // The access is tried again, unless it was this task that had to die. Who exits does without: all others
        // wait for what it will give back.
        if frame.user_mode() || !(signal::killed(&task) || task.process().is_exiting()) {
            return;
        }
    }
    let fault_code = shown_code(addr, fault_code);
    if !frame.user_mode() {
        if !extable::fixup(frame) {
            panic!("kernel access to user address {addr:#x} at {:#x} has no fixup", frame.rip);
        }
        return;
    }
    task.set_last_trap(LastTrap {
        vector: VECTOR_PAGE_FAULT,
        error: u64::from(fault_code.bits()),
        address: addr,
    });
    match fault {
        Fault::SegvMap => signal::force_fault(Signal::SIGSEGV, code::SEGV_MAPERR, addr),
        Fault::SegvAcc => signal::force_fault(Signal::SIGSEGV, code::SEGV_ACCERR, addr),
        Fault::Bus => signal::force_fault(Signal::SIGBUS, code::BUS_ADRERR, addr),
        Fault::Oom | Fault::OomDroppable => unreachable!("handled above"),
    }
}

#[cold]
#[inline(never)]
fn told<T>(
    frame: &TrapFrame,
    address: u64,
    fault: PageFaultCode,
    resolve: impl FnOnce() -> T,
) -> T {
    let (start, code) = (tsc::read(), shown_code(address, fault).bits());
    let resolved = resolve();
    trace::at(Point::Fault, || Event::Fault { address, ip: frame.rip, bp: frame.rbp, code, start });
    resolved
}

/// A fault's code for who may not know which addresses of the kernel are mapped: as on Linux all are.
fn shown_code(addr: u64, code: PageFaultCode) -> PageFaultCode {
    if addr < USER_HALF { code } else { code | PageFaultCode::PRESENT }
}

/// The hook for every other exception in user mode.
pub fn user_exception(frame: &mut TrapFrame, vector: u8, error: u64) {
    let task = current();
    let error = match vector {
        1 => match perf::hit(task, frame, error) {
            0 if error != 0 => return,
            left => left,
        },
        _ => error,
    };
    // What a debug exception was is not an error code that its frame would have.
    let shown = if vector == 1 { 0 } else { error };
    task.set_last_trap(LastTrap { vector: vector.into(), error: shown, address: 0 });
    let (signal, code, addr) = classify(task, frame, vector, error);
    signal::force_fault(signal, code, addr);
}

fn classify(task: Current, frame: &mut TrapFrame, vector: u8, error: u64) -> (Signal, i32, u64) {
    match vector {
        0 => (Signal::SIGFPE, code::FPE_INTDIV, frame.rip),
        1 => (Signal::SIGTRAP, ptrace::debug_code(task, frame, error), frame.rip),
        3 => (Signal::SIGTRAP, code::SI_KERNEL, 0),
        6 => (Signal::SIGILL, code::ILL_ILLOPN, frame.rip),
        16 | 19 => (Signal::SIGFPE, task.vectors().exception_code(vector), frame.rip),
        11 | 12 => (Signal::SIGBUS, code::SI_KERNEL, 0),
        17 => (Signal::SIGBUS, code::BUS_ADRALN, 0),
        // Overflow, bound, general protection and the rest.
        _ => (Signal::SIGSEGV, code::SI_KERNEL, 0),
    }
}
