//! No step grows with the number of names, and each survives a lack of memory at any point.
#![allow(unsafe_code, reason = "an allocator that is watched")]

use alea_names::{Names, OutOfMemory};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

thread_local! {
    /// Allocations until one fails; bytes allocated and freed; both of this thread.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static MOVED: Cell<usize> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Watched;

// SAFETY: the system's allocator does the work; what it is told and what it answers is passed on, or the answer is null, which
// says that there is no memory.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOVED.set(MOVED.get() + layout.size());
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(1));
        if left == 0 {
            return core::ptr::null_mut();
        }
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        MOVED.set(MOVED.get() + layout.size());
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

fn hash(n: u32) -> u32 {
    n.wrapping_mul(0x9e37_79b9).rotate_left(15)
}

/// The bytes that `step` allocates and frees.
fn moved(step: impl FnOnce()) -> usize {
    let before = MOVED.get();
    step();
    MOVED.get() - before
}

/// A step may make or free a node for each level of both trees, or turn a dozen names from a list into them.
const BOUND: usize = 16 << 10;

#[test]
fn no_step_grows_with_the_number_of_names() {
    let mut names = Names::new();
    let mut worst = 0;
    for n in 0..300_000 {
        worst = worst.max(moved(|| assert!(names.insert(hash(n), n).is_ok())));
    }
    // All but a few from the middle, then the others.
    for cursor in (2..250_000).chain(250_000..300_002) {
        worst = worst.max(moved(|| assert!(names.remove(cursor).is_some())));
    }
    assert!(worst < BOUND, "{worst} bytes in one step");
}

#[test]
fn a_lack_of_memory_changes_nothing() {
    let mut failures = [0; 6];
    for (left, failures) in (0..).zip(&mut failures) {
        let held = HELD.get();
        let mut names = Names::new();
        for n in 0..6000 {
            LEFT.set(left);
            let result = names.insert(hash(n), n);
            LEFT.set(u64::MAX);
            if result == Err(OutOfMemory) {
                *failures += 1;
                assert!(names.find(hash(n), |&other| other == n).is_none());
                assert!(names.insert(hash(n), n).is_ok());
            }
            assert!(names.find(hash(n), |&other| other == n).is_some());
            if n % 64 != 1 {
                continue;
            }
            let mut next = 0;
            let _ = names.visit(0, |_, &other| {
                assert_eq!(other, next);
                next += 1;
                ControlFlow::<()>::Continue(())
            });
            assert_eq!(next, n + 1);
        }
        while names.remove_first().is_some() {}
        assert_eq!(HELD.get(), held, "an empty table holds memory");
    }
    // Each of the allocations that a step may make has failed, and there is no step that makes more.
    assert!(failures[..3].iter().all(|&failures| failures > 0), "{failures:?}");
    assert_eq!(failures[4], 0, "{failures:?}");
}
