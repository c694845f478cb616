//! Boot of the memory manager, and what an idle CPU does for it.
//!
//! Owns the order in which its rooms come up. Called once a CPU, before that CPU allocates. No locks.

use super::frames::inject::{self, Fate, Kind};
use super::frames::{self, boot, cpu_cache, root, wipe, zero};
use super::kernel::{shown, stack};
use super::space::huge;
use super::space::table::shootdown;
use super::{commit, heap, space};
use crate::base::boot_info::BootInfo;

/// Takes over all usable memory: frames, then the heap. Called once, on the boot CPU, before anything
/// allocates.
pub fn init(info: &BootInfo) {
    root::init();
    boot::init(info);
    heap::init_cpu();
    stack::init_cpu();
    zero::init();
    shown::init();
    space::init();
    commit::init();
    let stats = frames::stats();
    huge::set_wanted(huge::wanted_by_default(stats.total));
    log::info!(
        "memory: {} MiB, {} KiB of it in use",
        stats.total >> 8,
        (stats.total - stats.free) << 2
    );
}

/// Readies this CPU's caches: called once on each further CPU, before it allocates.
pub fn init_cpu() {
    cpu_cache::init_cpu();
    heap::init_cpu();
    stack::init_cpu();
    shown::init_cpu();
    if wipe::keeps_none() {
        keep_none();
    }
}

/// Has memory zeroed when the kernel takes it, and when it is given back, as [`wipe`] says: on the boot CPU, before others start.
pub fn wipe_memory(on_alloc: bool, on_free: bool) {
    wipe::set(on_alloc, on_free);
    if wipe::keeps_none() {
        keep_none();
        log::info!("memory: zeroed on allocation: {on_alloc}, when freed: {on_free}");
    }
}

/// From now on this CPU keeps no free frames or objects.
fn keep_none() {
    frames::keep_none();
    heap::keep_none();
}

/// Begins to make allocations fail: see [`inject`]. The other CPUs give their free frames back when they are idle next.
pub fn fail_allocations(setting: &str, fate: fn(u32) -> Fate) -> bool {
    let good = inject::start(setting, fate);
    if inject::on() {
        frames::keep_none();
    }
    good
}

/// Whether there are more than a few frames that a user may have. This too fails when failures are injected, as often as
/// an allocation.
pub fn has_user_frames() -> bool {
    frames::has_spare() && !inject::fails(Kind::Frame)
}

/// Memory has run out here: all CPUs give back the free frames that they keep, and unused kernel stacks theirs. How many there were.
pub fn gather_free_frames() -> usize {
    let before = frames::shared();
    stack::shrink();
    shootdown::drain_all();
    frames::shared().saturating_sub(before)
}

/// Zeroes one free frame ahead of its use, if the pool of zeroed frames is not full: an idle CPU calls it,
/// with interrupts on, until it returns `false`.
pub fn zero_one_frame_when_idle() -> bool {
    frames::zero_one()
}

/// Gives back memory that the kernel keeps ahead, if it is too much: as above.
pub fn trim_when_idle() -> bool {
    stack::trim()
}
