//! The frame allocator: buddy, per-CPU caches, accounting.
//!
//! Owns all RAM that the boot loader called usable. Single frames go through a cache per CPU: a stack of
//! frames last freed here (hot), one of frames known to be zero, and one of page tables known to be empty.
//! Bigger blocks come from the buddy under its lock.
//!
//! Invariants: a frame is in exactly one of: the buddy's free lists, one CPU's cache, its owner's hands. A
//! frame in a `zeroed` or `tables` stack holds only zero bytes. Counts of frames by owner are kept per CPU
//! and may be negative on one; only their sum means something.
//!
//! A cache is used through [`cpu_cache::with`], which an interrupt handler finds busy when it interrupted
//! such a use; it then goes to the buddy directly. Never sleeps, and never hands out what nobody asked for: a call that
//! finds nothing says so. Locks: the buddy's.

use super::buddy::{RESERVE, TOTAL, buddy, mark};
use super::charge::{self, is_charged};
use super::cpu_cache::{self, Root};
use super::inject::{self, Kind};
use super::pfn::{For, Pfn, metadata};
use super::root::kernel_root;
use super::wipe;
use crate::base::{PAGE_SIZE, isolation};
use alea_frames::Owner;
use core::sync::atomic::{AtomicU64, Ordering};

/// Counts of frames by owner that were changed while the CPU's cache was busy. Relaxed: statistics.
static STRAY: [AtomicU64; Owner::COUNT] = [const { AtomicU64::new(0) }; Owner::COUNT];

/// Frames by use, in pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameStats {
    /// All frames that the allocator was given.
    pub total: u64,
    /// Frames in nobody's hands, per-CPU caches included.
    pub free: u64,
    /// User page tables.
    pub page_tables: u64,
    /// Pages of files and shared memory.
    pub page_cache: u64,
    /// Private anonymous memory.
    pub anon: u64,
    /// The kernel heap, slabs and large objects together.
    pub slab: u64,
    /// Kernel stacks, cached ones included.
    pub kernel_stacks: u64,
    /// Everything else the kernel holds.
    pub kernel: u64,
}

/// How the frames are used now.
pub fn stats() -> FrameStats {
    let mut counts = STRAY.each_ref().map(|n| n.load(Ordering::Relaxed));
    cpu_cache::for_each(|cache| {
        for (sum, n) in counts.iter_mut().zip(cache.counts()) {
            *sum = sum.wrapping_add(n);
        }
    });
    let total = TOTAL.load(Ordering::Relaxed);
    let of = |owner: Owner| {
        let n = counts[owner as usize];
        if n > total { 0 } else { n }
    };
    let used: u64 = counts.iter().copied().fold(0, u64::wrapping_add);
    FrameStats {
        total,
        free: total.saturating_sub(used),
        page_tables: of(Owner::PageTable),
        page_cache: of(Owner::PageCache),
        anon: of(Owner::Anon),
        slab: of(Owner::Slab),
        kernel_stacks: of(Owner::KernelStack),
        kernel: of(Owner::Kernel),
    }
}

/// A frame with undefined contents and one reference.
#[inline]
pub(in crate::mm) fn alloc(owner: Owner, whom: For) -> Option<Pfn> {
    let frame = match cpu_cache::with(|cache| cache.pop(owner, whom)) {
        Some(frame) => frame?,
        None => alloc_slow(owner, whom)?,
    };
    debug_assert!(frame.meta().owner() == Owner::None, "a frame in use was in a cache");
    frame.meta().set_owner(owner);
    if is_charged(owner) {
        charge::charge(frame, 1);
    }
    Some(frame)
}

/// A frame of zeros with one reference.
#[inline]
pub(in crate::mm) fn alloc_zeroed(owner: Owner, whom: For) -> Option<Pfn> {
    if let Some(Some(frame)) = cpu_cache::with(|cache| cache.pop_zeroed(owner)) {
        frame.meta().set_owner(owner);
        if is_charged(owner) {
            charge::charge(frame, 1);
        }
        return Some(frame);
    }
    let frame = alloc(owner, whom)?;
    frame.clear();
    Some(frame)
}

/// An empty page table: zeros, with an empty mask of used groups in its word.
#[inline]
pub(in crate::mm) fn alloc_table() -> Option<Pfn> {
    let frame = match cpu_cache::with(|cache| cache.pop_table()) {
        Some(Some(frame)) => {
            frame.meta().set_owner(Owner::PageTable);
            frame
        }
        _ => alloc_new_table()?,
    };
    frame.meta().set_word(0);
    frame.meta().set_refs_raw(0);
    Some(frame)
}

/// A table of a frame that was none: apart, so that the usual way is short.
#[cold]
fn alloc_new_table() -> Option<Pfn> {
    alloc_zeroed(Owner::PageTable, For::User)
}

/// Gives back a page table whose entries have all been cleared again.
#[inline]
pub(in crate::mm) fn free_table(table: Pfn) {
    debug_assert!(table.meta().owner() == Owner::PageTable);
    #[cfg(debug_assertions)]
    assert_zero(table);
    table.meta().change_owner(Owner::None);
    if cpu_cache::with(|cache| cache.push_table(table)) != Some(true) {
        free_as_data(table);
    }
}

/// Gives a table's frame to anybody: apart, so that the usual way is short.
#[cold]
fn free_as_data(table: Pfn) {
    free_as(table, Owner::PageTable);
}

/// A top-level table whose user half is empty. Its kernel half is the kernel's, or of a program's table, what programs are shown.
pub(in crate::mm) fn alloc_root(kind: Root) -> Option<Pfn> {
    if let Some(Some(root)) = cpu_cache::with(|cache| cache.pop_root(kind)) {
        root.meta().set_owner(Owner::PageTable);
        root.meta().set_word(0);
        root.meta().set_refs_raw(0);
        return Some(root);
    }
    let root = alloc_table()?;
    let model = match kind {
        Root::Kernels => kernel_root(),
        Root::Programs => Pfn::of_phys(isolation::shown()),
    };
    copy_kernel_half(model, root);
    Some(root)
}

/// Copies the kernel's half of one top-level table to a new one.
fn copy_kernel_half(from: Pfn, to: Pfn) {
    let half = PAGE_SIZE / 2;
    // SAFETY: both are tables in the direct map; the new one is the caller's, and the kernel's upper half never
    // changes after boot.
    unsafe { core::ptr::copy_nonoverlapping(from.ptr().add(half), to.ptr().add(half), half) };
}

/// Gives back a top-level table whose user half has been cleared.
pub(in crate::mm) fn free_root(root: Pfn, kind: Root) {
    root.meta().change_owner(Owner::None);
    if cpu_cache::with(|cache| cache.push_root(root, kind)) != Some(true) {
        free_as_data(root);
    }
}

#[cfg(debug_assertions)]
fn assert_zero(table: Pfn) {
    // SAFETY: a frame in the direct map that the caller owns.
    let words = unsafe { core::slice::from_raw_parts(table.ptr().cast::<u64>(), PAGE_SIZE / 8) };
    assert!(words.iter().all(|&word| word == 0), "a page table was freed with entries in it");
}

/// One reference less; frees the frame with the last.
#[inline]
pub(in crate::mm) fn put(frame: Pfn) {
    if frame.meta().put() {
        free(frame);
    }
}

/// Frees a frame that has no references left.
#[inline]
pub(in crate::mm) fn free(frame: Pfn) {
    let owner = frame.meta().owner();
    debug_assert!(owner != Owner::None, "frame {:#x} freed twice", frame.0);
    debug_assert!(owner != Owner::PageTable, "a page table freed as data");
    frame.meta().change_owner(Owner::None);
    if is_charged(owner) {
        charge::uncharge(frame, 1);
    }
    free_as(frame, owner);
}

#[inline(always)]
fn free_as(frame: Pfn, owner: Owner) {
    if cpu_cache::with(|cache| cache.push(frame, owner)).is_none() {
        free_slow(frame, owner);
    }
}

/// Gives a frame back to all CPUs.
#[cold]
fn free_slow(frame: Pfn, owner: Owner) {
    count(owner, -1);
    if wipe::on_free() {
        frame.clear();
    }
    buddy().free(metadata(), frame.0, 0);
}

/// Changes what a frame counts as.
pub(in crate::mm) fn change_owner(frame: Pfn, owner: Owner) {
    let old = frame.meta().owner();
    if old != owner {
        frame.meta().change_owner(owner);
        count(old, -1);
        count(owner, 1);
        match (is_charged(old), is_charged(owner)) {
            (false, true) => charge::charge(frame, 1),
            (true, false) => charge::uncharge(frame, 1),
            _ => {}
        }
    }
}

/// The largest block that may come out of the last of the kernel's reserve.
const SMALL_BLOCK: usize = 4;

/// A block of 2^`order` frames for the kernel, with undefined contents. Large ones are asked for on behalf of users, by
/// code that can go without: they leave half of the kernel's reserve alone.
pub fn alloc_block(order: usize, owner: Owner) -> Option<Pfn> {
    let spared = match mark(For::Kernel) {
        mark if order <= SMALL_BLOCK => mark,
        mark => mark.max(RESERVE.load(Ordering::Relaxed) / 2),
    };
    if buddy().free_frames() < spared.saturating_add(1 << order) {
        return None;
    }
    let taken = buddy().alloc(metadata(), order);
    let taken = taken.or_else(|| {
        cpu_cache::drain();
        buddy().alloc(metadata(), order)
    });
    let frame = Pfn(taken?);
    if wipe::on_alloc() {
        clear_run(frame, 1 << order);
    }
    frame.meta().set_owner(owner);
    count(owner, 1 << order);
    Some(frame)
}

/// Charges the `pages` of a block to the running process.
pub(in crate::mm) fn charge_block(first: Pfn, pages: u32) {
    charge::charge(first, pages);
}

/// Takes that back, before the block is given back.
pub(in crate::mm) fn uncharge_block(first: Pfn, pages: u32) {
    charge::uncharge(first, pages);
}

/// Gives back `frames` frames of a block from [`alloc_block`], from `first` on.
pub(in crate::mm) fn free_block_part(first: Pfn, frames: u32, owner: Owner) {
    first.meta().change_owner(Owner::None);
    if wipe::on_free() {
        clear_run(first, frames);
    }
    buddy().free_run(metadata(), first.0, frames);
    count(owner, -i64::from(frames));
}

/// Zeroes a block that is nobody's.
#[cold]
fn clear_run(first: Pfn, frames: u32) {
    // SAFETY: frames in a row are so in the direct map, and these are in nobody's hands but the caller's.
    unsafe { core::ptr::write_bytes(first.ptr(), 0, frames as usize * PAGE_SIZE) };
}

/// All frames that the allocator was given.
pub(in crate::mm) fn total() -> u64 {
    // Relaxed: a statistic.
    TOTAL.load(Ordering::Relaxed)
}

/// Gives back the free frames that this CPU keeps, unless it was interrupted while it used them.
pub(in crate::mm) fn drain() {
    cpu_cache::drain();
}

/// Gives back the free frames that this CPU keeps, and lets it keep none from now on: each is asked for.
pub(in crate::mm) fn keep_none() {
    cpu_cache::close();
}

/// Frames that the buddy has.
pub(in crate::mm) fn shared() -> usize {
    buddy().free_frames() as usize
}

/// Zeroes one free frame ahead of its use; `false` when the pool is full or memory short.
pub(in crate::mm) fn zero_one() -> bool {
    if wipe::keeps_none() {
        keep_none();
        return false;
    }
    let Some(Some(frame)) = cpu_cache::with(|cache| cache.take_to_zero()) else { return false };
    frame.clear();
    match cpu_cache::with(|cache| cache.push_zeroed(frame)) {
        Some(true) => true,
        _ => {
            buddy().free(metadata(), frame.0, 0);
            false
        }
    }
}

#[cold]
fn alloc_slow(owner: Owner, whom: For) -> Option<Pfn> {
    let mut one = [0];
    if inject::fails(Kind::Frame) || super::buddy::refill(&mut one, whom) == 0 {
        return None;
    }
    count(owner, 1);
    if wipe::on_alloc() {
        Pfn(one[0]).clear();
    }
    Some(Pfn(one[0]))
}

/// Adds to an owner's count.
pub(super) fn count(owner: Owner, frames: i64) {
    if cpu_cache::with(|cache| cache.count(owner, frames)).is_none() {
        // Relaxed: a statistic.
        STRAY[owner as usize].fetch_add(frames as u64, Ordering::Relaxed);
    }
}
