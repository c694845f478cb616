//! The queues of futexes: who waits at which word, in which order, and who is woken, moved, or gives up.
//!
//! Owns no lock, no memory of the user and no task: the kernel brings locks ([`Exclusive`]), names of words
//! ([`Key`]) and tasks ([`Waiter`]), and wakes whom it finds in [`Taken`]. So the code that runs in the kernel
//! runs under loom (`tests/loom.rs`) and against a model (`tests/model.rs`) too.
//!
//! # Rules
//!
//! - A waiter is in one queue at most, and its [`Place`] says in which. That changes only under the lock of
//!   the queue that it leaves and of the one that it enters.
//! - Who takes a waiter out has woken it: it has its place empty, before the lock goes, and no more.
//! - Nothing here allocates under a lock. A waiter brings its [`Entry`], and the same entry moves with it.
//!
//! Locks: one of a queue, or two of different queues, the lower index first. Nothing is called with one held
//! but [`Waiter::place`] and what [`Table::first`] is given.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod entry;
mod line;
mod place;
mod sync;

pub use entry::{Entry, NoMemory, Taken};
pub use line::Line;
pub use place::Place;

/// The name of a word.
pub trait Key: Copy + Eq {
    /// Evenly spread. It decides which queue the waiters of the word are in, and where they stand there.
    fn hash(&self) -> u64;
}

/// What waits: a handle to a task.
pub trait Waiter {
    /// Where it waits.
    fn place(&self) -> &Place;
}

impl<W: Waiter> Waiter for alloc::sync::Arc<W> {
    #[inline]
    fn place(&self) -> &Place {
        (**self).place()
    }
}

/// A lock around one queue.
pub trait Exclusive<T> {
    /// Runs `f` while nobody else has the value.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// What somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind<K> {
    /// To be woken.
    Plain,
    /// To be moved to the queue of a lock that lends priority.
    ForPi(K),
    /// For such a lock, whose own queue the kernel has.
    Pi,
}

/// Somebody at the word waits in another way than the call is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongKind;

/// All queues.
pub struct Table<L, const N: usize> {
    queues: [L; N],
}

impl<L, const N: usize> Table<L, N> {
    /// A table of these queues.
    pub const fn new(queues: [L; N]) -> Self {
        Self { queues }
    }

    #[inline]
    fn index<K: Key>(key: K) -> usize {
        (key.hash() >> 48) as usize % N
    }

    /// Puts a waiter behind all others at its word.
    #[inline]
    pub fn queue<K: Key, W: Waiter>(&self, entry: Entry<K, W>)
    where
        L: Exclusive<Line<K, W>>,
    {
        let at = Self::index(entry.key());
        self.queues[at].with(|line| line.push(at, entry));
    }

    /// Takes up to `count` waiters at `key` whose bitset meets `bitset`, first come first.
    ///
    /// # Errors
    /// At one that does not wait to be woken; those before it are taken all the same.
    #[inline]
    pub fn wake<K: Key, W: Waiter>(
        &self,
        key: K,
        count: usize,
        bitset: u32,
        taken: &mut Taken<K, W>,
    ) -> Result<(), WrongKind>
    where
        L: Exclusive<Line<K, W>>,
    {
        self.queues[Self::index(key)].with(|line| line.take(key, count, bitset, taken))
    }

    /// Takes up to `wakes` waiters of the first word and moves up to `moves` others to the second one, behind
    /// all that wait there: how many moved.
    ///
    /// # Errors
    /// As [`wake`](Self::wake)'s.
    pub fn requeue<K: Key, W: Waiter>(
        &self,
        (from, to): (K, K),
        (wakes, moves): (usize, usize),
        taken: &mut Taken<K, W>,
    ) -> Result<usize, WrongKind>
    where
        L: Exclusive<Line<K, W>>,
    {
        let (a, b) = (Self::index(from), Self::index(to));
        if a == b {
            return self.queues[a].with(|line| {
                line.take(from, wakes, u32::MAX, taken)?;
                line.rename((from, to), a, moves)
            });
        }
        let mut both = |source: &mut Line<K, W>, target: &mut Line<K, W>| {
            source.take(from, wakes, u32::MAX, taken)?;
            source.move_to(target, (from, to), b, moves)
        };
        if a < b {
            self.queues[a].with(|source| self.queues[b].with(|target| both(source, target)))
        } else {
            self.queues[b].with(|target| self.queues[a].with(|source| both(source, target)))
        }
    }

    /// Takes a waiter out that gives up: its entry, or nothing if somebody took it out before, which was a
    /// wake-up spent on it.
    #[inline]
    pub fn leave<K: Key, W: Waiter>(&self, waiter: &impl Waiter) -> Option<Entry<K, W>>
    where
        L: Exclusive<Line<K, W>>,
    {
        let place = waiter.place();
        while let Some(at) = place.queue() {
            // It may have been moved before the lock was taken; not after.
            let left = self.queues[at]
                .with(|line| (place.queue() == Some(at)).then(|| line.remove(place.rank())));
            if let Some(entry) = left {
                return entry;
            }
        }
        None
    }

    /// Looks at the first waiter at `key`, with the queue locked.
    pub fn first<K: Key, W: Waiter, R>(
        &self,
        key: K,
        look: impl FnOnce(Option<&Entry<K, W>>) -> R,
    ) -> R
    where
        L: Exclusive<Line<K, W>>,
    {
        self.queues[Self::index(key)].with(|line| look(line.next(key, 0)))
    }

    /// Whether somebody at `key` waits in one of the ways that `is_meant` tells.
    pub fn any<K: Key, W: Waiter>(&self, key: K, is_meant: impl Fn(Kind<K>) -> bool) -> bool
    where
        L: Exclusive<Line<K, W>>,
    {
        self.queues[Self::index(key)].with(|line| line.any(key, is_meant))
    }
}
