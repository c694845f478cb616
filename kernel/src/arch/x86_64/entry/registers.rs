//! Assembler macros that save and restore the registers of a [`TrapFrame`](super::frame::TrapFrame), in its order.
//!
//! Owns the order; `frame` has the fields. Each user of the macros defines them at the start of its assembly and
//! takes them back (`.purgem`) at the end, since a name can be defined once in a unit.

/// `PUSH_AFTER_RDI`: the registers below `rdi` in the frame. `POP_CALLEE_SAVED`, then `POP_CALLER_SAVED`: all of them
/// and `rdi` back.
macro_rules! register_macros {
    () => {
        concat!(
            ".macro PUSH_AFTER_RDI\n",
            "push rsi\npush rdx\npush rcx\npush rax\npush r8\npush r9\npush r10\npush r11\n",
            "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\n",
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

pub(super) use register_macros;
