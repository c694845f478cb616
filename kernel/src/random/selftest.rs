//! What can be checked on the running machine: `alea.selftest` on the command line.
//!
//! Owns nothing. Prints what draws cost, so that the figures of a machine are at hand.

use super::live::RANDOM;
use super::{generator, known_answers, sources, stats};
use crate::base::tsc;
use crate::mm::user;
use alea_random::credit::State;

/// Tests everything that can be tested beside running tasks: the ciphers' known answers, and the start-up tests of all
/// sources that can be asked. Whether all is well: no source has failed, now or before.
pub fn test_on_demand() -> bool {
    let answers = known_answers::ask(None);
    if let Err(wrong) = answers {
        log::error!("random: {wrong}: this machine cannot keep secrets");
    }
    sources::test_on_demand();
    stats::demanded();
    answers.is_ok() && !stats::any_failed()
}

/// Panics if something is wrong.
pub fn run() {
    assert_eq!(RANDOM.state(), State::Ready, "the machine has no source of entropy");
    assert_eq!(known_answers::ask(None), Ok(()));
    unmapped_place_is_refused();
    draws_differ();
    let start = tsc::read_ordered();
    sources::jitter::order();
    sources::jitter::sample();
    let cycles = tsc::read_ordered().wrapping_sub(start);
    log::info!("random selftest: a slice of jitter takes {cycles} cycles");
    for len in [4, 16, 32, 64, 256] {
        let mut out = [0; 256];
        let start = tsc::read_ordered();
        (0..1000).for_each(|_| super::service::fill_secret(&mut out[..len]));
        let cycles = tsc::read_ordered().wrapping_sub(start) / 1000;
        log::info!("random selftest: {len} bytes take {cycles} cycles");
    }
}

/// The keystream's way out of a fault: no user memory is mapped yet.
fn unmapped_place_is_refused() {
    for addr in [0, 0x1000, 0x7fff_ffff_e000] {
        assert!(!user::write_keystream(addr, 2, &[0x42; 32], 0), "nothing is mapped at {addr:#x}");
        assert!(!user::write_keystream(addr, usize::MAX, &[0x42; 32], 0), "out of range");
    }
    assert!(user::write_keystream(0x1000, 0, &[0x42; 32], 0), "nothing is written");
}

fn draws_differ() {
    let mut seen = [[0u8; 16]; 64];
    for slot in &mut seen {
        assert!(generator::fill(slot).is_ok());
    }
    for (n, draw) in seen.iter().enumerate() {
        assert!(*draw != [0; 16] && !seen[..n].contains(draw), "a draw came twice");
    }
    assert_ne!(RANDOM.generation().get(), 0);
}
