//! That `init_on_alloc=1` and `init_on_free=1` zero what they say, if they are given.
//!
//! Owns nothing. Never runs but at boot, when nobody else allocates: what was given back is read where it lay. Locks: none.

use crate::base::PAGE_SIZE;
use crate::mm::frames::{self, For, wipe};
use alea_frames::Owner;
use core::alloc::Layout;

const FILL: u8 = 0xee;
/// What the slab's list of free objects may keep in one.
const LINK: usize = 16;

pub fn zeroed_as_asked() {
    for size in [32, 48, 512, 2048, PAGE_SIZE, 3 * PAGE_SIZE] {
        object(size);
    }
    let frame = frames::alloc(Owner::Kernel, For::Kernel).expect("memory");
    let at = frame.ptr() as usize;
    assert!(!wipe::on_alloc() || holds(at, 0..PAGE_SIZE, 0), "a frame was not zeroed first");
    // SAFETY: the frame is this test's alone.
    unsafe { core::ptr::write_bytes(frame.ptr(), FILL, PAGE_SIZE) };
    frames::free(frame);
    assert!(!wipe::on_free() || holds(at, 0..PAGE_SIZE, 0), "a freed frame holds what it held");
}

fn object(size: usize) {
    let layout = Layout::from_size_align(size, 16).expect("a layout");
    // SAFETY: the size is not zero.
    let object = unsafe { alloc::alloc::alloc(layout) };
    assert!(!object.is_null(), "memory");
    let at = object as usize;
    assert!(!wipe::on_alloc() || holds(at, 0..size, 0), "{size} bytes were not zeroed first");
    // SAFETY: the object is this test's alone until it is given back, with the layout that it was asked for with.
    unsafe {
        core::ptr::write_bytes(object, FILL, size);
        assert!(holds(at, 0..size, FILL), "{size} bytes cannot be read back");
        alloc::alloc::dealloc(object, layout);
    }
    let wiped = !wipe::on_free() || holds(at, LINK..size, 0);
    assert!(wiped, "{size} bytes that were given back hold what they held");
}

/// Whether all bytes of a range are `value`.
fn holds(at: usize, range: core::ops::Range<usize>, value: u8) -> bool {
    let start = core::hint::black_box(at);
    let read = |offset: usize| {
        let byte = core::ptr::with_exposed_provenance::<u8>(start + offset);
        // SAFETY: an address in the direct map; nobody writes there meanwhile.
        unsafe { byte.read_volatile() }
    };
    range.into_iter().all(|offset| read(offset) == value)
}
