//! SYSCALL entry and the ways into user mode.
//!
//! Owns the entry assembly and the MSRs behind it. The entry builds a full `TrapFrame` at the top of
//! the task's kernel stack, calls the table's entry with interrupts on, and leaves by SYSRET
//! when nothing but rax was changed and no work is pending; by IRET otherwise.
//!
//! Why SYSRET is safe here: rcx and r11 come from the frame of a system call that nothing marked as
//! changed, so rip is what the CPU itself stored; it is canonical because user space ends one page
//! below the canonical hole. Marked frames (`TrapFrame::mark_changed`) always leave by IRET.
//!
//! Never leaves by SYSRET with a frame that the kernel changed. Locks: none.

use core::arch::{global_asm, naked_asm};
use core::sync::atomic::{AtomicPtr, Ordering};

use super::frame::{SYSCALLS, SyscallTable, TrapFrame, frame_offset as offset};
use super::{gdt, shift};
use crate::base::{isolation, msr, percpu};

/// The table that tasks begin with; null until `trap::register`, before the first user program.
static TABLE: AtomicPtr<SyscallTable> = AtomicPtr::new(core::ptr::null_mut());

unsafe extern "C" {
    fn alea_syscall_entry();
}

/// Where the checking kernel ends that finds rip or flags changed before a SYSRET, which would not restore them.
extern "C" fn frame_changed() -> ! {
    panic!("a system call that changed rip or flags leaves by SYSRET");
}

/// Leaves by SYSRET with a frame that wants to go elsewhere than rcx says, which the checking kernel must notice.
///
/// # Safety
/// None: without the check it runs address 0 in user mode.
#[unsafe(naked)]
pub(in crate::arch) unsafe extern "C" fn sysret_of_changed_frame() -> ! {
    naked_asm!(
        "cli",
        "mov ecx, {size} / 8",
        "2: push 0",
        "loop 2b",
        "mov qword ptr [rsp + {rip}], 1",
        "add rsp, 6 * 8",
        "jmp alea_sysret",
        size = const offset::SIZE,
        rip = const offset::RIP,
    )
}

/// Sets the table; called by `trap::register` before the first user program.
pub(super) fn set_table(table: &'static SyscallTable) {
    // Relaxed: no other CPU and no user program runs yet.
    let table = shift::table(table);
    TABLE.store((&raw const *table).cast_mut(), Ordering::Relaxed);
    // SAFETY: a static.
    unsafe { percpu::set_calls((&raw const *table).cast()) };
}

/// The table that tasks begin with.
pub(in crate::arch) fn table() -> *const SyscallTable {
    // Relaxed: see `set_table`.
    TABLE.load(Ordering::Relaxed)
}

/// Enables SYSCALL on the calling CPU.
pub(in crate::arch) fn init() {
    // TF, IF, DF, IOPL, NT, AC, and the arithmetic flags stay the user's business.
    const MASK: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 3 << 12 | 1 << 14 | 1 << 18;
    // SAFETY: the entry point is the assembly below and the selectors are those of `gdt`.
    unsafe {
        let star = u64::from(gdt::USER_CODE_32) << 48 | u64::from(gdt::KERNEL_CODE) << 32;
        msr::write(msr::STAR, star);
        msr::write(msr::LSTAR, alea_syscall_entry as *const () as u64);
        msr::write(msr::SFMASK, MASK);
    }
}

/// Enters user mode with `frame`, on the current task's kernel stack, which is abandoned.
///
/// # Safety
/// `percpu::set_current` was called for the running task, nothing on its stack is needed any more
/// (values there are not dropped), and the address space of the frame is active.
#[unsafe(naked)]
pub unsafe extern "C" fn enter_user(frame: &TrapFrame) -> ! {
    // The frame may lie on this very stack, below or across its final place: copy from its end
    // with nothing of the old stack in use.
    naked_asm!(
        "cli",
        "mov rdx, gs:[{stack}]",
        "lea rsi, [rdi + {size} - 8]",
        "lea rdi, [rdx - 8]",
        "mov ecx, {size} / 8",
        "lea rsp, [rdx - {size} - 8]",
        "std",
        "rep movsq",
        "cld",
        "jmp alea_return_to_user",
        stack = const percpu::KERNEL_STACK,
        size = const offset::SIZE,
    )
}

/// The checking kernel looks before each SYSRET whether an IRET would do the same to rip and flags.
#[cfg(debug_assertions)]
macro_rules! check_sysret {
    () => {
        concat!(
            "mov rcx, [rsp - 6 * 8 + {rcx}]\n",
            "cmp rcx, [rsp - 6 * 8 + {rip}]\n",
            "jne alea_frame_changed_before_sysret\n",
            "mov rcx, [rsp - 6 * 8 + {r11}]\n",
            "cmp rcx, [rsp - 6 * 8 + {rflags}]\n",
            "jne alea_frame_changed_before_sysret",
        )
    };
}
#[cfg(not(debug_assertions))]
macro_rules! check_sysret {
    () => {
        // The names are known here too.
        ".if {rcx} + {rip} + {r11} + {rflags} == 0\n.endif"
    };
}

global_asm!(
    super::registers::register_macros!(),
    crate::arch::copy::site::site_macros!(),
    super::isolated::table_macros!(),
    ".section .entry.text, \"ax\"",
    ".balign 64",
    ".global alea_syscall_entry",
    "alea_syscall_entry:",
    "771:",
    "swapgs",
    "mov gs:[{user_rsp}], rsp",
    "DETOUR NEED_ISOLATION, alea_syscall_isolated",
    "mov rsp, gs:[{stack}]",
    "push {user_ss}",
    "push gs:[{user_rsp}]",
    ".Lalea_syscall_pushed:",
    "push r11",
    "push {user_cs}",
    "push rcx",
    "push rax",
    "push rdi",
    "PUSH_AFTER_RDI",
    "mov rdi, rsp",
    "sub rsp, 8",
    "sti",
    // Linux, too, looks at the low half only. No branch: nothing to mispredict past the table.
    "771:",
    "mov eax, eax",
    "mov ecx, {last}",
    "DETOUR NEED_HISTORY, alea_syscall_forgetting",
    ".Lalea_syscall_goes_on:",
    "cmp eax, ecx",
    "cmova eax, ecx",
    "mov rcx, gs:[{calls}]",
    "call qword ptr [rcx + rax * 8]",
    "mov [rsp + 8 + {rax}], rax",
    "cli",
    "mov rcx, gs:[{work}]",
    "cmp dword ptr [rcx], 0",
    "jne alea_return_to_user",
    "cmp qword ptr [rsp + 8 + {orig_rax}], -1",
    "je alea_restore_user",
    // Skips r15 r14 r13 r12 rbp rbx: the handler kept them.
    "add rsp, 8 + 6 * 8",
    ".global alea_sysret",
    "alea_sysret:",
    check_sysret!(),
    "771:",
    "POP_CALLER_SAVED",
    "DETOUR NEED_ISOLATION, alea_sysret_isolated",
    "mov rsp, [rsp + 4 * 8]",
    "771:",
    "swapgs",
    "sysretq",
    "DETOUR NEED_CLEAR, alea_sysret_clearing",
    // The same on a CPU whose buffers a program could read.
    "alea_sysret_clearing:",
    "swapgs",
    "verw word ptr [rip + alea_verw_selector]",
    "sysretq",
    super::isolated::isolated_calls!(),
    // Where the kernel's indirect branches would be predicted by what the program did before: fills the history of branches with
    // these, in the order that Intel gives for it. rax and rdi are in use.
    ".balign 64",
    "alea_syscall_forgetting:",
    "mov ecx, 5",
    "call 2f",
    "jmp 6f",
    ".balign 64",
    "2:",
    "call 3f",
    "ret",
    ".balign 64",
    "3:",
    "mov edx, 5",
    "4:",
    "jmp 5f",
    "nop",
    "5:",
    "sub edx, 1",
    "jnz 4b",
    "sub ecx, 1",
    "jnz 2b",
    "ret",
    "6:",
    "lfence",
    "mov eax, eax",
    "mov ecx, {last}",
    "jmp .Lalea_syscall_goes_on",
    // The stack is good, and the interrupts are off: the panic tells who came here.
    ".global alea_frame_changed_before_sysret",
    "alea_frame_changed_before_sysret:",
    "and rsp, -16",
    "call {frame_changed}",
    "ud2",
    // A new task: rsp points at its frame. The same way out, with every register restored.
    ".balign 16",
    ".global alea_fork_return",
    "alea_fork_return:",
    "sub rsp, 8",
    "cli",
    "mov rcx, gs:[{work}]",
    "cmp dword ptr [rcx], 0",
    "jne alea_return_to_user",
    "cmp qword ptr [rsp + 8 + {orig_rax}], -1",
    "je alea_restore_user",
    "add rsp, 8",
    "POP_CALLEE_SAVED",
    "jmp alea_sysret",
    crate::arch::copy::site::purge_site_macros!(),
    super::registers::purge_register_macros!(),
    super::isolated::purge_table_macros!(),
    user_rsp = const percpu::USER_RSP,
    stack = const percpu::KERNEL_STACK,
    scratch = const isolation::SCRATCH,
    user_table = const percpu::USER_TABLE,
    kernel_table = const isolation::KERNEL_TABLE,
    work = const percpu::WORK,
    user_ss = const gdt::USER_DATA,
    user_cs = const gdt::USER_CODE,
    orig_rax = const offset::ORIG_RAX,
    rax = const offset::RAX,
    rcx = const offset::RCX,
    r11 = const offset::R11,
    rip = const offset::RIP,
    rflags = const offset::RFLAGS,
    frame_changed = sym frame_changed,
    last = const SYSCALLS - 1,
    calls = const percpu::CALLS,
);
