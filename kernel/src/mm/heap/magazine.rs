//! A few free objects of each class per CPU, so that most allocations touch nothing shared.
//!
//! Used only by its own CPU, through [`with`]. Interrupt handlers never allocate; one that frees and finds the magazines
//! busy goes to the slabs. While faults are injected, or freed memory is zeroed, the magazines count as busy for good and hold
//! nothing but what [`reserve`] was asked for.
//!
//! Owns these free objects. Never used by another CPU, and never twice at once on its own: the busy mark. Locks: none
//! of its own; a refill takes the class's.

use super::classes::{Class, SIZES};
use super::slab;
use crate::base::percpu;
use crate::mm::frames::inject::{self, Kind};
use crate::mm::frames::wipe;
use crate::per_cpu;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU8, Ordering, compiler_fence};

/// Objects per class, and how many move to or from the slabs at a time.
const DEPTH: usize = 24;
const BATCH: usize = DEPTH / 2;

struct Magazine {
    len: usize,
    objects: [*mut u8; DEPTH],
}

/// What [`Slot::busy`] says: nobody uses the magazines, somebody does, they keep nothing.
const FREE: u8 = 0;
const USED: u8 = 1;
const INJECTING: u8 = 2;

struct Slot {
    busy: AtomicU8,
    magazines: UnsafeCell<[Magazine; SIZES.len()]>,
}

// SAFETY: `with` is the only way to the magazines, and uses this CPU's own; `waiting` reads single words of others'.
unsafe impl Sync for Slot {}

per_cpu! {
    static SLOT: Slot = Slot::new();
}

impl Slot {
    const fn new() -> Self {
        let magazines =
            [const { Magazine { len: 0, objects: [core::ptr::null_mut(); DEPTH] } }; SIZES.len()];
        Self { busy: AtomicU8::new(FREE), magazines: UnsafeCell::new(magazines) }
    }
}

/// Runs `f` on this CPU's magazine for `class`; `None` when this code interrupted another use of it.
#[inline]
fn with<R>(class: Class, f: impl FnOnce(&mut Magazine) -> R) -> Option<R> {
    let _pinned = percpu::Pinned::new();
    // SAFETY: the slot of this CPU lives for ever; task code is not preempted and, being pinned, does not block in `f`.
    let slot = unsafe { &*SLOT.as_ptr() };
    // Relaxed with compiler fences: read and written by one CPU only, in program order.
    if slot.busy.load(Ordering::Relaxed) != FREE {
        return None;
    }
    slot.busy.store(USED, Ordering::Relaxed);
    compiler_fence(Ordering::Acquire);
    // SAFETY: `busy` was clear, and only this CPU uses the slot: the reference is the only one.
    let result = f(unsafe { &mut (&mut *slot.magazines.get())[class.index()] });
    compiler_fence(Ordering::Release);
    slot.busy.store(FREE, Ordering::Relaxed);
    Some(result)
}

/// An object of `class`, or null.
#[inline]
pub fn alloc(class: Class) -> *mut u8 {
    debug_assert!(!percpu::in_interrupt(), "an interrupt handler allocates");
    match with(class, Magazine::pop).flatten() {
        Some(object) => {
            #[cfg(debug_assertions)]
            super::poison::check(class, object);
            object
        }
        None => alloc_slow(class),
    }
}

/// Makes sure that the magazine holds `count` objects of `class`.
#[inline]
pub fn reserve(class: Class, count: usize) -> bool {
    debug_assert!(!percpu::in_interrupt(), "an interrupt handler allocates");
    with(class, |magazine| magazine.len >= count) == Some(true) || reserve_slow(class, count)
}

impl Magazine {
    #[inline]
    fn pop(&mut self) -> Option<*mut u8> {
        self.len = self.len.checked_sub(1)?;
        Some(self.objects[self.len])
    }

    /// Adds one, if there is room.
    #[inline]
    fn push(&mut self, object: *mut u8) -> bool {
        debug_assert!(!self.objects[..self.len].contains(&object), "object freed twice");
        let Some(place) = self.objects.get_mut(self.len) else { return false };
        *place = object;
        self.len += 1;
        true
    }

    /// Takes objects from the slabs, until there are `count` if possible.
    fn fill(&mut self, class: Class, count: usize) {
        if self.len < count {
            self.len += slab::take(class, &mut self.objects[self.len..count]);
        }
    }
}

#[cold]
#[inline(never)]
fn alloc_slow(class: Class) -> *mut u8 {
    const KEPT: &str = "an allocation that was promised to succeed needs memory";
    let object = if wipe::keeps_none() {
        with_injecting(class, |magazine| {
            debug_assert!(magazine.len > 0 || !promise::is_given(), "{KEPT}");
            if magazine.len == 0 && !inject::fails(Kind::Heap) {
                magazine.fill(class, 1);
            }
            magazine.pop()
        })
    } else {
        debug_assert!(!promise::is_given(), "{KEPT}");
        with(class, |magazine| {
            magazine.fill(class, BATCH);
            magazine.pop()
        })
        .flatten()
    };
    let Some(object) = object else { return core::ptr::null_mut() };
    #[cfg(debug_assertions)]
    super::poison::check(class, object);
    if wipe::on_alloc() {
        // SAFETY: the object is nobody's but the caller's from now on.
        unsafe { core::ptr::write_bytes(object, 0, class.size()) };
    }
    object
}

#[cold]
#[inline(never)]
fn reserve_slow(class: Class, count: usize) -> bool {
    assert!(count <= DEPTH, "more objects at once than a magazine holds");
    if wipe::keeps_none() {
        return with_injecting(class, |magazine| {
            if inject::fails(Kind::Heap) {
                return false;
            }
            magazine.fill(class, count);
            magazine.len >= count
        });
    }
    with(class, |magazine| {
        magazine.fill(class, count.max(BATCH));
        magazine.len >= count
    }) == Some(true)
}

/// Runs `f` on this CPU's magazine for `class` while they keep nothing.
fn with_injecting<R>(class: Class, f: impl FnOnce(&mut Magazine) -> R) -> R {
    // SAFETY: as in `with`.
    let slot = unsafe { &*SLOT.as_ptr() };
    // SAFETY: called by allocations only, which interrupt handlers never make, and not from within another use: once
    // `INJECTING` stands here nobody else touches the magazines.
    let magazines = unsafe { &mut *slot.magazines.get() };
    if slot.busy.swap(INJECTING, Ordering::Relaxed) != INJECTING {
        for (index, magazine) in magazines.iter_mut().enumerate() {
            if let Some(class) = Class::nth(index) {
                slab::give(class, &magazine.objects[..magazine.len]);
            }
            magazine.len = 0;
        }
    }
    f(&mut magazines[class.index()])
}

/// Runs an allocation whose memory was reserved; the checking kernel panics if it needs more.
#[inline]
pub fn promised<R>(allocate: impl FnOnce() -> R) -> R {
    promise::give();
    let result = allocate();
    promise::end();
    result
}

#[cfg(debug_assertions)]
mod promise {
    //! Whether this CPU runs an allocation that must not need memory. Relaxed: this CPU's own.
    use crate::per_cpu;
    use core::sync::atomic::{AtomicBool, Ordering};

    per_cpu! {
        static GIVEN: AtomicBool = AtomicBool::new(false);
    }

    pub fn give() {
        GIVEN.with(|given| given.store(true, Ordering::Relaxed));
    }
    pub fn end() {
        GIVEN.with(|given| given.store(false, Ordering::Relaxed));
    }
    pub fn is_given() -> bool {
        GIVEN.with(|given| given.load(Ordering::Relaxed))
    }
}

#[cfg(not(debug_assertions))]
mod promise {
    //! Nothing is checked.
    #[inline(always)]
    pub fn give() {}
    #[inline(always)]
    pub fn end() {}
    #[inline(always)]
    pub fn is_given() -> bool {
        false
    }
}

/// Takes back an object of `class`.
#[inline]
pub fn free(class: Class, object: *mut u8) {
    #[cfg(debug_assertions)]
    super::poison::fill(class, object);
    if with(class, |magazine| magazine.push(object)) != Some(true) {
        free_slow(class, object);
    }
}

/// The magazine is full or in use.
#[cold]
#[inline(never)]
fn free_slow(class: Class, object: *mut u8) {
    if wipe::on_free() {
        // SAFETY: the object was given back, and is nobody's until it is in a list.
        unsafe { core::ptr::write_bytes(object, 0, class.size()) };
    }
    let pushed = with(class, |magazine| {
        slab::give(class, &magazine.objects[..BATCH]);
        magazine.objects.copy_within(BATCH.., 0);
        magazine.len = DEPTH - BATCH;
        magazine.push(object)
    });
    if pushed != Some(true) {
        slab::give(class, &[object]);
    }
}

/// How many free objects of a class the magazines of all CPUs hold; exact if nothing is allocated or freed meanwhile.
pub fn waiting(class: usize) -> u32 {
    let len = |slot: &Slot| {
        let magazines = slot.magazines.get();
        // SAFETY: the slot lives for ever; a volatile read of one aligned word, which its CPU may be writing.
        unsafe { (&raw const (*magazines)[class].len).read_volatile() as u32 }
    };
    (0..percpu::MAX_CPUS.min(percpu::cpus_online())).filter_map(|cpu| SLOT.of(cpu)).map(len).sum()
}

/// From now on this CPU keeps nothing: what it has goes to the slabs.
pub fn keep_none() {
    if let Some(class) = Class::nth(0) {
        with_injecting(class, |_| ());
    }
}

/// Readies this CPU's magazines: once on each CPU, before it allocates.
pub fn init_cpu() {
    // SAFETY: the CPU has just started and has not used its slot.
    unsafe { SLOT.as_ptr().cast_mut().write(Slot::new()) }
}
