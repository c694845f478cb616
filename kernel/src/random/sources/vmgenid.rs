//! The virtual machine's generation id: not entropy, but the news that this machine has a twin.
//!
//! **Trust**: a hypervisor that does not change the id when it clones a machine gives twins the same
//! stream until one of them reseeds; it can read all memory anyway. **Credit**: none; the id makes twins
//! differ, nobody says that it is secret. **Cost**: two loads and two comparisons at every draw, instead
//! of an interrupt that comes when the first equal bytes may be gone already (Linux).
//!
//! A draw takes its bytes first and looks at the id then ([`unchanged`]). If it changed, the bytes are
//! thrown away, the id is mixed in and the generator reseeded, which drops the batches of all CPUs, and
//! the draw is repeated. A machine that is cloned between the draw and the look has not used the bytes;
//! one that is cloned after the look drew them before it had a twin.
//!
//! Interface: Microsoft, "Virtual Machine Generation ID"; QEMU `-device vmgenid`, Firecracker, Hyper-V. Owns the ids
//! that base key and batches know of. Locks: `Random`, for the id that was mixed in last; never held while the pool or
//! the base key is.

use crate::base::percpu;
use crate::machine::vm_id::{self, VmId};
use crate::per_cpu;
use crate::random::{pool, shown, stats};
use crate::sync::{SpinLock, level};
use alea_random::credit::State;
use alea_random::reseed::Cause;
use core::cell::Cell;
use zerocopy::IntoBytes;

/// The id that the base key knows of.
static KNOWN: SpinLock<VmId, level::Random> = SpinLock::new(VmId([0; 2]));

per_cpu! {
    /// The id that this CPU's batch knows of.
    static SEEN: Cell<VmId> = Cell::new(VmId([0; 2]));
}

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) =
    (size_of::<SpinLock<VmId, level::Random>>(), size_of::<Cell<VmId>>());

/// Looks for the device. The id of the start is mixed in like any other fact about the machine.
pub fn collect() {
    if !vm_id::init() {
        return;
    }
    let id = vm_id::read();
    mix(id);
    *KNOWN.lock() = id;
    SEEN.set(id);
    log::info!("random: the VM generation id is compared at every draw");
}

/// Whether the bytes that were just drawn may be used: if not, the generator is a new one and the draw has
/// to be repeated. For draws from this CPU's batch and from streams, never in an interrupt handler: the
/// draw that it interrupted would miss the news.
#[inline]
pub fn unchanged() -> bool {
    let id = vm_id::read();
    id == SEEN.get() || catch_up(id)
}

/// As [`unchanged`], but learns nothing: for who draws again by a longer way if not.
#[inline]
pub fn is_known() -> bool {
    vm_id::read() == SEEN.get()
}

#[cold]
fn catch_up(id: VmId) -> bool {
    debug_assert!(!percpu::in_interrupt());
    learn(id);
    SEEN.set(id);
    false
}

/// As [`unchanged`], for draws from the base key or the pool, which no CPU has a copy of.
pub fn unchanged_base() -> bool {
    let id = vm_id::read();
    let known = *KNOWN.lock();
    if id != known {
        learn(id);
    }
    id == known
}

/// Makes the generator one that knows `id`.
fn learn(id: VmId) {
    if *KNOWN.lock() == id {
        return;
    }
    mix(id);
    if pool::state() == State::Ready {
        pool::reseed(Cause::Clone);
    }
    // Only now: a CPU that comes here meanwhile reseeds again rather than draw from the old key.
    *KNOWN.lock() = id;
    shown::publish_id(id);
    log::info!("random: this virtual machine was restored or cloned, the generator is reseeded");
}

fn mix(VmId(words): VmId) {
    stats::mixed(stats::Source::VmId, size_of_val(&words));
    pool::mix(words.as_bytes());
}
