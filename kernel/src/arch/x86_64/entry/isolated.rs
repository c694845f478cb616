//! What the entries and exits do besides where page tables are isolated (`base::isolation`): detours that `boot::sites` chooses.
//!
//! A program runs on a table that maps, of the kernel, this code, the table of interrupts and the CPU's entry page. So until CR3 is written an entry
//! touches nothing else, and after it has written CR3 an exit touches nothing else. An entry from user mode comes in on the
//! small stack of the entry page, moves what the CPU pushed to the task's own stack, and goes on as ever; an exit moves it back.
//!
//! Which table is active is known by where the CPU was: in user mode always the program's, in the kernel always the kernel's but between
//! the writes of CR3 and the edges. There interrupts are off, and what can come is known:
//! - #DB, NMI, #MC and #DF, which have stacks of their own. They look at CR3 and put the program's table back if they found it, as they do
//!   with GS.
//! - A fault of IRET. It finds the program's table and the program's GS, with the refused frame on the entry stack, where the CPU
//!   would have pushed it had the fault been the program's: as that it is taken.
//!
//! Owns nothing: assembly for `idt` and `syscall`. Never leaves a register of the kernel on the entry page: what an NMI finds in the
//! kernel is wiped there as soon as it is moved. Locks: none.

/// `TO_KERNEL_TABLE`: the kernel's table becomes active; `TO_USER_TABLE`: the program's. Both cost a register, and need the
/// kernel's GS.
macro_rules! table_macros {
    () => {
        concat!(
            ".macro TO_KERNEL_TABLE register\n",
            "mov \\register, gs:[{kernel_table}]\n",
            "mov cr3, \\register\n",
            ".endm\n",
            ".macro TO_USER_TABLE register\n",
            "mov \\register, gs:[{user_table}]\n",
            "mov cr3, \\register\n",
            ".endm",
        )
    };
}

/// Takes the names back.
macro_rules! purge_table_macros {
    () => {
        ".purgem TO_KERNEL_TABLE\n.purgem TO_USER_TABLE\n"
    };
}

/// In place of the first instructions of the entry of a system call, and of the last ones before SYSRET.
macro_rules! isolated_calls {
    () => {
        concat!(
            // Every register but rsp is the program's, or what it wants to come back to.
            ".global alea_syscall_isolated\n",
            "alea_syscall_isolated:\n",
            "swapgs\n",
            "mov gs:[{scratch}], rsp\n",
            "TO_KERNEL_TABLE rsp\n",
            "mov rsp, gs:[{stack}]\n",
            "push {user_ss}\n",
            "push gs:[{scratch}]\n",
            "mov qword ptr gs:[{scratch}], 0\n",
            "jmp .Lalea_syscall_pushed\n",
            // rdi is popped last, and here it waits on the entry page, which both tables map.
            ".global alea_sysret_isolated\n",
            "alea_sysret_isolated:\n",
            "POP_CALLER_SAVED\n",
            "mov gs:[{scratch}], rdi\n",
            "mov rsp, [rsp + 4 * 8]\n",
            "TO_USER_TABLE rdi\n",
            "mov rdi, gs:[{scratch}]\n",
            "mov qword ptr gs:[{scratch}], 0\n",
            "swapgs\n",
            "CHOSEN NEED_CLEAR, verw word ptr [rip + alea_verw_selector]\n",
            "sysretq",
        )
    };
}

/// In place of the first pushes of an entry, behind what its stub pushed; and of the last instructions before an IRET.
macro_rules! isolated_traps {
    () => {
        concat!(
            // [rsp]: rdi, error, rip, cs, rflags, rsp, ss. The write of CR3 is the fence behind SWAPGS; what is loaded by GS before
            // it goes to CR3 alone.
            ".global alea_trap_isolated\n",
            "alea_trap_isolated:\n",
            "test byte ptr [rsp + 3 * 8], 3\n",
            "jz 7f\n",
            "swapgs\n",
            "push rsi\n",
            "TO_KERNEL_TABLE rsi\n",
            "mov rsi, rsp\n",
            "mov rsp, gs:[{stack}]\n",
            ".irp n, 7,6,5,4,3,2,1,0\n",
            "push [rsi + 8 * \\n]\n",
            ".endr\n",
            "mov qword ptr [rsi], 0\n",
            "mov qword ptr [rsi + 8], 0\n",
            "push rdx\npush rcx\npush rax\npush r8\n",
            "SAVE_AFTER_R8\n",
            "SMAP_SITE 0\n",
            "mov esi, edi\n",
            "jmp alea_trap_call\n",
            // From the kernel, so on its table, unless IRET refused to leave.
            "7:\n",
            "push rsi\n",
            "lea rsi, [rip + alea_user_iretq]\n",
            "cmp rsi, [rsp + 3 * 8]\n",
            "pop rsi\n",
            "je 8f\n",
            "PUSH_TO_R8\n",
            "jmp .Lalea_trap_pushed\n",
            "8:\n",
            "pop rdi\n",
            "mov rsp, [rsp + 4 * 8]\n",
            "jmp alea_bad_iretq\n",
            // Every register is the program's; behind one word lies what the CPU is to pop.
            ".global alea_restore_isolated\n",
            "alea_restore_isolated:\n",
            "mov [rsp], rdi\n",
            "mov rdi, rsp\n",
            "mov rsp, gs:[{entry_stack}]\n",
            ".irp n, 5,4,3,2,1,0\n",
            "push [rdi + 8 * \\n]\n",
            ".endr\n",
            "mov qword ptr [rdi], 0\n",
            "TO_USER_TABLE rdi\n",
            "pop rdi\n",
            "mov qword ptr [rsp - 8], 0\n",
            "swapgs\n",
            "jmp .Lalea_restored\n",
            // On one of the entry page's small stacks, from anywhere, on either table: the page, and by the place on it the stack that the
            // entry would have come in on. Another NMI waits until an IRET, and the others have stacks of their own, so rsp may
            // be anything meanwhile. r15 keeps the table if it was the program's, and 0 otherwise; r13 the small stack's top.
            ".global alea_paranoid_isolated\n",
            "alea_paranoid_isolated:\n",
            "push rsi\n",
            "push rcx\n",
            "push rax\n",
            "mov rax, cr3\n",
            "mov rsi, rsp\n",
            "and rsi, -{page}\n",
            "mov rsi, [rsi + {page} + {kernel_table}]\n",
            "mov cr3, rsi\n",
            "mov rsi, rsp\n",
            "mov ecx, esi\n",
            "and ecx, {interrupt_mask}\n",
            "shr ecx, {interrupt_shift}\n",
            "and rsp, -{page}\n",
            "mov rsp, [rsp + rcx + {interrupt_stacks}]\n",
            ".irp n, 9,8,7,6,5,4,3,2\n",
            "push [rsi + 8 * \\n]\n",
            ".endr\n",
            "push rdx\n",
            "push [rsi + 8]\n",
            "push [rsi]\n",
            "push r8\n",
            "SAVE_AFTER_R8\n",
            "mov r15, rax\n",
            "lea r13, [rsi + 8 * 10]\n",
            ".irp n, 0,1,2,3,4,5,6,7,8,9\n",
            "mov qword ptr [rsi + 8 * \\n], 0\n",
            ".endr\n",
            "and rsi, -{page}\n",
            "xor eax, eax\n",
            "cmp r15, [rsi + {page} + {user_table}]\n",
            "cmovne r15, rax\n",
            "jmp .Lalea_paranoid_saved\n",
            // To code on the program's table the way leads over the small stack again: CR3, rdi, and what the CPU pops.
            ".global alea_paranoid_leaves\n",
            "alea_paranoid_leaves:\n",
            "mov ecx, {gs_base}\n",
            "mov eax, ebx\n",
            "mov edx, r14d\n",
            "wrmsr\n",
            "test r15, r15\n",
            "jz .Lalea_paranoid_restore\n",
            "mov rax, [rsp + {ss}]\nmov [r13 - 8], rax\n",
            "mov rax, [rsp + {rsp}]\nmov [r13 - 16], rax\n",
            "mov rax, [rsp + {rflags}]\nmov [r13 - 24], rax\n",
            "mov rax, [rsp + {cs}]\nmov [r13 - 32], rax\n",
            "mov rax, [rsp + {rip}]\nmov [r13 - 40], rax\n",
            "mov rax, [rsp + {rdi}]\nmov [r13 - 48], rax\n",
            "lea rax, [r13 - 56]\n",
            "mov [rax], r15\n",
            "mov [rsp + {rdi}], rax\n",
            "RESTORE_ALL\n",
            "mov rsp, rdi\n",
            "pop rdi\n",
            "mov cr3, rdi\n",
            "pop rdi\n",
            "mov qword ptr [rsp - 16], 0\n",
            "mov qword ptr [rsp - 8], 0\n",
            "CHOSEN NEED_CLEAR, verw word ptr [rip + alea_verw_selector]\n",
            "iretq",
        )
    };
}

pub(super) use {isolated_calls, isolated_traps, purge_table_macros, table_macros};
