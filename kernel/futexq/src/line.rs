//! [`Line`]: one queue, with the waiters of all words that fall into it.
//!
//! Ten thousand threads may wait at one word, or at words that share its queue, with interrupts off while one
//! is looked for: so this is a balanced tree (AVL), in which all waiters of a word stand together by arrival.
//! Its depth, and so that of the recursion here, is below 1.45 times the binary logarithm of their number.
//! Never allocates. Locks: the caller's, around all of it.

use crate::entry::{Entry, Link, Taken};
use crate::place::Rank;
use crate::{Key, Kind, Waiter, WrongKind};
use core::cmp::Ordering;

/// A queue.
pub struct Line<K, W> {
    root: Link<K, W>,
    /// The ticket of the next to come.
    next: u64,
}

impl<K, W> Line<K, W> {
    /// Nobody waits.
    #[expect(clippy::new_without_default, reason = "a default would say less")]
    pub const fn new() -> Self {
        Self { root: None, next: 0 }
    }
}

impl<K: Key, W: Waiter> Line<K, W> {
    /// Adds a waiter behind all others at its word. This is queue number `at`.
    #[inline]
    pub(crate) fn push(&mut self, at: usize, mut entry: Entry<K, W>) {
        entry.rank = Rank { hash: entry.key.hash(), ticket: self.next };
        self.next += 1;
        entry.waiter().place().set(at, entry.rank);
        self.root = Some(match self.root.take() {
            None => entry,
            Some(top) => insert(Some(top), entry),
        });
    }

    /// Takes out who stands there, and says that it waits no more.
    #[inline]
    pub(crate) fn remove(&mut self, rank: Rank) -> Link<K, W> {
        let gone = self.unlink(rank);
        if let Some(entry) = &gone {
            entry.waiter().place().empty();
        }
        gone
    }

    #[inline]
    fn unlink(&mut self, rank: Rank) -> Link<K, W> {
        // Nearly always it is alone.
        if let Some(top) = &self.root
            && top.rank == rank
            && top.height == 1
        {
            return self.root.take();
        }
        let (rest, gone) = remove(self.root.take(), rank);
        self.root = rest;
        gone
    }

    /// The first waiter at `key` with this ticket or a later one.
    #[inline]
    pub(crate) fn next(&self, key: K, ticket: u64) -> Option<&Entry<K, W>> {
        let hash = key.hash();
        let mut from = Rank { hash, ticket };
        loop {
            let entry = self.at_or_after(from)?;
            if entry.rank.hash != hash {
                return None;
            }
            if entry.key == key {
                return Some(entry);
            }
            // Another word of the same hash.
            from.ticket = entry.rank.ticket + 1;
        }
    }

    fn at_or_after(&self, rank: Rank) -> Option<&Entry<K, W>> {
        let (mut best, mut at) = (None, &self.root);
        while let Some(entry) = at {
            if entry.rank < rank {
                at = &entry.right;
            } else {
                best = Some(entry);
                at = &entry.left;
            }
        }
        best
    }

    /// The next waiter at `key` for whoever wakes or moves plain ones.
    #[inline]
    fn next_plain(&self, key: K, ticket: u64) -> Result<Option<&Entry<K, W>>, WrongKind> {
        match self.next(key, ticket) {
            Some(entry) if entry.kind != Kind::Plain => Err(WrongKind),
            found => Ok(found),
        }
    }

    #[inline]
    pub(crate) fn take(
        &mut self,
        key: K,
        count: usize,
        bitset: u32,
        taken: &mut Taken<K, W>,
    ) -> Result<(), WrongKind> {
        let mut ticket = 0;
        while taken.len() < count {
            let Some(entry) = self.next_plain(key, ticket)? else { break };
            let rank = entry.rank;
            ticket = rank.ticket + 1;
            if entry.meets(bitset)
                && let Some(entry) = self.remove(rank)
            {
                taken.push(entry);
            }
        }
        Ok(())
    }

    /// Moves up to `count` waiters of a word to another one of this queue, number `at`.
    pub(crate) fn rename(
        &mut self,
        (from, to): (K, K),
        at: usize,
        count: usize,
    ) -> Result<usize, WrongKind> {
        let mut moved = 0;
        // Those that come behind the present ones were moved: the two words may be one.
        let end = self.next;
        while moved < count {
            let Some(entry) = self.next_plain(from, 0)?.filter(|e| e.rank.ticket < end) else {
                break;
            };
            let rank = entry.rank;
            if let Some(mut entry) = self.unlink(rank) {
                entry.key = to;
                self.push(at, entry);
            }
            moved += 1;
        }
        Ok(moved)
    }

    /// Moves up to `count` waiters of a word to another one of queue number `at`, which is `target`.
    pub(crate) fn move_to(
        &mut self,
        target: &mut Self,
        (from, to): (K, K),
        at: usize,
        count: usize,
    ) -> Result<usize, WrongKind> {
        let mut moved = 0;
        while moved < count {
            let Some(entry) = self.next_plain(from, 0)? else { break };
            let rank = entry.rank;
            if let Some(mut entry) = self.unlink(rank) {
                entry.key = to;
                target.push(at, entry);
            }
            moved += 1;
        }
        Ok(moved)
    }

    pub(crate) fn any(&self, key: K, is_meant: impl Fn(Kind<K>) -> bool) -> bool {
        let mut ticket = 0;
        while let Some(entry) = self.next(key, ticket) {
            if is_meant(entry.kind) {
                return true;
            }
            ticket = entry.rank.ticket + 1;
        }
        false
    }
}

fn height<K, W>(tree: &Link<K, W>) -> u8 {
    tree.as_ref().map_or(0, |top| top.height)
}

fn insert<K, W>(tree: Link<K, W>, entry: Entry<K, W>) -> Entry<K, W> {
    let Some(mut top) = tree else { return entry };
    if entry.rank < top.rank {
        top.left = Some(insert(top.left.take(), entry));
    } else {
        top.right = Some(insert(top.right.take(), entry));
    }
    balance(top)
}

/// The rest of the tree, and who stood there.
fn remove<K, W>(tree: Link<K, W>, rank: Rank) -> (Link<K, W>, Link<K, W>) {
    let Some(mut top) = tree else { return (None, None) };
    let gone;
    match rank.cmp(&top.rank) {
        Ordering::Less => (top.left, gone) = remove(top.left.take(), rank),
        Ordering::Greater => (top.right, gone) = remove(top.right.take(), rank),
        Ordering::Equal => {
            let rest = join(top.left.take(), top.right.take());
            top.height = 1;
            return (rest, Some(top));
        }
    }
    (Some(balance(top)), gone)
}

/// Two trees, which a node stood between, made one.
fn join<K, W>(left: Link<K, W>, right: Link<K, W>) -> Link<K, W> {
    let Some(right) = right else { return left };
    let (rest, mut top) = take_first(right);
    top.left = left;
    top.right = rest;
    Some(balance(top))
}

fn take_first<K, W>(mut top: Entry<K, W>) -> (Link<K, W>, Entry<K, W>) {
    match top.left.take() {
        None => (top.right.take(), top),
        Some(left) => {
            let (rest, first) = take_first(left);
            top.left = rest;
            (Some(balance(top)), first)
        }
    }
}

/// A tree whose two sides differ by two in height at most, balanced again.
fn balance<K, W>(mut top: Entry<K, W>) -> Entry<K, W> {
    let (left, right) = (height(&top.left), height(&top.right));
    if left > right + 1 {
        let low = top
            .left
            .take()
            .map(|low| if height(&low.left) < height(&low.right) { to_the_left(low) } else { low });
        top.left = low;
        to_the_right(top)
    } else if right > left + 1 {
        let low = top.right.take().map(|low| {
            if height(&low.right) < height(&low.left) { to_the_right(low) } else { low }
        });
        top.right = low;
        to_the_left(top)
    } else {
        measure(&mut top);
        top
    }
}

fn measure<K, W>(top: &mut Entry<K, W>) {
    top.height = 1 + height(&top.left).max(height(&top.right));
}

/// The left child becomes the root.
fn to_the_right<K, W>(mut top: Entry<K, W>) -> Entry<K, W> {
    let Some(mut root) = top.left.take() else { return top };
    top.left = root.right.take();
    measure(&mut top);
    root.right = Some(top);
    measure(&mut root);
    root
}

/// The right child becomes the root.
fn to_the_left<K, W>(mut top: Entry<K, W>) -> Entry<K, W> {
    let Some(mut root) = top.right.take() else { return top };
    top.right = root.left.take();
    measure(&mut top);
    root.left = Some(top);
    measure(&mut root);
    root
}
