//! [`Radix`]: a sparse array with 64-bit keys, as a tree of small nodes. A node that holds nothing is freed.

use crate::OutOfMemory;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bits of the key that each node looks at.
const BITS: u32 = 6;
const FANOUT: usize = 1 << BITS;

enum Node<V> {
    Absent,
    Inner(Row<Node<V>>),
    Leaf(Row<Option<V>>),
}

/// A node's parts.
type Row<T> = Box<[T; FANOUT]>;

/// A sparse array.
pub(crate) struct Radix<V> {
    root: Node<V>,
    /// How many nodes lie between the root and a leaf, both counted, but one.
    height: u32,
    /// Above every key whose place was ever made.
    end: u64,
}

/// Where in a node of that height the key belongs.
#[inline]
const fn digit(key: u64, height: u32) -> usize {
    (key >> (height * BITS)) as usize % FANOUT
}

impl<V> Radix<V> {
    /// An empty array; allocates nothing.
    pub(crate) const fn new() -> Self {
        Self { root: Node::Absent, height: 0, end: 0 }
    }

    /// Whether a tree of this height has a place for `key`.
    #[inline]
    fn spans(&self, key: u64) -> bool {
        key.checked_shr((self.height + 1) * BITS).unwrap_or(0) == 0
    }

    /// The value at `key`.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        if !self.spans(key) {
            return None;
        }
        self.get_made(key)
    }

    /// As [`get`](Self::get), of a key whose place was made once.
    #[inline]
    pub(crate) fn get_made(&self, key: u64) -> Option<&V> {
        debug_assert!(self.spans(key), "it was never made");
        let (mut node, mut height) = (&self.root, self.height);
        loop {
            match node {
                Node::Absent => return None,
                Node::Leaf(values) => return values[digit(key, 0)].as_ref(),
                Node::Inner(below) => node = &below[digit(key, height)],
            }
            height -= 1;
        }
    }

    /// The place of `key`, if [`make`](Self::make) made it or its leaf holds something.
    #[inline]
    pub(crate) fn place(&mut self, key: u64) -> Option<&mut Option<V>> {
        if !self.spans(key) {
            return None;
        }
        let (mut node, mut height) = (&mut self.root, self.height);
        loop {
            match node {
                Node::Absent => return None,
                Node::Leaf(values) => return Some(&mut values[digit(key, 0)]),
                Node::Inner(below) => node = &mut below[digit(key, height)],
            }
            height -= 1;
        }
    }

    /// Makes the place of `key`. It stays until something of its node is removed.
    pub(crate) fn make(&mut self, key: u64) -> Result<(), OutOfMemory> {
        while !self.spans(key) {
            if !matches!(self.root, Node::Absent) {
                let mut below = row(|| Node::Absent)?;
                below[0] = core::mem::replace(&mut self.root, Node::Absent);
                self.root = Node::Inner(below);
            }
            self.height += 1;
        }
        let (mut node, mut height) = (&mut self.root, self.height);
        loop {
            if matches!(node, Node::Absent) {
                *node = match height {
                    0 => Node::Leaf(row(|| None)?),
                    _ => Node::Inner(row(|| Node::Absent)?),
                };
            }
            let Node::Inner(below) = node else { break };
            node = &mut below[digit(key, height)];
            height -= 1;
        }
        self.end = self.end.max(key.saturating_add(1));
        Ok(())
    }

    /// Takes the value at `key` out, and frees the nodes that hold nothing any more.
    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        if !self.spans(key) {
            return None;
        }
        remove_below(&mut self.root, self.height, key)
    }

    /// The first places with keys of at least `from`, one leaf's, and the key of the first of them. None: there are no more values.
    #[inline]
    pub(crate) fn places(&self, from: u64) -> Option<(u64, &[Option<V>])> {
        if from >= self.end {
            return None;
        }
        let (first, values) = leaf_from(&self.root, self.height, 0, from)?;
        let from = from.max(first);
        Some((from, &values[digit(from, 0)..]))
    }
}

/// Makes a node's parts.
fn row<T>(part: impl FnMut() -> T) -> Result<Row<T>, OutOfMemory> {
    let mut row = Vec::new();
    row.try_reserve_exact(FANOUT).map_err(|_| OutOfMemory)?;
    row.resize_with(FANOUT, part);
    // It has exactly so many, so nothing is allocated.
    row.try_into().map_err(|_| OutOfMemory)
}

fn remove_below<V>(node: &mut Node<V>, height: u32, key: u64) -> Option<V> {
    let (value, is_empty) = match node {
        Node::Absent => return None,
        Node::Leaf(values) => {
            let value = values[digit(key, 0)].take();
            (value, values.iter().all(Option::is_none))
        }
        Node::Inner(below) => {
            let value = remove_below(&mut below[digit(key, height)], height - 1, key);
            (value, below.iter().all(|node| matches!(node, Node::Absent)))
        }
    };
    if is_empty {
        *node = Node::Absent;
    }
    value
}

/// The first leaf below `node` that has places for `from` or more, and its first key; `first` is that of `node`.
fn leaf_from<V>(
    node: &Node<V>,
    height: u32,
    first: u64,
    from: u64,
) -> Option<(u64, &Row<Option<V>>)> {
    match node {
        Node::Absent => None,
        Node::Leaf(values) => Some((first, values)),
        Node::Inner(below) => {
            let start = if from > first { digit(from, height) } else { 0 };
            let nodes = below.iter().enumerate().skip(start);
            let mut present = nodes.filter(|(_, node)| !matches!(node, Node::Absent));
            present.find_map(|(at, node)| {
                leaf_from(node, height - 1, first + ((at as u64) << (height * BITS)), from)
            })
        }
    }
}
