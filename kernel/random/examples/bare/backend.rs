//! The custom backend of `getrandom` 0.3 and 0.4: one function, which they find by its name.
//!
//! Owns nothing. It must never report success for bytes that are not random. Locks: those of [`crate::fill`].

use core::slice;
use getrandom::Error;

/// Fills `len` bytes at `dest`.
///
/// # Safety
///
/// `dest` points to `len` bytes that nobody else uses and that may be uninitialised; `getrandom` sees to it.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(dest: *mut u8, len: usize) -> Result<(), Error> {
    // SAFETY: the caller's promise; writing first makes them initialised before a slice of them is made.
    let out = unsafe {
        dest.write_bytes(0, len);
        slice::from_raw_parts_mut(dest, len)
    };
    crate::fill(out).map_err(|_| Error::new_custom(1))
}
