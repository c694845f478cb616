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

/// A new key is asked for when nothing of the old one's batch is left.
#[test]
fn a_batch_of_an_old_key_is_gone_before_the_new_key_comes() {
    let (shared, mut state) = (Shared::not_ready(), State::zeroed());
    shared.publish(1);
    let key = |key: &mut [u8; KEY_LEN]| {
        *key = [7; KEY_LEN];
        true
    };
    state.draw(&shared, &Portable, key, &mut [0; 8]).unwrap();
    shared.publish(2);
    assert!(state.draw(&shared, &Portable, |_| false, &mut [0; 8]).is_err());
    assert!(state.group.as_flattened().iter().all(|byte| *byte == 0));
}
