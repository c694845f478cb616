//! Answers of devices that lie, and of one that does not.

use alea_random::device::{DeviceFault, DeviceTests, PIECE, REQUEST, written};
use alea_random::hardware::HardwareFault;
use alea_random::health::Health;
use alea_random::splitmix64::SplitMix64;
use proptest::prelude::*;

fn good(seed: u64) -> [u8; REQUEST] {
    let mut generator = SplitMix64::new(seed);
    let mut answer = [0; REQUEST];
    for word in answer.chunks_mut(8) {
        word.copy_from_slice(&generator.next_u64().to_le_bytes());
    }
    answer
}

/// The verdict of a device's first answer.
fn judge(answer: &[u8; REQUEST], claimed: u32) -> Result<Health, DeviceFault> {
    DeviceTests::new().judge(answer, claimed)
}

#[test]
fn a_good_answer_is_believed() {
    assert_eq!(REQUEST, 1024, "what the start-up tests look at");
    for seed in 0..if cfg!(miri) { 3 } else { 1000 } {
        assert_eq!(judge(&good(seed), REQUEST as u32), Ok(Health::Healthy));
    }
}

#[test]
fn constant_and_repeating_answers_are_not() {
    let of = |answer: [u8; REQUEST]| judge(&answer, REQUEST as u32);
    let content = |fault| Err(DeviceFault::Content(fault));
    assert_eq!(of([0; REQUEST]), content(HardwareFault::Implausible));
    assert_eq!(of([0xff; REQUEST]), content(HardwareFault::Implausible));
    assert_eq!(of([0x42; REQUEST]), content(HardwareFault::Stuck));
    for cycle in [8, 16, 64, 112] {
        let mut repeating = good(1);
        let first = repeating;
        repeating.chunks_mut(cycle).for_each(|piece| piece.copy_from_slice(&first[..piece.len()]));
        assert!(of(repeating).is_err(), "a cycle of {cycle} bytes");
    }
    // A device that filled half of it: the rest is what the driver left there.
    let mut half = good(2);
    half[REQUEST / 2..].fill(0);
    assert_eq!(of(half), content(HardwareFault::Implausible));
}

/// A test on demand wants as many bytes as the one at start, and makes nothing good that has failed.
#[test]
fn a_device_is_tested_again_on_demand() {
    let mut tests = DeviceTests::new();
    let (all, half) = (REQUEST as u32, REQUEST as u32 / 2);
    assert_eq!(tests.judge(&good(1), all), Ok(Health::Healthy));
    assert_eq!(tests.test_again(), Health::Starting);
    assert_eq!(tests.judge(&good(2), half), Ok(Health::Starting));
    assert_eq!(tests.judge(&good(3), half), Ok(Health::Healthy));
    assert!(tests.judge(&[0; REQUEST], all).is_err());
    assert_eq!(tests.test_again(), Health::Failed);
    assert_eq!(tests.judge(&good(4), all), Ok(Health::Failed));
}

/// What was told of one device does not pass for another word of the same.
#[test]
fn a_replayed_answer_fails_and_fails_for_good() {
    let mut tests = DeviceTests::new();
    let all = REQUEST as u32;
    assert_eq!(tests.judge(&good(1), all), Ok(Health::Healthy));
    assert_eq!(tests.judge(&good(2), all), Ok(Health::Healthy));
    let stuck = Err(DeviceFault::Content(HardwareFault::Stuck));
    assert_eq!(tests.judge(&good(2), all), stuck);
    assert_eq!(tests.judge(&good(3), all), Ok(Health::Failed));
}

/// A device may answer briefly; what it is worth takes as many bytes as the start-up tests look at.
#[test]
fn short_answers_add_up() {
    let mut tests = DeviceTests::new();
    for n in 1..16 {
        assert_eq!(tests.judge(&good(n), 64), Ok(Health::Starting), "after {n}");
    }
    assert_eq!(tests.judge(&good(16), 64), Ok(Health::Healthy));
    assert_eq!(tests.judge(&good(17), 0), Ok(Health::Healthy), "nothing is nothing wrong");
}

/// A device that turns bad after it was believed is found, by whichever of its bytes stand still.
#[test]
fn a_device_that_turns_bad_is_found() {
    for stuck in 0..if cfg!(miri) { 1 } else { 8 } {
        let mut tests = DeviceTests::new();
        let bad = |seed| {
            let mut answer = good(seed);
            answer.chunks_mut(8).for_each(|word| word[stuck] = 7);
            answer
        };
        assert_eq!(tests.judge(&good(1), REQUEST as u32), Ok(Health::Healthy));
        let found = (2..20).position(|seed| tests.judge(&bad(seed), REQUEST as u32).is_err());
        assert!(found.is_some_and(|answers| answers < 5), "byte {stuck}: {found:?}");
    }
}

proptest! {
    #[test]
    fn no_claim_reaches_beyond_the_buffer(offered in 0..5000usize, claimed: u32) {
        let len = written(offered, claimed);
        prop_assert!(len <= offered && len <= claimed as usize);
    }

    #[test]
    fn only_the_whole_length_is_worth_credit(claimed in prop_oneof![0..2048u32, any::<u32>()], seed: u64) {
        let verdict = judge(&good(seed), claimed);
        match claimed as usize {
            REQUEST => prop_assert_eq!(verdict, Ok(Health::Healthy)),
            less if less < REQUEST => prop_assert_eq!(verdict, Ok(Health::Starting)),
            _ => prop_assert_eq!(verdict, Err(DeviceFault::Overlong)),
        }
    }
}

/// Around the length that was asked for, and around twice as much.
#[test]
fn more_than_was_asked_for_is_refused() {
    for claimed in (1000..2100).step_by(if cfg!(miri) { 24 } else { 1 }) {
        let expected = match claimed {
            0..1024 => Ok(Health::Starting),
            1024 => Ok(Health::Healthy),
            _ => Err(DeviceFault::Overlong),
        };
        assert_eq!(judge(&good(3), claimed), expected, "{claimed}");
    }
}

/// A short answer is judged by what it has; too much is too much, whatever it says.
#[test]
fn only_what_was_written_is_judged() {
    let mut short = good(4);
    short[64..].fill(0);
    assert_eq!(judge(&short, 64), Ok(Health::Starting));
    assert_eq!(judge(&short, 72), Err(DeviceFault::Content(HardwareFault::Implausible)));
    assert_eq!(judge(&[0; REQUEST], 0), Ok(Health::Starting));
    assert_eq!(judge(&[0; REQUEST], 1025), Err(DeviceFault::Overlong));
}

#[test]
fn a_slow_device_is_judged_by_eight_words() {
    assert_eq!(PIECE, 64);
}

/// The digest that is kept of an answer depends on all of it.
#[test]
fn an_answer_that_differs_in_one_bit_is_no_replay() {
    let all = REQUEST as u32;
    for word in [0, 1, 2, REQUEST / 8 - 1] {
        for bit in (0..64).step_by(if cfg!(miri) { 63 } else { 1 }) {
            let mut tests = DeviceTests::new();
            let mut answer = good(5);
            assert_eq!(tests.judge(&answer, all), Ok(Health::Healthy));
            answer[word * 8 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(tests.judge(&answer, all), Ok(Health::Healthy), "bit {bit} of word {word}");
        }
    }
}
