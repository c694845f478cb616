//! Known answers: that the published ones are given, and that each wrong one is noticed.

use alea_random::block::{BlockGenerator, Key, Portable};
use alea_random::known_answers::{
    Part, QUESTION_BLOCKS, QUESTION_COUNTER, QUESTION_KEY, Wrong, check, check_group,
};

#[test]
fn this_machine_answers_right() {
    assert_eq!(check(None), Ok(()));
}

/// What is spoilt is found, and nothing else: a comparison that is left out would pass.
#[test]
fn a_wrong_answer_is_told_from_the_others() {
    for part in [Part::ChaCha20, Part::Blake2s] {
        assert_eq!(check(Some(part)), Err(Wrong(part)));
    }
    for part in [Part::Vector, Part::Vdso] {
        assert_eq!(check(Some(part)), Ok(()), "judged by check_group");
        assert_eq!(check_group(part, &mut group(1), 1, Some(part)), Err(Wrong(part)));
    }
}

/// The words of `alea.known_answers=` and of `/proc/alea/random`.
#[test]
fn parts_have_names() {
    assert_eq!(Part::ALL.map(Part::name), ["chacha20", "vector", "vdso", "blake2s"]);
}

/// A question's answer as a routine gives it that makes `lanes` blocks side by side.
fn group(lanes: usize) -> [[u8; 64]; QUESTION_BLOCKS] {
    let mut blocks = [[0; 64]; QUESTION_BLOCKS];
    Portable.fill(&Key::new(QUESTION_KEY), QUESTION_COUNTER, &mut blocks);
    let mut out = [[0; 64]; QUESTION_BLOCKS];
    for (n, word) in out.as_flattened_mut().chunks_mut(4).enumerate() {
        let (set, index, lane) = (n / (16 * lanes), n / lanes % 16, n % lanes);
        word.copy_from_slice(&blocks[set * lanes + lane][index * 4..][..4]);
    }
    out
}

#[test]
fn groups_are_judged_in_the_order_of_their_lanes() {
    for lanes in [1, 4, 8] {
        assert_eq!(check_group(Part::Vector, &mut group(lanes), lanes, None), Ok(()), "{lanes}");
        let wrong =
            check_group(Part::Vector, &mut group(lanes), if lanes == 4 { 8 } else { 4 }, None);
        assert_eq!(wrong, Err(Wrong(Part::Vector)), "{lanes}");
    }
}

#[test]
fn one_bit_anywhere_is_noticed() {
    for at in 0..QUESTION_BLOCKS * 64 {
        let mut made = group(8);
        made.as_flattened_mut()[at] ^= 0x80;
        assert!(check_group(Part::Vdso, &mut made, 8, None).is_err(), "byte {at}");
    }
}
