//! Assembler macros that save and restore the registers of a [`TrapFrame`](super::frame::TrapFrame), in its order.
//!
//! Owns the order; `frame` has the fields. Each user of the macros defines them at the start of its assembly and
//! takes them back (`.purgem`) at the end, since a name can be defined once in a unit.

/// `PUSH_AFTER_RDI`: the registers below `rdi` in the frame, which are those of `PUSH_TO_R8` and then `PUSH_AFTER_R8`. `POP_CALLEE_SAVED`, then `POP_CALLER_SAVED`: all of them
/// and `rdi` back.
macro_rules! register_macros {
    () => {
        concat!(
            ".macro PUSH_AFTER_RDI\n",
            "PUSH_TO_R8\n",
            "PUSH_AFTER_R8\n",
            ".endm\n",
            ".macro PUSH_TO_R8\n",
            "push rsi\npush rdx\npush rcx\npush rax\npush r8\n",
            ".endm\n",
            ".macro PUSH_AFTER_R8\n",
            "push r9\npush r10\npush r11\npush rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\n",
            ".endm\n",
            ".macro POP_CALLEE_SAVED\n",
            "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx\n",
            ".endm\n",
            ".macro POP_CALLER_SAVED\n",
            "pop r11\npop r10\npop r9\npop r8\npop rax\npop rcx\npop rdx\npop rsi\npop rdi\n",
            ".endm",
        )
    };
}

/// Takes the names back.
macro_rules! purge_register_macros {
    () => {
        ".purgem PUSH_AFTER_RDI\n.purgem PUSH_TO_R8\n.purgem PUSH_AFTER_R8\n.purgem POP_CALLEE_SAVED\n.purgem POP_CALLER_SAVED\n"
    };
}

pub(super) use {purge_register_macros, register_macros};
