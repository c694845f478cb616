//! The kernel's own address space: mappings made at run time (`vmalloc`), stacks with guard pages (`stack`).

pub(super) mod stack;
pub(super) mod vmalloc;
