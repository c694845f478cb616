//! Where the kernel's image lies: what the linker script says.
//!
//! Owns nothing and must never read through the addresses. No locks.

use core::ptr::addr_of;

unsafe extern "C" {
    static __kernel_start: u8;
    static __text_end: u8;
}

/// The address of the image's first byte.
pub fn image_start() -> u64 {
    addr_of!(__kernel_start) as u64
}

/// True for an address in the kernel's code.
pub fn is_text(addr: u64) -> bool {
    (image_start()..addr_of!(__text_end) as u64).contains(&addr)
}
