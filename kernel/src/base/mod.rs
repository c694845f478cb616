//! What everything rests on: single instructions, registers, ports, pages, per-CPU data, what the loader told.
//!
//! The lowest floor, and with `arch` the only place that names x86_64. Nothing here takes a lock, allocates or knows of
//! tasks. It names no other room of the kernel.

pub mod areas;
pub mod boot_info;
pub mod console;
pub mod cpu;
pub mod current;
pub mod exits;
pub mod image;
pub mod isolation;
pub mod kmap;
pub mod memparse;
pub mod msr;
pub mod page;
pub mod percpu;
pub mod port;
pub mod setting;
pub mod speculation;
pub mod tsc;

pub use page::PAGE_SIZE;
