//! Where the kernel's image lies: what the linker script says.
//!
//! Owns how far the image lies from where it was linked. Must never read through the addresses, but for those of the names.
//! No locks.

use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};

unsafe extern "C" {
    static __kernel_start: u8;
    static __text_end: u8;
    static __symbols_start: u8;
    static __symbols_end: u8;
}

static OFFSET: AtomicU64 = AtomicU64::new(0);

/// How far the image lies behind where it was linked (KASLR).
pub fn offset() -> u64 {
    // Relaxed: written once, before the kernel proper runs.
    OFFSET.load(Ordering::Relaxed)
}

/// Says that the image was moved; called once, by boot.
pub fn moved_by(offset: u64) {
    OFFSET.store(offset, Ordering::Relaxed);
}

/// What the kernel's file calls an address of the image.
pub fn linked(addr: u64) -> u64 {
    addr.wrapping_sub(offset())
}

/// The address of the image's first byte.
pub fn image_start() -> u64 {
    addr_of!(__kernel_start) as u64
}

/// True for an address in the kernel's code.
pub fn is_text(addr: u64) -> bool {
    (image_start()..addr_of!(__text_end) as u64).contains(&addr)
}

/// The names of the kernel's functions, a line each, as `cargo xtask build` has put them there; empty if it has not.
pub fn symbols() -> &'static [u8] {
    let start = core::hint::black_box(addr_of!(__symbols_start));
    let room = addr_of!(__symbols_end) as usize - start as usize;
    // SAFETY: the linker script puts both symbols around read-only bytes of the image. Where they lie is hidden from the
    // compiler, so it cannot know what stood there when it saw them.
    let bytes = unsafe { core::slice::from_raw_parts(start, room) };
    let (head, text) = bytes.split_at(size_of::<u64>());
    let len = head.iter().rev().fold(0, |len, &byte| len << 8 | usize::from(byte));
    text.get(..len).unwrap_or_default()
}
