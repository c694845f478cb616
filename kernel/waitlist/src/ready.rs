//! [`Ready`]: a queue of numbered places, as epoll keeps those of its files that may be ready.
//!
//! Owns the places, in blocks of [`BLOCK`]. A place is claimed once, with memory found before ([`Room`]); after that it is
//! put into the queue and taken out of its middle in constant time, without allocating. The caller has the lock.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Places of one block.
const BLOCK: usize = 64;
/// No place.
const NONE: u32 = u32::MAX;

struct Place<T> {
    /// What was put there; `None` while the place is free.
    value: Option<T>,
    before: u32,
    /// The next in the queue, or among the free places.
    after: u32,
    queued: bool,
}

type Block<T> = Box<[Place<T>; BLOCK]>;

/// Claimed places, and those of them that are queued, first in, first out.
pub struct Ready<T> {
    blocks: Vec<Block<T>>,
    free: u32,
    first: u32,
    last: u32,
    len: usize,
}

/// Memory for more places. What is left of it is dropped without the lock.
pub struct Room<T> {
    block: Option<Block<T>>,
    blocks: Vec<Block<T>>,
}

impl<T> Room<T> {
    /// Memory for one more block beside so many; `None` if there is none.
    pub fn new(blocks: usize) -> Option<Self> {
        let mut block = Vec::new();
        block.try_reserve_exact(BLOCK).ok()?;
        block.resize_with(BLOCK, || Place {
            value: None,
            before: NONE,
            after: NONE,
            queued: false,
        });
        // Neither allocates: the block is as long as its memory.
        let block = block.into_boxed_slice().try_into().ok();
        let mut all = Vec::new();
        // A list that is copied must have doubled, or claims would cost more and more.
        if blocks.is_power_of_two() || blocks == 0 {
            all.try_reserve_exact((2 * blocks).max(1)).ok()?;
        }
        Some(Self { block, blocks: all })
    }
}

impl<T> Ready<T> {
    /// No places yet.
    pub const fn new() -> Self {
        Self { blocks: Vec::new(), free: NONE, first: NONE, last: NONE, len: 0 }
    }

    /// What [`Room::new`] needs to know, if there is no free place.
    pub fn wants_room(&self) -> Option<usize> {
        (self.free == NONE).then_some(self.blocks.len())
    }

    /// Claims a place; `None` if there is none and `room` (which is used up when needed) is not enough.
    pub fn claim(&mut self, value: T, room: &mut Option<Room<T>>) -> Option<u32> {
        if self.free == NONE {
            self.grow(room.as_mut()?)?;
        }
        let at = self.free;
        let place = self.place(at)?;
        let next = place.after;
        *place = Place { value: Some(value), before: NONE, after: NONE, queued: false };
        self.free = next;
        Some(at)
    }

    fn grow(&mut self, room: &mut Room<T>) -> Option<()> {
        let from = u32::try_from(self.blocks.len() * BLOCK).ok().filter(|from| *from < 1 << 31)?;
        if self.blocks.len() == self.blocks.capacity() {
            if room.blocks.capacity() <= self.blocks.len() {
                return None;
            }
            room.blocks.append(&mut self.blocks);
            core::mem::swap(&mut room.blocks, &mut self.blocks);
        }
        let mut block = room.block.take()?;
        for (next, place) in (from + 1..).zip(block.iter_mut()) {
            place.after = next;
        }
        block[BLOCK - 1].after = self.free;
        self.free = from;
        self.blocks.push(block);
        Some(())
    }

    #[inline]
    fn place(&mut self, at: u32) -> Option<&mut Place<T>> {
        let block = self.blocks.get_mut(at as usize / BLOCK)?;
        Some(&mut block[at as usize % BLOCK])
    }

    /// Changes what stands at a claimed place; what was there.
    pub fn put(&mut self, at: u32, value: T) -> Option<T> {
        self.place(at)?.value.as_mut().map(|old| core::mem::replace(old, value))
    }

    /// Gives a place back; what was there. It leaves the queue.
    pub fn release(&mut self, at: u32) -> Option<T> {
        self.unqueue(at);
        let free = self.free;
        let place = self.place(at)?;
        let value = place.value.take()?;
        place.after = free;
        self.free = at;
        Some(value)
    }

    /// Queues a place at the back; false if it is queued already.
    #[inline]
    pub fn push_back(&mut self, at: u32) -> bool {
        let last = self.last;
        if !self.begin(at, last, NONE) {
            return false;
        }
        self.last = at;
        self.follow(last, at);
        true
    }

    /// Queues a place in front; false if it is queued already.
    pub fn push_front(&mut self, at: u32) -> bool {
        let first = self.first;
        if !self.begin(at, NONE, first) {
            return false;
        }
        self.first = at;
        self.precede(first, at);
        true
    }

    /// Marks a claimed place as queued between two others.
    #[inline]
    fn begin(&mut self, at: u32, before: u32, after: u32) -> bool {
        match self.place(at) {
            Some(place) if place.value.is_some() && !place.queued => {
                (place.before, place.after, place.queued) = (before, after, true);
                self.len += 1;
                true
            }
            _ => false,
        }
    }

    /// `next` comes after `at`, or first.
    #[inline]
    fn follow(&mut self, at: u32, next: u32) {
        match self.place(at) {
            None => self.first = next,
            Some(place) => place.after = next,
        }
    }

    /// `previous` comes before `at`, or last.
    #[inline]
    fn precede(&mut self, at: u32, previous: u32) {
        match self.place(at) {
            None => self.last = previous,
            Some(place) => place.before = previous,
        }
    }

    /// Takes a place out of the queue; false if it is not in it.
    pub fn unqueue(&mut self, at: u32) -> bool {
        let (before, after) = match self.place(at) {
            Some(place) if place.queued => {
                place.queued = false;
                (place.before, place.after)
            }
            _ => return false,
        };
        self.follow(before, after);
        self.precede(after, before);
        self.len -= 1;
        true
    }

    /// How many are queued.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is queued.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Ready<T> {
    /// Looks at the first place of the queue, which stays there.
    #[inline]
    pub fn peek<R>(&mut self, look: impl FnOnce(u32, &T) -> R) -> Option<R> {
        let at = self.first;
        self.place(at)?.value.as_ref().map(|value| look(at, value))
    }

    /// Puts a place that is queued behind all others; false if it is not queued.
    pub fn rotate(&mut self, at: u32) -> bool {
        self.unqueue(at) && self.push_back(at)
    }

    /// Takes the first place out of the queue; what stands there stays, and `look` looks at it.
    #[inline]
    pub fn pop<R>(&mut self, look: impl FnOnce(u32, &T) -> R) -> Option<R> {
        let at = self.first;
        let place = self.place(at)?;
        let looked = look(at, place.value.as_ref()?);
        place.queued = false;
        let after = place.after;
        self.first = after;
        self.precede(after, NONE);
        self.len -= 1;
        Some(looked)
    }
}

impl<T> Default for Ready<T> {
    fn default() -> Self {
        Self::new()
    }
}
