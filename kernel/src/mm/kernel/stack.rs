//! Kernel stacks: 16 KiB each, with an unmapped guard below, cached.
//!
//! Each stack has a slot of 32 KiB in the vmalloc area, of which the upper half is mapped: running off the
//! lower end faults. A slot keeps its frames when its stack is dropped and waits, first in a cache per
//! CPU, then in a shared list, for the next task. Idle CPUs give back the frames of what is too much for the shared
//! list ([`trim`]), and whoever finds no memory those of all of it ([`shrink`]); the number of such a slot waits in another list, linked through the page-table entries that
//! have nothing to map.
//!
//! Owns these slots. Never hands a frame on that a CPU may still reach by its TLB: [`trim`] flushes all CPUs before it
//! frees. Locks: `Leaf` for the shared lists; a CPU's own list is used with interrupts off.

use super::vmalloc;
use crate::base::PAGE_SIZE;
use crate::base::cpu::without_interrupts;
use crate::mm::frames::inject;
use crate::mm::frames::{self, For};
use crate::mm::layout;
use crate::mm::space::flush_kernel;
use crate::mm::space::table::tlb::SINGLE as MAX_FLUSHED;
use crate::per_cpu;
use crate::sync::counted::{Counted, Kind};
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alea_frames::Owner;
use arrayvec::ArrayVec;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use x86_64::VirtAddr;

/// Frames of stacks that are in no slot: none, but while a slot is being filled.
pub fn lost_frames() -> i64 {
    // Relaxed: exact while no stack is made.
    let slots = SLOTS.load(Ordering::Relaxed) - BARE_LEN.load(Ordering::Relaxed);
    frames::stats().kernel_stacks as i64 - (slots * PAGES as u64) as i64
}

/// Usable bytes of a kernel stack.
pub const KERNEL_STACK_SIZE: usize = 16 * 1024;
const PAGES: usize = KERNEL_STACK_SIZE / PAGE_SIZE;
const SLOT: u64 = 2 * KERNEL_STACK_SIZE as u64;

/// Most stacks that there can be.
const MAX_STACKS: u64 = 1 << 20;
/// Most stacks that wait on one CPU.
const PER_CPU: usize = 8;

/// One kernel stack; dropping it gives it back to the cache.
pub struct KernelStack {
    top: u64,
    _counted: Counted,
}

per_cpu! {
    static WAITING: Cell<List> = Cell::new(List::EMPTY);
}

/// Most unused stacks that no CPU keeps and that keep their frames, after a while.
const KEPT: usize = 64;
/// Stacks that are trimmed at once.
const TRIMMED: usize = MAX_FLUSHED / PAGES;

/// How many are in the shared list. Relaxed: written under its lock, read as a hint.
static SHARED_LEN: AtomicUsize = AtomicUsize::new(0);
/// The first slot without frames, counted from 1; 0 for none. The next one's number is the note where its
/// topmost page was.
static BARE: SpinLock<u32, level::Leaf> = SpinLock::new(0);
/// How many they are. Relaxed: a statistic.
static BARE_LEN: AtomicU64 = AtomicU64::new(0);

/// Unused stacks that no CPU keeps.
static SHARED: SpinLock<List, level::Leaf> = SpinLock::new(List::EMPTY);
/// How many slots were ever used. Relaxed: only hands out distinct numbers.
static SLOTS: AtomicU64 = AtomicU64::new(0);

/// Unused stacks, linked through their topmost words.
#[derive(Clone, Copy)]
struct List {
    top: u64,
    len: usize,
}

impl List {
    const EMPTY: Self = Self { top: 0, len: 0 };

    fn pop(&mut self) -> Option<u64> {
        self.len = self.len.checked_sub(1)?;
        let top = self.top;
        // SAFETY: a listed stack is mapped, belongs to the list alone, and its topmost word is the link that
        // `push` stored.
        self.top = unsafe { link(top).read() };
        Some(top)
    }

    fn push(&mut self, top: u64) {
        // SAFETY: the stack is mapped and unused: its `KernelStack` is being dropped.
        unsafe { link(top).write(self.top) };
        self.top = top;
        self.len += 1;
    }
}

fn link(top: u64) -> *mut u64 {
    (top - 8) as *mut u64
}

impl KernelStack {
    /// A stack with undefined contents.
    pub fn alloc() -> Result<Self> {
        if inject::fails(inject::Kind::Frame) {
            return Err(Errno::ENOMEM);
        }
        let cached = without_interrupts(|| {
            let mut list = WAITING.get();
            let top = list.pop();
            WAITING.set(list);
            top
        });
        if let Some(top) = cached {
            return Ok(Self::at(top));
        }
        let shared = with_shared(List::pop);
        match shared {
            Some(top) => Ok(Self::at(top)),
            None => Self::new_slot(),
        }
    }

    fn at(top: u64) -> Self {
        Self { top, _counted: Counted::new(Kind::KernelStack) }
    }

    /// The address just above its last byte, page-aligned.
    pub fn top(&self) -> VirtAddr {
        VirtAddr::new_truncate(self.top)
    }

    #[cold]
    fn new_slot() -> Result<Self> {
        if crate::mm::frames::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let mut pages = [None; PAGES];
        for page in &mut pages {
            *page = frames::alloc(Owner::KernelStack, For::Kernel);
        }
        if pages.contains(&None) {
            pages.into_iter().flatten().for_each(frames::put);
            return Err(Errno::ENOMEM);
        }
        let Some(top) = bare_slot().or_else(fresh_slot) else {
            pages.into_iter().flatten().for_each(frames::put);
            return Err(Errno::ENOMEM);
        };
        let mut result = Ok(());
        for (page, frame) in (1..).zip(pages.into_iter().flatten()) {
            // The four pages of a slot are in one table: only the first can lack memory, and then all do.
            if let Err(error) = vmalloc::map(top - page * PAGE_SIZE as u64, frame) {
                frames::put(frame);
                result = Err(error);
            }
        }
        match result {
            Ok(()) => Ok(Self::at(top)),
            Err(error) => {
                unused_slot(top);
                Err(error)
            }
        }
    }
}

fn with_shared<R>(act: impl FnOnce(&mut List) -> R) -> R {
    let mut list = SHARED.lock();
    let result = act(&mut list);
    SHARED_LEN.store(list.len, Ordering::Relaxed);
    result
}

/// The top of a slot that was never used.
fn fresh_slot() -> Option<u64> {
    let slot = SLOTS.fetch_add(1, Ordering::Relaxed);
    (slot < MAX_STACKS).then(|| layout::vmalloc() + (slot + 1) * SLOT)
}

/// Gives back a fresh slot for which there is no table. Its number is lost if another CPU has drawn one meanwhile.
fn unused_slot(top: u64) {
    let next = (top - layout::vmalloc()) / SLOT;
    let _ = SLOTS.compare_exchange(next, next - 1, Ordering::Relaxed, Ordering::Relaxed);
}

/// The top of a slot whose frames were given back.
fn bare_slot() -> Option<u64> {
    let mut first = BARE.lock();
    let number = u64::from(*first);
    if number == 0 {
        return None;
    }
    let top = layout::vmalloc() + number * SLOT;
    *first = vmalloc::note(top - PAGE_SIZE as u64);
    BARE_LEN.fetch_sub(1, Ordering::Relaxed);
    Some(top)
}

/// Gives back frames of unused stacks if too many wait: whether there may be more. Called with interrupts on and no
/// lock held.
pub(in crate::mm) fn trim() -> bool {
    trim_to(KEPT)
}

/// As [`trim`] when memory has run out: frames of unused stacks, up to a thousand; those that wait for their own CPU stay.
pub(in crate::mm) fn shrink() {
    let mut rounds = 1024 / MAX_FLUSHED;
    while rounds != 0 && trim_to(0) {
        rounds -= 1;
    }
}

fn trim_to(kept: usize) -> bool {
    if SHARED_LEN.load(Ordering::Relaxed) <= kept {
        return false;
    }
    let mut tops = ArrayVec::<u64, TRIMMED>::new();
    with_shared(|list| {
        while list.len > kept && !tops.is_full() {
            let Some(top) = list.pop() else { break };
            tops.push(top);
        }
    });
    let (mut addrs, mut pages) =
        (ArrayVec::<u64, MAX_FLUSHED>::new(), ArrayVec::<_, MAX_FLUSHED>::new());
    for &top in &tops {
        for page in 1..=PAGES as u64 {
            let addr = top - page * PAGE_SIZE as u64;
            addrs.push(addr);
            if let Some(page) = vmalloc::unmap(addr) {
                pages.push(page);
            }
        }
    }
    flush_kernel(&addrs);
    pages.into_iter().for_each(frames::put);
    for top in tops {
        let mut first = BARE.lock();
        let number = ((top - layout::vmalloc()) / SLOT) as u32;
        vmalloc::set_note(top - PAGE_SIZE as u64, *first);
        *first = number;
        BARE_LEN.fetch_add(1, Ordering::Relaxed);
    }
    true
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        let kept = without_interrupts(|| {
            let mut list = WAITING.get();
            let keep = list.len < PER_CPU;
            if keep {
                list.push(self.top);
                WAITING.set(list);
            }
            keep
        });
        if !kept {
            with_shared(|list| list.push(self.top));
        }
    }
}

/// Empties this CPU's cache of what a copied section left in it: once on each CPU, at its start.
pub(in crate::mm) fn init_cpu() {
    WAITING.set(List::EMPTY);
}

// SAFETY: the stack is `KERNEL_STACK_SIZE` mapped bytes below `top`, owned by this value alone until it is
// dropped, and stays where it is when the value moves.
unsafe impl crate::arch::task::Stack for KernelStack {
    fn top(&self) -> u64 {
        KernelStack::top(self).as_u64()
    }
}
