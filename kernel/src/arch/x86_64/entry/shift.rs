//! `randomize_kstack_offset=on`: each system call begins at another place of its task's kernel stack, one of 64, as on Linux.
//!
//! The entry calls through a table; with the option it is a table of one function, which moves the stack pointer down and then
//! calls what the number names. So without it nothing is different. The place is the time-stamp counter times a secret
//! number: who knows the counter alone cannot tell it. Who could see many places could compute the number.
//!
//! Owns that secret and the table of what is called. Never changed once programs run. Locks: none.

use super::frame::{SYSCALLS, SyscallTable, TrapFrame};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Relaxed, with the two below: each is written before the first program that needs it, and always to the same.
static SECRET: AtomicU64 = AtomicU64::new(0);
/// The calls themselves.
static CALLS: AtomicPtr<SyscallTable> = AtomicPtr::new(core::ptr::null_mut());
/// What is called instead of them for tasks whose calls are watched.
static WATCHED: AtomicPtr<SyscallTable> = AtomicPtr::new(core::ptr::null_mut());

static SHIFTED: SyscallTable = [shifted; SYSCALLS];
static SHIFTED_WATCHED: SyscallTable = [shifted_watched; SYSCALLS];

/// The option is given: [`table`] and [`watched`] give other tables from now on.
pub fn begin(secret: u64) {
    // Even numbers would leave the highest bits of the product to fewer of the counter's.
    SECRET.store(secret | 1, Ordering::Relaxed);
}

/// Whether the option is given.
pub(in crate::arch) fn is_on() -> bool {
    SECRET.load(Ordering::Relaxed) != 0
}

/// What the entry shall call through so that `calls` are called.
pub(in crate::arch) fn table(calls: &'static SyscallTable) -> &'static SyscallTable {
    CALLS.store((&raw const *calls).cast_mut(), Ordering::Relaxed);
    if is_on() { &SHIFTED } else { calls }
}

/// The same for tasks whose calls are watched.
pub(in crate::arch) fn watched(watched: &'static SyscallTable) -> &'static SyscallTable {
    WATCHED.store((&raw const *watched).cast_mut(), Ordering::Relaxed);
    if is_on() { &SHIFTED_WATCHED } else { watched }
}

/// A function that is called with the frame in rdi and the number of the call in rax, and calls what a table has for it.
macro_rules! shifted {
    ($name:ident, $calls:ident) => {
        #[unsafe(naked)]
        extern "C" fn $name(frame: &mut TrapFrame) -> i64 {
            naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "mov ecx, eax",
                "rdtsc",
                "shl rdx, 32",
                "or rax, rdx",
                "imul rax, [rip + {secret}]",
                "shr rax, 58",
                "shl eax, 4",
                "sub rsp, rax",
                "mov rax, [rip + {calls}]",
                "call qword ptr [rax + rcx * 8]",
                "mov rsp, rbp",
                "pop rbp",
                "ret",
                secret = sym SECRET,
                calls = sym $calls,
            )
        }
    };
}

shifted!(shifted, CALLS);
shifted!(shifted_watched, WATCHED);
