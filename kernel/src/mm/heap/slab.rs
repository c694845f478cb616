//! Slabs: pages cut into objects of one class.
//!
//! A slab's metadata holds its class (tag), the number of its free objects and the first of them (`refs`),
//! and its neighbours in the class's list of slabs with free objects (`word`). The first two bytes of a
//! free object hold the index of the next. All of that is guarded by the class's lock.
//!
//! Owns all slabs. Never writes to an object that is not free. Locks: `Heap`, one for each class.

use super::classes::{Class, SIZES};
use crate::base::PAGE_SIZE;
use crate::mm::frames::{self, For, Pfn};
use crate::mm::layout::DIRECT_MAP_BASE;
use crate::sync::{SpinLock, level};
use alea_frames::Owner;

/// No object, no slab.
const NO_OBJECT: u16 = u16::MAX;
const NO_SLAB: u32 = 0;

/// A class's slabs that have free objects.
struct Partial {
    head: u32,
    /// How many of them have nothing but free objects; one is kept.
    empty: u32,
    /// All slabs of the class.
    slabs: u32,
    /// Objects that are in no slab's free list.
    out: u32,
}

static CLASSES: [SpinLock<Partial, level::Heap>; SIZES.len()] =
    [const { SpinLock::new(Partial { head: NO_SLAB, empty: 0, slabs: 0, out: 0 }) }; SIZES.len()];

/// Fills `out` with free objects: how many there were.
pub fn take(class: Class, out: &mut [*mut u8]) -> usize {
    let mut partial = CLASSES[class.index()].lock();
    let mut done = 0;
    while done < out.len() {
        let slab = match partial.head {
            NO_SLAB => match new_slab(class) {
                Some(slab) => {
                    partial.push(slab);
                    partial.empty += 1;
                    partial.slabs += 1;
                    slab
                }
                None => break,
            },
            head => Slab(Pfn(head)),
        };
        if slab.free() == class.capacity() {
            partial.empty -= 1;
        }
        while done < out.len() {
            let Some(object) = slab.pop(class) else { break };
            out[done] = object;
            done += 1;
        }
        if slab.free() == 0 {
            partial.remove(slab);
        }
    }
    partial.out += done as u32;
    done
}

/// How many slabs a class has, and how many objects are in none of their free lists.
pub fn figures(class: usize) -> (u32, u32) {
    let partial = CLASSES[class].lock();
    (partial.slabs, partial.out)
}

/// Takes objects back into their slabs.
pub fn give(class: Class, objects: &[*mut u8]) {
    let mut partial = CLASSES[class.index()].lock();
    partial.out -= objects.len() as u32;
    for &object in objects {
        let slab = Slab(Pfn::of_phys((object as u64).wrapping_sub(DIRECT_MAP_BASE)));
        debug_assert!(slab.0.meta().owner() == Owner::Slab);
        debug_assert!(
            slab.0.meta().tag() == class.index() as u16,
            "object freed with the wrong size"
        );
        if slab.free() == 0 {
            partial.push(slab);
        }
        slab.push(class, object);
        if slab.free() == class.capacity() {
            if partial.empty > 0 {
                partial.remove(slab);
                partial.slabs -= 1;
                slab.0.meta().set_refs_raw(0);
                frames::free(slab.0);
            } else {
                partial.empty += 1;
            }
        }
    }
}

fn new_slab(class: Class) -> Option<Slab> {
    let frame = frames::alloc(Owner::Slab, For::Kernel)?;
    frame.meta().set_owner_tagged(Owner::Slab, class.index() as u16);
    let slab = Slab(frame);
    slab.set(0, NO_OBJECT);
    for index in (0..class.capacity()).rev() {
        let object = frame.ptr().wrapping_add(index as usize * class.size());
        #[cfg(debug_assertions)]
        super::poison::fill(class, object);
        slab.push(class, object);
    }
    Some(slab)
}

impl Class {
    /// Objects in a slab.
    fn capacity(self) -> u16 {
        (PAGE_SIZE / self.size()) as u16
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Slab(Pfn);

impl Slab {
    fn free(self) -> u16 {
        (self.0.meta().refs_raw() >> 16) as u16
    }

    fn first(self) -> u16 {
        self.0.meta().refs_raw() as u16
    }

    fn set(self, free: u16, first: u16) {
        self.0.meta().set_refs_raw(u32::from(free) << 16 | u32::from(first));
    }

    fn pop(self, class: Class) -> Option<*mut u8> {
        let first = self.first();
        if first == NO_OBJECT {
            return None;
        }
        debug_assert!(first < class.capacity(), "a free object was written to");
        let object = self.0.ptr().wrapping_add(first as usize * class.size());
        // SAFETY: the object is free, so its first bytes hold the next index; the class's lock is held.
        let next = unsafe { object.cast::<u16>().read() };
        self.set(self.free() - 1, next);
        Some(object)
    }

    fn push(self, class: Class, object: *mut u8) {
        let index = (object as usize % PAGE_SIZE) / class.size();
        debug_assert!(object as usize % PAGE_SIZE == index * class.size(), "not an object");
        // SAFETY: the object belongs to this slab and is free from now on; objects are aligned to 16.
        unsafe { object.cast::<u16>().write(self.first()) };
        self.set(self.free() + 1, index as u16);
    }

    /// (next, previous) in the class's list.
    fn links(self) -> (u32, u32) {
        let word = self.0.meta().word();
        (word as u32, (word >> 32) as u32)
    }

    fn set_links(self, next: u32, prev: u32) {
        self.0.meta().set_word(u64::from(prev) << 32 | u64::from(next));
    }
}

impl Partial {
    fn push(&mut self, slab: Slab) {
        slab.set_links(self.head, NO_SLAB);
        if self.head != NO_SLAB {
            let next = Slab(Pfn(self.head));
            let (after, _) = next.links();
            next.set_links(after, slab.0.0);
        }
        self.head = slab.0.0;
    }

    fn remove(&mut self, slab: Slab) {
        let (next, prev) = slab.links();
        if prev == NO_SLAB {
            self.head = next;
        } else {
            let before = Slab(Pfn(prev));
            let (_, back) = before.links();
            before.set_links(next, back);
        }
        if next != NO_SLAB {
            let after = Slab(Pfn(next));
            let (forth, _) = after.links();
            after.set_links(forth, prev);
        }
    }
}
