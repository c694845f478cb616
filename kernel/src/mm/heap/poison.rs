//! Poison in the checking kernel: a free object is filled with a pattern, and who takes it finds it unchanged, or the kernel ends
//! in a panic that says where it was written to.
//!
//! With `init_on_free` the objects hold zeros instead. The first two bytes are the slab's, for its list of free objects. Owns the
//! pattern. Never reads or writes an object that is in use. Locks: none.

use super::classes::Class;
use crate::mm::frames::wipe;

/// No sensible number, pointer or text.
const PATTERN: u8 = 0xa7;
/// What the slab keeps in a free object.
const LINK: usize = 2;

/// An object is free from now on.
pub fn fill(class: Class, object: *mut u8) {
    // SAFETY: the object is free, and nobody else's before the caller hands it on.
    unsafe { core::ptr::write_bytes(object, PATTERN, class.size()) };
}

/// An object that was free is taken.
pub fn check(class: Class, object: *mut u8) {
    // SAFETY: the object is the caller's alone, and was filled when it was given back.
    let bytes = unsafe { core::slice::from_raw_parts(object, class.size()) };
    let is_zeroed = wipe::on_free() && bytes[LINK] == 0;
    let fill = if is_zeroed { 0 } else { PATTERN };
    let changed = bytes.iter().skip(LINK).position(|&byte| byte != fill);
    if let Some(at) = changed {
        let (size, at) = (class.size(), at + LINK);
        panic!("heap: byte {at} of an object of {size} was written to after it was given back");
    }
}
