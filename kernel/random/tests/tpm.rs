//! What a TPM may answer.

use alea_random::tpm::{GET_RANDOM, LONGEST_ANSWER, REQUEST, STARTUP, TpmFault, random_bytes};
use proptest::prelude::*;

fn answer(size: u32, code: u32, count: u16, bytes: &[u8]) -> Vec<u8> {
    let mut answer = vec![0x80, 0x01];
    answer.extend(size.to_be_bytes());
    answer.extend(code.to_be_bytes());
    answer.extend(count.to_be_bytes());
    answer.extend(bytes);
    answer
}

#[test]
fn the_commands_are_those_of_the_specification() {
    assert_eq!(GET_RANDOM, *b"\x80\x01\x00\x00\x00\x0c\x00\x00\x01\x7b\x00\x20");
    assert_eq!(STARTUP, *b"\x80\x01\x00\x00\x00\x0c\x00\x00\x01\x44\x00\x00");
    assert_eq!((REQUEST, LONGEST_ANSWER), (32, 44));
}

#[test]
fn bytes_come_out_of_a_true_answer_whatever_follows_it() {
    let bytes: Vec<u8> = (0..32).collect();
    let mut buffer = answer(44, 0, 32, &bytes);
    buffer.resize(4096, 0xee);
    assert_eq!(random_bytes(&buffer), Ok(&bytes[..]));
    assert_eq!(random_bytes(&answer(12, 0, 0, &[])), Ok(&[][..]));
}

#[test]
fn an_answer_that_lies_brings_nothing() {
    let bytes = [9; 64];
    // Longer than the buffer, shorter than a header, and sizes that do not fit the count.
    assert_eq!(random_bytes(&answer(45, 0, 32, &bytes[..32])), Err(TpmFault::Truncated));
    assert_eq!(random_bytes(&answer(u32::MAX, 0, 32, &bytes)), Err(TpmFault::Truncated));
    for size in [0, 9, 10, 11] {
        assert_eq!(random_bytes(&answer(size, 0, 32, &bytes)), Err(TpmFault::Lengths), "{size}");
    }
    assert_eq!(random_bytes(&answer(44, 0, 31, &bytes)), Err(TpmFault::Lengths));
    assert_eq!(random_bytes(&answer(44, 0, u16::MAX, &bytes)), Err(TpmFault::Lengths));
    // More than was asked for, consistently.
    assert_eq!(random_bytes(&answer(45, 0, 33, &bytes)), Err(TpmFault::Lengths));
    assert_eq!(random_bytes(&[]), Err(TpmFault::Truncated));
}

#[test]
fn refusals_are_told_apart() {
    assert_eq!(random_bytes(&answer(10, 0x100, 0, &[])), Err(TpmFault::NotStarted));
    assert_eq!(random_bytes(&answer(10, 0x922, 0, &[])), Err(TpmFault::Refused(0x922)));
    let mut of_another_age = answer(44, 0, 32, &[9; 32]);
    of_another_age[1] = 0xc4;
    assert_eq!(random_bytes(&of_another_age), Err(TpmFault::Tag(0x80c4)));
}

proptest! {
    #[test]
    fn nothing_reads_beyond_the_buffer_or_brings_more_than_was_asked_for(
        mut buffer in prop::collection::vec(any::<u8>(), 0..100),
        tagged: bool,
    ) {
        if tagged && let Some(start) = buffer.first_chunk_mut::<2>() {
            *start = [0x80, 0x01];
        }
        if let Ok(bytes) = random_bytes(&buffer) {
            prop_assert!(bytes.len() <= REQUEST && bytes.len() + 12 <= buffer.len());
            prop_assert!(bytes.len() + 12 <= LONGEST_ANSWER);
        }
    }
}
