//! Boot of the memory manager, and what an idle CPU does for it.
//!
//! Owns the order in which its rooms come up. Called once a CPU, before that CPU allocates. No locks.

use super::frames::inject::{self, Kind};
use super::frames::{self, boot, cpu_cache, root, zero};
use super::kernel::stack;
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
    space::init();
    commit::init();
    let stats = frames::stats();
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
}

/// Begins to make allocations fail: see [`inject`]. The other CPUs give their free frames back when they are idle next.
pub fn fail_allocations(setting: &str, spared: fn() -> bool) -> bool {
    let good = inject::start(setting, spared);
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

/// Memory has run out here: all CPUs give back the free frames that they keep. How many there were.
pub fn gather_free_frames() -> usize {
    let before = frames::shared();
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
