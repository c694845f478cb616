//! A few free objects of each class per CPU, so that most allocations touch nothing shared.
//!
//! Used only by its own CPU, through [`with`]; an interrupt handler that finds it busy goes to the slabs.

use super::classes::{Class, SIZES};
use super::slab;
use crate::per_cpu;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering, compiler_fence};

/// Objects per class, and how many move to or from the slabs at a time.
const DEPTH: usize = 24;
const BATCH: usize = DEPTH / 2;

struct Magazine {
    len: usize,
    objects: [*mut u8; DEPTH],
}

struct Slot {
    busy: AtomicBool,
    magazines: UnsafeCell<[Magazine; SIZES.len()]>,
}

per_cpu! {
    static SLOT: Slot = Slot::new();
}

impl Slot {
    const fn new() -> Self {
        let magazines =
            [const { Magazine { len: 0, objects: [core::ptr::null_mut(); DEPTH] } }; SIZES.len()];
        Self { busy: AtomicBool::new(false), magazines: UnsafeCell::new(magazines) }
    }
}

/// Runs `f` on this CPU's magazine for `class`; `None` when this code interrupted another use of it.
#[inline]
fn with<R>(class: Class, f: impl FnOnce(&mut Magazine) -> R) -> Option<R> {
    // SAFETY: the slot of this CPU lives for ever; task code is not preempted and does not block in `f`.
    let slot = unsafe { &*SLOT.as_ptr() };
    // Relaxed with compiler fences: read and written by one CPU only, in program order.
    if slot.busy.load(Ordering::Relaxed) {
        return None;
    }
    slot.busy.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::Acquire);
    // SAFETY: `busy` was clear, and only this CPU uses the slot: the reference is the only one.
    let result = f(unsafe { &mut (&mut *slot.magazines.get())[class.index()] });
    compiler_fence(Ordering::Release);
    slot.busy.store(false, Ordering::Relaxed);
    Some(result)
}

/// An object of `class`, or null.
#[inline]
pub fn alloc(class: Class) -> *mut u8 {
    with(class, |magazine| {
        if magazine.len == 0 {
            magazine.len = slab::take(class, &mut magazine.objects[..BATCH]);
            if magazine.len == 0 {
                return core::ptr::null_mut();
            }
        }
        magazine.len -= 1;
        magazine.objects[magazine.len]
    })
    .unwrap_or_else(|| alloc_slow(class))
}

/// Takes back an object of `class`.
#[inline]
pub fn free(class: Class, object: *mut u8) {
    let done = with(class, |magazine| {
        debug_assert!(!magazine.objects[..magazine.len].contains(&object), "object freed twice");
        if magazine.len == DEPTH {
            slab::give(class, &magazine.objects[..BATCH]);
            magazine.objects.copy_within(BATCH.., 0);
            magazine.len = DEPTH - BATCH;
        }
        magazine.objects[magazine.len] = object;
        magazine.len += 1;
    });
    if done.is_none() {
        slab::give(class, &[object]);
    }
}

#[cold]
fn alloc_slow(class: Class) -> *mut u8 {
    let mut one = [core::ptr::null_mut()];
    slab::take(class, &mut one);
    one[0]
}

/// Readies this CPU's magazines: once on each CPU, before it allocates.
pub fn init_cpu() {
    // SAFETY: the CPU has just started and has not used its slot.
    unsafe { SLOT.as_ptr().cast_mut().write(Slot::new()) }
}
