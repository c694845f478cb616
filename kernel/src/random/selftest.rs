//! What can be checked on the running machine: `alea.selftest` on the command line.
//!
//! Owns nothing. Prints what draws cost, so that the figures of a machine are at hand.

use super::{crng, generator};
use crate::arch::copy::chacha20;
use crate::base::tsc;
use crate::mm::user;
use alea_random::block::{BlockGenerator, Key, Portable};
use alea_random::credit::State;

/// Panics if something is wrong.
pub fn run() {
    assert_eq!(super::pool::state(), State::Ready, "the machine has no source of entropy");
    vector_equals_portable();
    unmapped_place_is_refused();
    draws_differ();
    for len in [4, 16, 32, 64, 256] {
        let mut out = [0; 256];
        let start = tsc::read_ordered();
        (0..1000).for_each(|_| super::service::fill_secret(&mut out[..len]));
        let cycles = tsc::read_ordered().wrapping_sub(start) / 1000;
        log::info!("random selftest: {len} bytes take {cycles} cycles");
    }
}

/// The vector unit's keystream, put back in order, is the portable one.
fn vector_equals_portable() {
    let key = [0x42; 32];
    let mut vector = [[0u8; chacha20::GROUP]; 2];
    chacha20::keystream(&key, 7, &mut vector);
    let mut portable = [[0u8; 64]; 16];
    Portable.fill(&Key::new(key), 7, &mut portable);
    let lanes = if chacha20::routine() == chacha20::Routine::Sse2 { 4 } else { 8 };
    for (n, word) in portable.as_flattened().chunks(4).enumerate() {
        let (block, index) = (n / 16, n % 16);
        let at = (block / lanes * 16 + index) * lanes + block % lanes;
        assert_eq!(vector.as_flattened()[at * 4..][..4], *word, "word {index} of block {block}");
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
    assert_ne!(crng::generation().get(), 0);
}
