//! From the boot protocols (`pvh`, `limine`) to `kernel_main`: `kaslr` moves the image first, `enter` is the way that both
//! take, `tables` builds the kernel's own page tables on it, `smap` patches what depends on the CPU.

mod enter;
mod handover;
mod kaslr;
mod limine;
mod pvh;
mod smap;
pub(super) mod tables;

pub use enter::log_memory_map;
