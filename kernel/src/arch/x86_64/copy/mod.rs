//! Memory, copied by hand-written code: the kernel's own (`mem`), user space's (`usercopy`, whose faults come back as
//! values), and the key stream that is written straight into user space (`chacha20`).

pub mod chacha20;
pub(super) mod mem;
pub(super) mod smap_site;
pub mod usercopy;
