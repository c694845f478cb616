//! The virtual machine's generation id: not entropy, but the news that this machine has a twin.
//!
//! **Trust**: a hypervisor that does not change the id when it clones a machine gives twins the same
//! stream until one of them reseeds; it can read all memory anyway. **Credit**: none; the id makes twins
//! differ, nobody says that it is secret. **Cost**: see [`super::super::live`]. How it is used, and why twins then share
//! nothing: [`alea_random::crng::twins`].
//!
//! Interface: Microsoft, "Virtual Machine Generation ID"; QEMU `-device vmgenid`, Firecracker, Hyper-V. Owns nothing, never
//! keeps an id: every key carries its own. Locks: none.

use crate::machine::vm_id;

/// Looks for the device. From here on every seed depends on the id.
pub fn collect() {
    if vm_id::init() {
        log::info!("random: the VM generation id is compared at every draw");
    }
}
