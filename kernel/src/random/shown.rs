//! What programs see of the generator: the generation that the states of the vDSO's getrandom must stem
//! from, and the machine's generation id.
//!
//! Owns the reference to their page of data, which is not set while a weak generator is selected, so that every request
//! goes to it. Never shows anything secret. Locks: none of its own.

use crate::machine::vm_id::VmId;
use crate::sync::Once;
use alea_random::crng::Generation;
use alea_vdso::data::Random;

static SHOWN: Once<&'static Random> = Once::new();

/// Sets the page.
pub fn set(random: &'static Random) {
    SHOWN.call_once(|| random);
}

/// Ends the states that are older than `generation`, which was made for the machine with `id`. Called with the base
/// locked, so in order.
pub fn publish(generation: Generation, id: VmId) {
    if let Some(shown) = SHOWN.get() {
        shown.publish(generation.get());
        shown.publish_id(id.0);
    }
}
