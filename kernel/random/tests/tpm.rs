//! What a TPM may answer.

use alea_random::device::PIECE;
use alea_random::tpm::{
    Collector, Fault, GET_RANDOM, Interface, LONGEST_ANSWER, REQUEST, STARTUP, TpmFault,
    random_bytes,
};
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

/// A TPM that gives the answers of a list, and nothing after them.
struct Said {
    answers: Vec<Vec<u8>>,
    heard: Vec<[u8; 12]>,
}

impl Interface for &mut Said {
    type Broken = &'static str;

    fn send(&mut self, command: &[u8]) -> Result<(), Self::Broken> {
        self.heard.push(command.try_into().map_err(|_| "no command")?);
        Ok(())
    }

    fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, Self::Broken>> {
        if self.answers.is_empty() {
            return None;
        }
        let answer = self.answers.remove(0);
        if answer.is_empty() {
            return Some(Err("broken"));
        }
        let count = answer.len().min(out.len());
        out[..count].copy_from_slice(&answer[..count]);
        Some(Ok(count))
    }
}

/// What looks bring, one for each answer and one more, and the commands that were sent.
fn looks(answers: &[Vec<u8>]) -> (Vec<Result<bool, Fault<&'static str>>>, Vec<[u8; 12]>) {
    let mut tpm = Said { answers: answers.to_vec(), heard: Vec::new() };
    let mut out = [0; PIECE];
    let mut asked = Collector::begin(&mut tpm).unwrap();
    let mut told = Vec::new();
    for _ in 0..=answers.len() {
        told.push(asked.look(&mut out));
        if told.last() == Some(&Ok(true)) {
            assert_eq!(out, [7; PIECE]);
            out.fill(0);
        }
        if told.last().is_some_and(Result::is_err) {
            break;
        }
    }
    (told, tpm.heard)
}

fn sevens(count: u16) -> Vec<u8> {
    answer(u32::from(count) + 12, 0, count, &vec![7; count.into()])
}

#[test]
fn a_tpm_is_asked_until_there_is_enough() {
    let (told, heard) = looks(&[sevens(32), sevens(32), sevens(32), sevens(32)]);
    assert_eq!(told, [Ok(false), Ok(true), Ok(false), Ok(true), Ok(false)]);
    assert_eq!(heard, [GET_RANDOM; 5]);
    // It may give fewer; what is too much for the last piece is left out.
    let (told, _) = looks(&[sevens(31), sevens(0), sevens(31), sevens(5), sevens(32), sevens(32)]);
    let [few, full] = [Ok(false), Ok(true)];
    assert_eq!(told, [few, few, few, full, few, full, few]);
}

/// It is started once, whatever it says to that; refused again, it is left alone.
#[test]
fn a_tpm_that_nobody_started_is_started_once() {
    let asleep = answer(10, 0x100, 0, &[]);
    let (told, heard) = looks(&[asleep.clone(), answer(10, 0, 0, &[]), sevens(32), sevens(32)]);
    assert_eq!(told, [Ok(false), Ok(false), Ok(false), Ok(true), Ok(false)]);
    assert_eq!(heard[..4], [GET_RANDOM, STARTUP, GET_RANDOM, GET_RANDOM]);
    let (told, heard) = looks(&[asleep.clone(), asleep.clone(), asleep]);
    assert_eq!(told, [Ok(false), Ok(false), Err(Fault::Answer(TpmFault::NotStarted))]);
    assert_eq!(heard, [GET_RANDOM, STARTUP, GET_RANDOM]);
}

#[test]
fn a_tpm_that_fails_is_not_asked_again() {
    let refused = Fault::Answer(TpmFault::Refused(0x922));
    assert_eq!(looks(&[answer(10, 0x922, 0, &[])]), (vec![Err(refused)], vec![GET_RANDOM]));
    assert_eq!(looks(&[Vec::new()]), (vec![Err(Fault::Interface("broken"))], vec![GET_RANDOM]));
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
