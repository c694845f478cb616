//! The kernel's own address space: mappings made at run time (`vmalloc`), stacks with guard pages (`stack`), what programs' isolated
//! tables show of it (`shown`).

pub(super) mod shown;
pub(super) mod stack;
pub(super) mod vmalloc;
