//! Memory, copied by hand-written code: the kernel's own (`mem`), user space's (`usercopy`, whose faults come back as
//! values), and the key stream that is written straight into user space (`chacha20`). `site` and `site_list`: code there and in
//! `entry` that is chosen at boot.

pub mod chacha20;
pub(super) mod mem;
pub(super) mod site;
pub(super) mod site_list;
pub mod usercopy;
