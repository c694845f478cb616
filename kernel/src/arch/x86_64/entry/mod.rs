//! Ways into the kernel and out of it: descriptor tables, trap stubs, system calls.
//!
//! `frame` is what they store, `idt` and `syscall` the assembly (`registers` what both have of it), `trap` decides, `extable` mends faults of user access.

pub mod extable;
pub mod frame;
pub(super) mod gdt;
pub(super) mod idt;
mod isolated;
mod registers;
pub mod shift;
pub mod shown;
pub(super) mod syscall;
pub mod trap;
