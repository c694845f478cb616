//! The frames that each CPU keeps at hand, and its counts by owner.
//!
//! A cache is touched only by its own CPU, through [`with`]. An interrupt handler that arrives inside such a use finds
//! the cache busy and does without it, so no interrupt needs to be disabled. Never blocks inside such a use: the CPU is
//! pinned, and the checking kernel panics. Owns the caches and the [`DEPOT`] between the CPUs. Locks: `Frames`, for the
//! depot.

use super::buddy;
use super::pfn::{For, Pfn};
use crate::base::percpu::{self, MAX_CPUS};
use crate::per_cpu;
use crate::sync::{SpinLock, level};
use alea_frames::Owner;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering, compiler_fence};

/// Hot frames per CPU, and how many move to or from the buddy at a time.
const HOT: usize = 256;
const BATCH: usize = 96;
/// Zeroed frames per CPU.
const ZEROED: usize = 256;
/// Empty page tables per CPU.
const TABLES: usize = 64;
/// Top-level tables with the kernel's half filled in, of each kind, per CPU.
const ROOTS: usize = 8;

/// The kinds of top-level tables: what the kernel runs on, and where tables are isolated, what a program runs on.
#[derive(Clone, Copy)]
pub(in crate::mm) enum Root {
    Kernels,
    Programs,
}

impl Root {
    const COUNT: usize = 2;
}

/// Empty tables on their way from the CPUs where processes end to those where they are made.
struct Depot {
    tables: Stack<{ 4 * TABLES }>,
    roots: [Stack<{ 4 * ROOTS }>; Root::COUNT],
}

static DEPOT: SpinLock<Depot, level::Frames> =
    SpinLock::new(Depot { tables: Stack::new(), roots: [const { Stack::new() }; Root::COUNT] });

/// A stack of frame numbers.
struct Stack<const N: usize> {
    len: usize,
    frames: [u32; N],
}

impl<const N: usize> Stack<N> {
    const fn new() -> Self {
        Self { len: 0, frames: [0; N] }
    }

    #[inline]
    fn pop(&mut self) -> Option<Pfn> {
        let len = self.len.checked_sub(1)?;
        let frame = *self.frames.get(len)?;
        self.len = len;
        Some(Pfn(frame))
    }

    #[inline]
    fn push(&mut self, frame: Pfn) -> bool {
        match self.frames.get_mut(self.len) {
            Some(slot) => {
                *slot = frame.0;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// Gives all back to the buddy: whether there were any.
    fn give_back(&mut self) -> bool {
        buddy::give_back(&self.frames[..self.len]);
        core::mem::take(&mut self.len) != 0
    }

    /// Moves the half last pushed to `other`, as far as it fits there.
    fn share<const M: usize>(&mut self, other: &mut Stack<M>) {
        let count = (N / 2).min(self.len).min(M - other.len);
        self.len -= count;
        let moved = &self.frames[self.len..self.len + count];
        other.frames[other.len..other.len + count].copy_from_slice(moved);
        other.len += count;
    }

    /// As [`share`](Self::share), the other way round: as much as half of this one.
    fn restock<const M: usize>(&mut self, other: &mut Stack<M>) {
        let count = (N / 2).min(other.len).min(N - self.len);
        other.len -= count;
        let moved = &other.frames[other.len..other.len + count];
        self.frames[self.len..self.len + count].copy_from_slice(moved);
        self.len += count;
    }
}

/// One CPU's frames and counts.
pub(super) struct Cache {
    hot: Stack<HOT>,
    zeroed: Stack<ZEROED>,
    tables: Stack<TABLES>,
    roots: [Stack<ROOTS>; Root::COUNT],
    counts: [u64; Owner::COUNT],
}

impl Cache {
    const fn new() -> Self {
        Self {
            hot: Stack::new(),
            zeroed: Stack::new(),
            tables: Stack::new(),
            roots: [const { Stack::new() }; Root::COUNT],
            counts: [0; Owner::COUNT],
        }
    }

    #[inline]
    pub fn count(&mut self, owner: Owner, frames: i64) {
        // Wrapping: only the sum over all CPUs is a true count.
        self.counts[owner as usize] = self.counts[owner as usize].wrapping_add_signed(frames);
    }

    /// A frame with undefined contents.
    #[inline]
    pub fn pop(&mut self, owner: Owner, whom: For) -> Option<Pfn> {
        let frame = match self.hot.pop() {
            Some(frame) => frame,
            None => self.pop_slow(whom)?,
        };
        self.count(owner, 1);
        Some(frame)
    }

    #[cold]
    fn pop_slow(&mut self, whom: For) -> Option<Pfn> {
        self.hot.len = buddy::refill(&mut self.hot.frames[..BATCH], whom);
        self.hot.pop().or_else(|| self.zeroed.pop()).or_else(|| self.take_table())
    }

    #[inline]
    pub fn pop_zeroed(&mut self, owner: Owner) -> Option<Pfn> {
        let frame = self.zeroed.pop()?;
        self.count(owner, 1);
        Some(frame)
    }

    #[inline]
    pub fn pop_table(&mut self) -> Option<Pfn> {
        let frame = self.take_table()?;
        self.count(Owner::PageTable, 1);
        Some(frame)
    }

    #[inline]
    fn take_table(&mut self) -> Option<Pfn> {
        if self.tables.len == 0 {
            self.restock_tables();
        }
        self.tables.pop()
    }

    /// Takes in a freed frame.
    #[inline]
    pub fn push(&mut self, frame: Pfn, owner: Owner) {
        self.count(owner, -1);
        if !self.hot.push(frame) {
            self.push_slow(frame);
        }
    }

    #[cold]
    fn push_slow(&mut self, frame: Pfn) {
        // The oldest go: what was freed last is most likely still in the CPU's caches.
        buddy::give_back(&self.hot.frames[..BATCH]);
        self.hot.frames.copy_within(BATCH.., 0);
        self.hot.len = HOT - BATCH;
        self.hot.push(frame);
    }

    #[inline]
    pub fn push_table(&mut self, table: Pfn) -> bool {
        if self.tables.len == TABLES {
            self.share_tables();
        }
        let kept = self.tables.push(table);
        if kept {
            self.count(Owner::PageTable, -1);
        }
        kept
    }

    #[cold]
    fn share_tables(&mut self) {
        self.tables.share(&mut DEPOT.lock().tables);
    }

    #[cold]
    fn restock_tables(&mut self) {
        self.tables.restock(&mut DEPOT.lock().tables);
    }

    pub fn pop_root(&mut self, kind: Root) -> Option<Pfn> {
        let roots = &mut self.roots[kind as usize];
        if roots.len == 0 {
            roots.restock(&mut DEPOT.lock().roots[kind as usize]);
        }
        let frame = roots.pop()?;
        self.count(Owner::PageTable, 1);
        Some(frame)
    }

    pub fn push_root(&mut self, root: Pfn, kind: Root) -> bool {
        let roots = &mut self.roots[kind as usize];
        if roots.len == ROOTS {
            roots.share(&mut DEPOT.lock().roots[kind as usize]);
        }
        let kept = roots.push(root);
        if kept {
            self.count(Owner::PageTable, -1);
        }
        kept
    }

    /// A free frame for the caller to zero, unless enough are zeroed.
    pub fn take_to_zero(&mut self) -> Option<Pfn> {
        if self.zeroed.len == ZEROED {
            return None;
        }
        let mut one = [0];
        (buddy::refill(&mut one, For::Stock) == 1).then_some(Pfn(one[0]))
    }

    pub fn push_zeroed(&mut self, frame: Pfn) -> bool {
        self.zeroed.push(frame)
    }

    fn drain(&mut self) {
        self.hot.give_back();
        self.zeroed.give_back();
        loop {
            let mut depot = DEPOT.lock();
            self.tables.restock(&mut depot.tables);
            for (own, other) in self.roots.iter_mut().zip(&mut depot.roots) {
                own.restock(other);
            }
            drop(depot);
            if !self.give_tables_back() {
                break;
            }
        }
    }

    /// Whether there were any.
    fn give_tables_back(&mut self) -> bool {
        let tables = self.tables.give_back();
        self.roots.iter_mut().fold(tables, |any, roots| roots.give_back() || any)
    }
}

/// A cache and the mark that it is in use.
struct Slot {
    busy: AtomicBool,
    cache: UnsafeCell<Cache>,
}

per_cpu! {
    static SLOT: Slot = Slot { busy: AtomicBool::new(false), cache: UnsafeCell::new(Cache::new()) };
}

/// Where each CPU's slot is, for the statistics.
static SLOTS: [AtomicPtr<Slot>; MAX_CPUS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CPUS];

/// Runs `f` on this CPU's cache; `None` when this code interrupted another use of it.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    let _pinned = percpu::Pinned::new();
    let slot = SLOT.as_ptr();
    // SAFETY: the slot of this CPU lives for ever; task code is not preempted and, being pinned, does not block in
    // `f`, so the pointer stays this CPU's own.
    let slot = unsafe { &*slot };
    // Relaxed with compiler fences: the mark is read and written by one CPU only, in program order; it
    // orders this code against interrupt handlers on the same CPU.
    if slot.busy.load(Ordering::Relaxed) {
        return None;
    }
    slot.busy.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::Acquire);
    // SAFETY: `busy` was clear, and only this CPU uses the slot: nobody else has a reference to the cache
    // until it is cleared again. `f` must not call `with` again: it would find the slot busy.
    let result = f(unsafe { &mut *slot.cache.get() });
    compiler_fence(Ordering::Release);
    slot.busy.store(false, Ordering::Relaxed);
    Some(result)
}

/// Readies this CPU's cache: once on each CPU, before it allocates.
pub fn init_cpu() {
    let slot = SLOT.as_ptr().cast_mut();
    // SAFETY: the CPU has just started and has not used its slot; what the linked image or a copy of
    // another CPU's section left there is overwritten.
    unsafe {
        slot.write(Slot { busy: AtomicBool::new(false), cache: UnsafeCell::new(Cache::new()) })
    };
    // Release: pairs with the Acquire in `for_each`.
    SLOTS[percpu::cpu_id()].store(slot, Ordering::Release);
}

/// Gives everything that this CPU keeps back to the buddy.
pub(super) fn drain() {
    with(Cache::drain);
}

/// Gives everything that this CPU keeps back to the buddy and leaves the cache marked as used, for good, so that all
/// go to the buddy.
pub(super) fn close() {
    if with(Cache::drain).is_some() {
        // SAFETY: as in `with`. An interrupt between the two uses the cache as always and leaves few frames in it.
        unsafe { &*SLOT.as_ptr() }.busy.store(true, Ordering::Relaxed);
    }
}

/// A look at one CPU's numbers, which may be changing.
pub(super) struct Glimpse(*const Cache);

impl Glimpse {
    pub fn counts(&self) -> [u64; Owner::COUNT] {
        // SAFETY: the slot lives for ever; a volatile read of each number: another CPU may be writing it,
        // and an aligned word is read whole.
        core::array::from_fn(|i| unsafe { (&raw const (*self.0).counts[i]).read_volatile() })
    }
}

/// Looks at every CPU's numbers.
pub(super) fn for_each(mut look: impl FnMut(Glimpse)) {
    for slot in &SLOTS {
        // Acquire: pairs with the Release in `init_cpu`.
        let slot = slot.load(Ordering::Acquire);
        if !slot.is_null() {
            // SAFETY: registered slots live for ever; only the address of the cache is taken.
            look(Glimpse(unsafe { UnsafeCell::raw_get(&raw const (*slot).cache) }));
        }
    }
}
