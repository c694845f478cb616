//! Restartable sequences: a thread's word of which CPU it runs on, and short code that must not be
//! interrupted half-way.
//!
//! Owns where each thread has its `struct rseq`. Costs something only when a registered thread is preempted
//! or sleeps in a fault, comes to another CPU, or gets a signal: then, on its way to user mode, the numbers are
//! brought up to date, and a sequence that it is in is left by its abort address. All of it is the program's
//! memory: whatever is wrong there is answered with SIGSEGV. No locks.

use super::process::Process;
use super::task::Task;
use super::work;
use crate::arch::entry::frame::TrapFrame;
use crate::base::page::USER_END;
use crate::base::percpu;
use crate::mm::user::{self, UserPtr};
use crate::process::signal;
use abi::signal::{Signal, code};
use abi::{Errno, Result};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Size of `struct rseq` when it was new, and its alignment then.
pub const ORIGINAL_SIZE: u32 = 32;
/// Bytes of it that have a meaning: what `AT_RSEQ_FEATURE_SIZE` says.
pub const FEATURE_SIZE: u32 = 28;
/// What `AT_RSEQ_ALIGN` says.
pub const ALIGN: u64 = 32;

const CPU_IDS: u64 = 0;
const POINTER: u64 = 8;
const FLAGS: u64 = 16;
const NODE_AND_CID: u64 = 20;
/// `cpu_id` of a thread that is not registered.
const UNINITIALIZED: u32 = u32::MAX;

/// Where a thread has its structure. Relaxed everywhere: the thread itself writes and reads it, or the one that
/// makes it.
pub struct Rseq {
    /// 0: not registered.
    addr: AtomicU64,
    len: AtomicU32,
    signature: AtomicU32,
    /// The CPU that was written there last.
    cpu: AtomicU32,
}

impl Rseq {
    /// Not registered.
    pub const fn new() -> Self {
        Self {
            addr: AtomicU64::new(0),
            len: AtomicU32::new(0),
            signature: AtomicU32::new(0),
            cpu: AtomicU32::new(UNINITIALIZED),
        }
    }

    fn addr(&self) -> u64 {
        self.addr.load(Ordering::Relaxed)
    }

    /// Address, length and signature of what is registered; all zero if nothing is.
    pub(in crate::process) fn registered(&self) -> (u64, u32, u32) {
        let order = Ordering::Relaxed;
        (self.addr(), self.len.load(order), self.signature.load(order))
    }

    fn set(&self, addr: u64, len: u32, signature: u32) {
        let order = Ordering::Relaxed;
        self.cpu.store(UNINITIALIZED, order);
        self.len.store(len, order);
        self.signature.store(signature, order);
        self.addr.store(addr, order);
    }

    /// A new program has none.
    pub fn clear(&self) {
        if self.addr() != 0 {
            self.set(0, 0, 0);
        }
    }

    /// A forked child has a copy of its parent's.
    pub(in crate::process) fn inherit(&self, parent: &Self) {
        let order = Ordering::Relaxed;
        let addr = parent.addr();
        if addr != 0 {
            self.set(addr, parent.len.load(order), parent.signature.load(order));
            self.cpu.store(parent.cpu.load(order), order);
        }
    }

    /// The task is switched to, on this CPU: it may be another one than last time, or than its parent's.
    #[inline]
    pub(in crate::process) fn switched_in(&self, task: &Task, cpu: usize) {
        if self.addr() != 0 && self.cpu.load(Ordering::Relaxed) != cpu as u32 {
            task.set_work(work::RSEQ);
        }
    }

    /// The running task is switched away from. In a system call it is in no sequence, which must make none.
    #[inline]
    pub(in crate::process) fn switched_out(&self, task: &Task) {
        if self.addr() != 0 && !task.is_in_call() {
            task.set_work(work::RSEQ);
        }
    }

    /// Whether this is what is registered: `EINVAL` if not, `EPERM` with another signature.
    fn matches(&self, addr: u64, len: u32, signature: u32) -> Result<()> {
        if self.addr() != addr || self.len.load(Ordering::Relaxed) != len {
            return Err(Errno::EINVAL);
        }
        if self.signature.load(Ordering::Relaxed) != signature { Err(Errno::EPERM) } else { Ok(()) }
    }
}

/// `rseq(2)` without flags.
pub fn register(addr: u64, len: u32, signature: u32) -> Result<()> {
    let task = super::current::current();
    if task.rseq.addr() != 0 {
        task.rseq.matches(addr, len, signature)?;
        return Err(Errno::EBUSY);
    }
    let align = if len == ORIGINAL_SIZE { u64::from(ORIGINAL_SIZE) } else { ALIGN };
    if len < ORIGINAL_SIZE || !addr.is_multiple_of(align) {
        return Err(Errno::EINVAL);
    }
    if !user::in_range(addr, len as usize) {
        return Err(Errno::EFAULT);
    }
    // What an earlier user of the memory left there means nothing.
    if read_word(addr + POINTER)? != 0 {
        user::write_bytes(addr + POINTER, &[0; 8])?;
    }
    task.rseq.set(addr, len, signature);
    if write_numbers(&task.rseq).is_err() {
        fail();
    }
    Ok(())
}

/// `rseq(2)` with `RSEQ_FLAG_UNREGISTER`.
pub fn unregister(addr: u64, len: u32, signature: u32) -> Result<()> {
    let rseq = &super::current::current().rseq;
    if rseq.addr() == 0 {
        return Err(Errno::EINVAL);
    }
    rseq.matches(addr, len, signature)?;
    write_words(addr + CPU_IDS, [0, UNINITIALIZED])?;
    write_words(addr + NODE_AND_CID, [0, 0])?;
    rseq.set(0, 0, 0);
    Ok(())
}

/// On the way to user mode after a switch.
pub fn resume(task: &Task, frame: &mut TrapFrame) {
    task.clear_work(work::RSEQ);
    bring_up_to_date(task, frame);
}

/// A handler is about to run: what it interrupts is a sequence no longer.
#[inline]
pub fn before_handler(task: &Task, frame: &mut TrapFrame) {
    if task.rseq.addr() != 0 {
        bring_up_to_date(task, frame);
    }
}

fn bring_up_to_date(task: &Task, frame: &mut TrapFrame) {
    let addr = task.rseq.addr();
    if addr != 0
        && leave_sequence(&task.rseq, addr, frame).and_then(|()| update(&task.rseq)).is_err()
    {
        fail();
    }
}

#[cold]
fn fail() {
    signal::force_fault(Signal::SIGSEGV, code::SI_KERNEL, 0);
}

fn update(rseq: &Rseq) -> Result<()> {
    if rseq.cpu.load(Ordering::Relaxed) == percpu::cpu_id() as u32 {
        return Ok(());
    }
    write_numbers(rseq)
}

/// Whoever sleeps in this and wakes on another CPU comes here again on its way to user mode.
fn write_numbers(rseq: &Rseq) -> Result<()> {
    let (addr, cpu) = (rseq.addr(), percpu::cpu_id() as u32);
    write_words(addr + CPU_IDS, [cpu, cpu])?;
    // There is one node. A CPU's number is unique among the threads that run.
    write_words(addr + NODE_AND_CID, [0, cpu])?;
    rseq.cpu.store(cpu, Ordering::Relaxed);
    Ok(())
}

fn write_words(addr: u64, words: [u32; 2]) -> Result<()> {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&words[0].to_ne_bytes());
    bytes[4..].copy_from_slice(&words[1].to_ne_bytes());
    user::write_bytes(addr, &bytes)
}

fn read_word(addr: u64) -> Result<u64> {
    UserPtr::<u64>::new(addr).read()
}

/// If the thread is in a sequence, it goes on at the abort address.
#[inline]
fn leave_sequence(rseq: &Rseq, addr: u64, frame: &mut TrapFrame) -> Result<()> {
    match read_word(addr + POINTER)? {
        0 => Ok(()),
        descriptor => abort(rseq, addr, descriptor, frame),
    }
}

#[cold]
fn abort(rseq: &Rseq, addr: u64, descriptor: u64, frame: &mut TrapFrame) -> Result<()> {
    if descriptor >= USER_END {
        return Err(Errno::EINVAL);
    }
    let [head, start, len, target] = UserPtr::<[u64; 4]>::new(descriptor).read()?;
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    let (version, flags) = (head as u32, (head >> 32) as u32);
    if start >= USER_END || end >= USER_END || target >= USER_END || version != 0 {
        return Err(Errno::EINVAL);
    }
    if target.wrapping_sub(start) < len {
        return Err(Errno::EINVAL);
    }
    let signature = user::read_u32(target.wrapping_sub(4))?;
    if signature != rseq.signature.load(Ordering::Relaxed) {
        return Err(Errno::EINVAL);
    }
    if frame.rip.wrapping_sub(start) >= len {
        // Left, or not entered yet.
        return user::write_bytes(addr + POINTER, &[0; 8]);
    }
    if flags != 0 || user::read_u32(addr + FLAGS)? != 0 {
        return Err(Errno::EINVAL);
    }
    user::write_bytes(addr + POINTER, &[0; 8])?;
    frame.rip = target;
    if frame.in_syscall() {
        frame.mark_changed();
    }
    Ok(())
}

/// `membarrier`'s part: every thread of the process leaves its sequence before it runs on.
pub fn abort_all(process: &Process) {
    process.for_each_thread(&mut |thread| {
        if thread.rseq.addr() != 0 {
            thread.set_work(work::RSEQ);
        }
    });
}
