//! From the boot protocols (`pvh`, `limine`) to `kernel_main`: `kaslr` moves the image first, `enter` is the way that both
//! take, `tables` builds the kernel's own page tables on it, `sites` chooses the code that depends on the
//! CPU, `speculation` asks what it needs.

mod enter;
mod handover;
mod kaslr;
mod limine;
mod pvh;
mod sites;
mod speculation;
pub(super) mod tables;

pub use enter::log_memory_map;
pub(super) use sites::needed;
