//! The interrupt descriptor table and the 256 entry stubs.
//!
//! Owns the table (one for all CPUs, never changed after `init`) and the entry assembly of every
//! vector. Rules of the assembly: every entry makes a full `TrapFrame`; GS is swapped exactly when
//! the trap came from user mode; the vectors on interrupt stacks (#DB, NMI, #DF, #MC) trust neither
//! GS nor its MSRs but find their CPU's block in the topmost word of their stack. Where tables are isolated, `isolated` has what
//! each entry and each exit does besides.
//!
//! Never: an entry saves less than all registers. Locks: none.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;

use super::frame::frame_offset as offset;
use super::gdt::{Ist, KERNEL_CODE, KERNEL_DATA};
use crate::base::{PAGE_SIZE, isolation, percpu};

#[repr(C, align(4096))]
struct Table(UnsafeCell<[[u64; 2]; 256]>);
// SAFETY: written once by `init` before interrupts are on.
unsafe impl Sync for Table {}

static IDT: Table = Table(UnsafeCell::new([[0; 2]; 256]));

unsafe extern "C" {
    static alea_vector_stubs: [u64; 256];
}

/// Fills in the table and loads it.
pub(in crate::arch) fn init() {
    // SAFETY: the assembly below defines 256 entries.
    let stubs: &[u64; 256] = unsafe { &alea_vector_stubs };
    for (vector, handler) in stubs.iter().enumerate() {
        let ist = match vector {
            1 => Ist::Debug,
            2 => Ist::Nmi,
            8 => Ist::DoubleFault,
            18 => Ist::MachineCheck,
            _ => Ist::None,
        };
        // int3 and into may be used from user mode, as on Linux.
        let level: u64 = if vector == 3 || vector == 4 { 3 } else { 0 };
        // SAFETY: the IDT is not loaded yet.
        unsafe {
            let low = handler & 0xffff
                | u64::from(KERNEL_CODE) << 16
                | (ist as u64) << 32
                | (0x8e | level << 5) << 40
                | (handler >> 16 & 0xffff) << 48;
            (*IDT.0.get())[vector] = [low, handler >> 32];
        }
    }
    load();
}

/// Loads the table on the calling CPU.
pub(in crate::arch) fn load() {
    let pointer = x86_64::structures::DescriptorTablePointer {
        limit: (size_of::<Table>() - 1) as u16,
        base: x86_64::VirtAddr::new(IDT.0.get() as u64),
    };
    // SAFETY: the table is static and complete.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack)) };
}

/// The pages of the table.
pub(super) fn place() -> core::ops::Range<u64> {
    let start = IDT.0.get() as u64;
    start..start + size_of::<Table>() as u64
}

global_asm!(
    super::registers::register_macros!(),
    // Saves what the stub and `PUSH_TO_R8` did not: the frame is [r15 .. rsi] [rdi] [error] [rip cs rflags rsp ss].
    ".macro SAVE_AFTER_R8",
    "PUSH_AFTER_R8",
    // Handlers save these on their stacks, below the frame, where nothing wipes them. The frame pointer stays.
    ".irp r, ebx, r12d, r13d, r14d, r15d",
    "xor \\r, \\r",
    ".endr",
    "cld",
    ".endm",
    // The frame is wiped as it is left: what was interrupted may have held a key or what was just drawn. What the CPU
    // pops is one word further.
    ".macro RESTORE_ALL",
    "POP_CALLEE_SAVED",
    "POP_CALLER_SAVED",
    ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "mov qword ptr [rsp - 8 * \\n], 0",
    ".endr",
    ".endm",
    crate::arch::copy::site::site_macros!(),
    super::isolated::table_macros!(),
    ".section .entry.text, \"ax\"",
    // One stub per vector: error code (or 0), rdi, vector in edi.
    ".altmacro",
    ".macro STUB vector",
    ".balign 16",
    "alea_vector_\\vector:",
    ".if \\vector != 8 && \\vector != 10 && \\vector != 11 && \\vector != 12 && \\vector != 13 && \\vector != 14 && \\vector != 17 && \\vector != 21 && \\vector != 29 && \\vector != 30",
    "push 0",
    ".endif",
    "push rdi",
    "mov edi, \\vector",
    ".if \\vector == 1 || \\vector == 2 || \\vector == 8 || \\vector == 18",
    "jmp alea_paranoid_entry",
    ".else",
    "jmp alea_trap_entry",
    ".endif",
    ".endm",
    ".macro STUB_ADDRESS vector",
    ".quad alea_vector_\\vector",
    ".endm",
    ".set i, 0",
    ".rept 256",
    "STUB %i",
    ".set i, i + 1",
    ".endr",
    ".section .rodata.stubs, \"a\"",
    ".balign 8",
    ".global alea_vector_stubs",
    "alea_vector_stubs:",
    ".set i, 0",
    ".rept 256",
    "STUB_ADDRESS %i",
    ".set i, i + 1",
    ".endr",
    ".noaltmacro",
    //
    ".section .entry.text, \"ax\"",
    ".balign 64",
    "alea_trap_entry:",
    "771:",
    "PUSH_TO_R8",
    "DETOUR NEED_ISOLATION, alea_trap_isolated",
    ".Lalea_trap_pushed:",
    "SAVE_AFTER_R8",
    "SMAP_SITE 0",
    "mov esi, edi",
    "test byte ptr [rsp + {cs}], 3",
    "jz 2f",
    "swapgs",
    "CHOSEN NEED_FENCE_USER, lfence",
    "alea_trap_call:",
    "mov rdx, [rsp + {orig_rax}]",
    "mov qword ptr [rsp + {orig_rax}], -1",
    "mov rdi, rsp",
    "sub rsp, 8",
    "call {trap}",
    "cli",
    "test byte ptr [rsp + 8 + {cs}], 3",
    "jz 3f",
    // To user mode: deal with work first.
    ".global alea_return_to_user",
    "alea_return_to_user:",
    "mov rcx, gs:[{work}]",
    "cmp dword ptr [rcx], 0",
    "jne 4f",
    ".global alea_restore_user",
    "alea_restore_user:",
    "add rsp, 8",
    "RESTORE_ALL",
    "771:",
    "add rsp, 8",
    "swapgs",
    "DETOUR NEED_ISOLATION, alea_restore_isolated",
    ".Lalea_restored:",
    "CHOSEN NEED_CLEAR, verw word ptr [rip + alea_verw_selector]",
    ".global alea_user_iretq",
    "alea_user_iretq:",
    "iretq",
    // The CPU refused the user frame (a non-canonical address, say). The fault's own frame is gone
    // and every register is the user's: take it as a general protection fault of the user.
    ".global alea_bad_iretq",
    "alea_bad_iretq:",
    "push 0",
    "push rdi",
    "mov edi, 13",
    "jmp alea_trap_entry",
    // A CPU that ran past the branch with the user's GS, or without the kernel's, waits for it here.
    "2:",
    "CHOSEN NEED_FENCE_KERNEL, lfence",
    "jmp alea_trap_call",
    "3:",
    "add rsp, 8",
    "RESTORE_ALL",
    "add rsp, 8",
    "iretq",
    "4:",
    "lea rdi, [rsp + 8]",
    "call {exit_work}",
    "jmp alea_restore_user",
    // Entries on interrupt stacks.
    ".balign 64",
    "alea_paranoid_entry:",
    "771:",
    "PUSH_TO_R8",
    "DETOUR NEED_ISOLATION, alea_paranoid_isolated",
    "SAVE_AFTER_R8",
    ".Lalea_paranoid_saved:",
    "SMAP_SITE 0",
    "mov r12d, edi",
    "mov ecx, {gs_base}",
    "rdmsr",
    "mov ebx, eax",
    "mov r14d, edx",
    // The block pointer is the word above the frame.
    "mov rax, [rsp + {size}]",
    "mov rdx, rax",
    "shr rdx, 32",
    "wrmsr",
    // #DB (vector 1) from user mode goes on as an ordinary trap, on the task's stack. #MC, NMI and #DF stay here.
    "test byte ptr [rsp + {cs}], 3",
    "jz 5f",
    "cmp r12d, 1",
    "je 6f",
    "5:",
    "mov rdx, [rsp + {orig_rax}]",
    "mov qword ptr [rsp + {orig_rax}], -1",
    "mov rdi, rsp",
    "mov esi, r12d",
    "sub rsp, 8",
    "call {paranoid}",
    "add rsp, 8",
    "771:",
    "mov ecx, {gs_base}",
    "mov eax, ebx",
    "mov edx, r14d",
    "wrmsr",
    "DETOUR NEED_ISOLATION, alea_paranoid_leaves",
    ".Lalea_paranoid_restore:",
    "RESTORE_ALL",
    "add rsp, 8",
    // It may have come from user mode.
    "CHOSEN NEED_CLEAR, verw word ptr [rip + alea_verw_selector]",
    "iretq",
    "6:",
    // What was in GS_BASE is the user's: it belongs where swapgs would have put it.
    "mov ecx, {kernel_gs_base}",
    "mov eax, ebx",
    "mov edx, r14d",
    "wrmsr",
    "mov rsi, rsp",
    "mov rdi, gs:[{stack}]",
    "sub rdi, {size}",
    "mov rbx, rdi",
    "mov ecx, {size} / 8",
    "rep movsq",
    "mov rsp, rbx",
    "mov esi, r12d",
    "jmp alea_trap_call",
    super::isolated::isolated_traps!(),
    // What VERW is asked about; it has to be a segment that may be written to, or nothing is cleared. It is asked on either table.
    ".balign 2",
    ".global alea_verw_selector",
    "alea_verw_selector:",
    ".short {data}",
    crate::arch::copy::site::purge_site_macros!(),
    super::registers::purge_register_macros!(),
    super::isolated::purge_table_macros!(),
    ".purgem SAVE_AFTER_R8",
    ".purgem RESTORE_ALL",
    ".purgem STUB",
    ".purgem STUB_ADDRESS",
    data = const KERNEL_DATA,
    cs = const offset::CS,
    orig_rax = const offset::ORIG_RAX,
    size = const offset::SIZE,
    work = const percpu::WORK,
    stack = const percpu::KERNEL_STACK,
    gs_base = const crate::base::msr::GS_BASE,
    page = const PAGE_SIZE,
    kernel_table = const isolation::KERNEL_TABLE,
    user_table = const percpu::USER_TABLE,
    entry_stack = const isolation::ENTRY_STACK,
    interrupt_mask = const isolation::INTERRUPT_MASK,
    interrupt_shift = const isolation::INTERRUPT_SHIFT,
    // From the start of the entry page, which the block comes behind: less the first stack's number.
    interrupt_stacks =
        const PAGE_SIZE + percpu::INTERRUPT_STACKS - isolation::INTERRUPT_FIRST,
    rip = const offset::RIP,
    rflags = const offset::RFLAGS,
    rsp = const offset::RSP,
    ss = const offset::SS,
    rdi = const offset::RDI,
    kernel_gs_base = const crate::base::msr::KERNEL_GS_BASE,
    trap = sym super::trap::trap_entry,
    exit_work = sym super::trap::exit_work,
    paranoid = sym super::trap::paranoid_entry,
);
