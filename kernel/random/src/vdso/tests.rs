//! White-box tests of the draw in user space: what is left in the state.

use super::*;
use crate::block::Portable;

#[test]
fn what_was_handed_out_is_gone_from_the_state() {
    let (shared, mut state, mut out) = (Shared::not_ready(), State::zeroed(), [0; 64]);
    shared.publish(1);
    let fresh = |key: &mut [u8; KEY_LEN]| {
        *key = [7; KEY_LEN];
        true
    };
    state.draw(&shared, &Portable, fresh, &mut out).unwrap();
    let group = state.group.as_flattened();
    assert!(group.iter().any(|byte| *byte != 0), "a batch is left");
    for word in out.chunks_exact(8) {
        assert!(!group.windows(8).any(|window| window == word), "still there");
    }
    // The key that made it is not, either.
    assert!(state.key != [7; KEY_LEN] && state.key != [0; KEY_LEN]);
}
