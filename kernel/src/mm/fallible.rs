//! Allocations that can fail, for everything that the kernel allocates once users run.
//!
//! Owns nothing. The `alloc` crate ends the machine when `Box::new`, `Arc::new` or `Vec::push` finds no memory; what is
//! here gives `ENOMEM` instead. `kernel/clippy.toml` forbids the others, but where an `expect` says why they cannot fail.
//!
//! How it works: `Vec` and its kin have a `try_reserve`. For the rest, [`heap::reserve`] puts free objects
//! of the right sizes into this CPU's magazine, and the allocation that follows at once takes them from there. It
//! cannot fail, since the kernel is not preempted inside itself and interrupt handlers never allocate; the checking
//! kernel (debug assertions) panics if a handler does, or if the promise is not kept.
//!
//! Locks: none of its own; the heap's are taken and left inside each call.
//!
//! Never: a value that is given here is dropped when there is no memory. So a caller that holds a lock which the value's
//! `Drop` takes makes the memory first and the value last ([`Room`]).

use super::heap::{self, classes, magazine};
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque, btree_map};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt::{self, Write};
use core::mem::MaybeUninit;

/// What an `Arc` allocates.
#[repr(C)]
struct Counted<T> {
    counts: [usize; 2],
    value: T,
}

/// Memory for one `T` in an `Arc`, so that the value may be made after what can fail, and where it stays: whoever fills a
/// room at once saves a copy of the value.
#[must_use]
pub struct Room<T>(Arc<MaybeUninit<T>>);

impl<T> Room<T> {
    const LAYOUT: Layout = {
        let layout = Layout::new::<Counted<T>>();
        assert!(layout.size() <= classes::MAX, "too large for one allocation: box its parts");
        layout
    };

    /// Allocates it.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "the memory was reserved")]
    pub fn new() -> Result<Self> {
        match heap::reserve(Self::LAYOUT, 1) {
            true => Ok(Self(magazine::promised(Arc::new_uninit))),
            false => Err(Errno::ENOMEM),
        }
    }

    /// Fills it. Always inlined: a value that is made in the call is written where it stays.
    #[inline(always)]
    pub fn arc(self, value: T) -> Arc<T> {
        // SAFETY: this is the only reference to the memory, which is written as a whole before anybody reads it.
        unsafe {
            Arc::as_ptr(&self.0).cast_mut().cast::<T>().write(value);
            self.0.assume_init()
        }
    }
}

/// An `Arc` of `value`, or `ENOMEM`.
#[inline]
pub fn try_arc<T>(value: T) -> Result<Arc<T>> {
    Ok(Room::new()?.arc(value))
}

/// As `Arc::new_cyclic`.
#[inline]
#[expect(clippy::disallowed_methods, reason = "the memory was reserved")]
pub fn try_arc_cyclic<T>(make: impl FnOnce(&Weak<T>) -> T) -> Result<Arc<T>> {
    enough(heap::reserve(Room::<T>::LAYOUT, 1))?;
    Ok(Arc::new_cyclic(make))
}

/// A `Box` of `value`, or `ENOMEM`.
#[inline]
#[expect(clippy::disallowed_methods, reason = "the memory was reserved")]
pub fn try_box<T>(value: T) -> Result<Box<T>> {
    let layout = const {
        let layout = Layout::new::<T>();
        assert!(layout.size() <= classes::MAX, "too large for one allocation: box its parts");
        layout
    };
    if layout.size() != 0 && !heap::reserve(layout, 1) {
        return Err(Errno::ENOMEM);
    }
    Ok(Box::write(magazine::promised(Box::new_uninit), value))
}

/// Growth of a list that gives `ENOMEM`.
pub trait TryGrow<T>: Sized {
    /// Makes room for so many more.
    fn try_room(&mut self, more: usize) -> Result<()>;
    /// Adds one at the end.
    fn try_push(&mut self, value: T) -> Result<()>;

    /// Adds all at the end; after an error some may be there.
    #[inline]
    fn try_extend(&mut self, values: impl IntoIterator<Item = T>) -> Result<()> {
        let values = values.into_iter();
        self.try_room(values.size_hint().0)?;
        values.into_iter().try_for_each(|value| self.try_push(value))
    }
}

impl<T> TryGrow<T> for Vec<T> {
    #[inline]
    fn try_room(&mut self, more: usize) -> Result<()> {
        self.try_reserve(more).map_err(|_| Errno::ENOMEM)
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn try_push(&mut self, value: T) -> Result<()> {
        if self.len() == self.capacity() {
            self.try_room(1)?;
        }
        self.push(value);
        Ok(())
    }
}

impl<T> TryGrow<T> for VecDeque<T> {
    #[inline]
    fn try_room(&mut self, more: usize) -> Result<()> {
        self.try_reserve(more).map_err(|_| Errno::ENOMEM)
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn try_push(&mut self, value: T) -> Result<()> {
        if self.len() == self.capacity() {
            self.try_room(1)?;
        }
        self.push_back(value);
        Ok(())
    }
}

/// What only `Vec` can.
pub trait TryVec<T>: TryGrow<T> {
    /// An empty one with room for so many.
    fn with_room(capacity: usize) -> Result<Self>;
    /// Makes it longer with copies of `value`, or shorter.
    fn try_resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Clone;
    /// Adds a copy of a slice.
    fn try_extend_from_slice(&mut self, values: &[T]) -> Result<()>
    where
        T: Copy;
}

impl<T> TryVec<T> for Vec<T> {
    #[inline]
    fn with_room(capacity: usize) -> Result<Self> {
        let mut vec = Vec::new();
        vec.try_reserve_exact(capacity).map_err(|_| Errno::ENOMEM)?;
        Ok(vec)
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn try_resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        self.try_room(len.saturating_sub(self.len()))?;
        self.resize(len, value);
        Ok(())
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn try_extend_from_slice(&mut self, values: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.try_room(values.len())?;
        self.extend_from_slice(values);
        Ok(())
    }
}

/// A copy of a slice, or `ENOMEM`.
#[inline]
pub fn try_copy<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut vec = Vec::with_room(values.len())?;
    vec.try_extend_from_slice(values)?;
    Ok(vec)
}

/// Collecting into a `Vec` that gives `ENOMEM`.
pub trait TryCollect: Iterator + Sized {
    /// All items.
    #[inline]
    fn try_to_vec(self) -> Result<Vec<Self::Item>> {
        let mut vec = Vec::new();
        vec.try_extend(self)?;
        Ok(vec)
    }
}

impl<I: Iterator> TryCollect for I {}

/// Text that grows fallibly.
pub trait TryString: Sized {
    /// Adds text.
    fn try_push_str(&mut self, text: &str) -> Result<()>;
    /// Adds a character.
    fn try_push_char(&mut self, one: char) -> Result<()>;
    /// Adds what `format_args!` describes.
    fn try_append(&mut self, text: fmt::Arguments<'_>) -> Result<()>;
}

/// A writer that says when there was no memory.
struct Growing<'a>(&'a mut String);

impl Write for Growing<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.try_push_str(text).map_err(|_| fmt::Error)
    }
}

impl TryString for String {
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn try_push_str(&mut self, text: &str) -> Result<()> {
        self.try_reserve(text.len()).map_err(|_| Errno::ENOMEM)?;
        self.push_str(text);
        Ok(())
    }

    #[inline]
    fn try_push_char(&mut self, one: char) -> Result<()> {
        self.try_push_str(one.encode_utf8(&mut [0; 4]))
    }

    #[expect(clippy::disallowed_methods, reason = "this writer is fallible")]
    fn try_append(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        // The kernel's own `Display`s do not fail by themselves.
        Growing(self).write_fmt(text).map_err(|_| Errno::ENOMEM)
    }
}

/// As `format!`: call it through `try_format!`.
pub fn format(text: fmt::Arguments<'_>) -> Result<String> {
    let mut string = String::new();
    string.try_append(text)?;
    Ok(string)
}

/// What `write` writes, as text of its own, or `ENOMEM`.
pub fn written(write: impl FnOnce(&mut dyn Write) -> fmt::Result) -> Result<String> {
    let mut string = String::new();
    write(&mut Growing(&mut string)).map_err(|_| Errno::ENOMEM)?;
    Ok(string)
}

/// A copy of text, or `ENOMEM`.
pub fn try_string(text: &str) -> Result<String> {
    let mut string = String::new();
    string.try_push_str(text)?;
    Ok(string)
}

/// As `format!`, but a `Result`.
#[macro_export]
macro_rules! try_format {
    ($($args:tt)*) => { $crate::mm::fallible::format(format_args!($($args)*)) };
}

/// As `write!` into a `String`, but `ENOMEM` instead of a panic.
#[macro_export]
macro_rules! try_write {
    ($to:expr, $($args:tt)*) => {{
        use $crate::mm::fallible::TryString as _;
        $to.try_append(format_args!($($args)*))
    }};
}

/// As `writeln!` into a `String`, but `ENOMEM` instead of a panic.
#[macro_export]
macro_rules! try_writeln {
    ($to:expr, $($args:tt)*) => {{
        use $crate::mm::fallible::TryString as _;
        $to.try_append(format_args!($($args)*)).and_then(|()| $to.try_push_str("\n"))
    }};
}

/// Laid out like the leaves of the library's B-trees: the same fields, in an order that the compiler chooses.
#[expect(dead_code, reason = "only its size is wanted")]
struct Leaf<K, V> {
    parent: Option<core::ptr::NonNull<u8>>,
    keys: [MaybeUninit<K>; NODE],
    values: [MaybeUninit<V>; NODE],
    parent_index: MaybeUninit<u16>,
    len: u16,
}

/// And like the nodes above them.
#[repr(C)]
struct Inner<K, V> {
    data: Leaf<K, V>,
    edges: [MaybeUninit<core::ptr::NonNull<u8>>; NODE + 1],
}

/// Entries of a full node, and of the emptiest but the root.
const NODE: usize = 11;
const LEAST: usize = 5;

/// Makes sure that one insertion into a map of `len` entries finds memory.
///
/// An insertion splits at most one node on each level and then makes a new root: one leaf, and as many inner nodes as the
/// tree has levels above the leaves, and one. Each node but the root holds at least [`LEAST`] entries, so a tree with `h`
/// such levels has at least `2 * 6^h - 1`; with fewer than [`NODE`] entries there is one leaf, and it has room.
#[inline]
fn reserve_nodes<K, V>(len: usize) -> Result<()> {
    const {
        let layout = Layout::new::<Inner<K, V>>();
        assert!(
            layout.size() <= classes::MAX,
            "nodes too large for one allocation: box the values"
        );
    }
    if len == 0 {
        return enough(heap::reserve(Layout::new::<Leaf<K, V>>(), 1));
    }
    if len < NODE {
        return Ok(());
    }
    let levels = len.div_ceil(2).ilog(LEAST + 1) as usize;
    let (leaf, inner) = (Layout::new::<Leaf<K, V>>(), Layout::new::<Inner<K, V>>());
    // Both may be of one class: the inner nodes' reserve counts the leaf too.
    enough(heap::reserve(leaf, 1) && heap::reserve(inner, levels + 2))
}

fn enough(found: bool) -> Result<()> {
    if found { Ok(()) } else { Err(Errno::ENOMEM) }
}

/// Growth of a map that gives `ENOMEM`.
pub trait TryMap<K, V> {
    /// As `insert`; what was there before.
    fn try_put(&mut self, key: K, value: V) -> Result<Option<V>>;
    /// The value of `key`, which `make` makes if there is none.
    fn try_entry(&mut self, key: K, make: impl FnOnce() -> V) -> Result<&mut V>;
}

impl<K: Ord, V> TryMap<K, V> for BTreeMap<K, V> {
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "the memory was reserved")]
    fn try_put(&mut self, key: K, value: V) -> Result<Option<V>> {
        reserve_nodes::<K, V>(self.len())?;
        Ok(magazine::promised(|| self.insert(key, value)))
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "the memory was reserved")]
    fn try_entry(&mut self, key: K, make: impl FnOnce() -> V) -> Result<&mut V> {
        let len = self.len();
        match self.entry(key) {
            btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            btree_map::Entry::Vacant(entry) => {
                let value = make();
                reserve_nodes::<K, V>(len)?;
                Ok(magazine::promised(|| entry.insert(value)))
            }
        }
    }
}

/// A short list with a copy of a slice.
pub fn try_small<A: smallvec::Array>(values: &[A::Item]) -> Result<smallvec::SmallVec<A>>
where
    A::Item: Copy,
{
    if values.len() <= A::size() {
        #[expect(clippy::disallowed_methods, reason = "it fits without memory")]
        return Ok(smallvec::SmallVec::from_slice(values));
    }
    let mut small = smallvec::SmallVec::new();
    small.try_reserve_exact(values.len()).map_err(|_| Errno::ENOMEM)?;
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    small.extend_from_slice(values);
    Ok(small)
}

impl<A: smallvec::Array> TryGrow<A::Item> for smallvec::SmallVec<A> {
    #[inline]
    fn try_room(&mut self, more: usize) -> Result<()> {
        self.try_reserve(more).map_err(|_| Errno::ENOMEM)
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn try_push(&mut self, value: A::Item) -> Result<()> {
        if self.len() == self.capacity() {
            self.try_room(1)?;
        }
        self.push(value);
        Ok(())
    }
}

/// As [`TryGrow::try_extend`], of values that know their number, for which there is room then.
#[inline]
pub fn extend_small<A: smallvec::Array>(
    list: &mut smallvec::SmallVec<A>,
    values: impl ExactSizeIterator<Item = A::Item>,
) -> Result<()> {
    list.try_room(values.len())?;
    list.extend(values);
    Ok(())
}

/// Copies of slices that give `ENOMEM`.
pub trait TrySlice<T> {
    /// As `to_vec`.
    fn try_owned(&self) -> Result<Vec<T>>;
}

impl<T: Copy> TrySlice<T> for [T] {
    #[inline]
    fn try_owned(&self) -> Result<Vec<T>> {
        try_copy(self)
    }
}
