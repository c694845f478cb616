//! What programs see of the generator: the generation that the states of the vDSO's getrandom must stem
//! from, and the machine's generation id.
//!
//! Owns the reference to their page of data. Shows nothing while a weak generator is selected, so that
//! every request goes to it. Never shows anything secret. Locks: none of its own.

use super::generator;
use crate::arch::copy::chacha20;
use crate::machine::vm_id::{self, VmId};
use crate::sync::Once;
use alea_random::crng::Generation;
use alea_vdso::data::Random;

static SHOWN: Once<&'static Random> = Once::new();

/// Sets the page. After the generator was selected, before the first program.
pub fn show_to_programs(random: &'static Random) {
    if !generator::is_chacha20() {
        return;
    }
    random.set_wide(chacha20::is_wide());
    if let Some(place) = vm_id::place() {
        random.set_id_place((place.as_u64() & 0xfff) as usize);
    }
    SHOWN.call_once(|| random);
    super::crng::show();
}

/// Makes states older than `generation` old, which was made for the machine with `id`. Called with the base locked, so
/// in order.
pub fn publish(generation: Generation, id: VmId) {
    if let Some(shown) = SHOWN.get() {
        shown.publish(generation.get());
        shown.publish_id(id.0);
    }
}
