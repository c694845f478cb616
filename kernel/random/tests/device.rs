//! Answers of devices that lie, and of one that does not.

use alea_random::device::{DeviceFault, REQUEST, judge, written};
use alea_random::hardware::HardwareFault;
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

#[test]
fn a_good_answer_is_believed() {
    for seed in 0..1000 {
        assert_eq!(judge(&good(seed), REQUEST as u32), Ok(()));
    }
}

#[test]
fn constant_and_repeating_answers_are_not() {
    let of = |answer: [u8; REQUEST]| judge(&answer, REQUEST as u32);
    assert_eq!(of([0; REQUEST]), Err(DeviceFault::Content(HardwareFault::Implausible)));
    assert_eq!(of([0xff; REQUEST]), Err(DeviceFault::Content(HardwareFault::Implausible)));
    assert_eq!(of([0x42; REQUEST]), Err(DeviceFault::Content(HardwareFault::Stuck)));
    let mut alternating = good(1);
    let (first, second) = alternating.split_at_mut(32);
    second.copy_from_slice(first);
    assert_eq!(of(alternating), Err(DeviceFault::Content(HardwareFault::Stuck)));
    // A device that filled half of it: the rest is what the driver left there.
    let mut half = good(2);
    half[32..].fill(0);
    assert!(of(half).is_err());
}

proptest! {
    #[test]
    fn no_claim_reaches_beyond_the_buffer(offered in 0..5000usize, claimed: u32) {
        let len = written(offered, claimed);
        prop_assert!(len <= offered && len <= claimed as usize);
    }

    #[test]
    fn only_the_whole_length_is_worth_credit(claimed: u32, seed: u64) {
        let verdict = judge(&good(seed), claimed);
        match claimed as usize {
            REQUEST => prop_assert_eq!(verdict, Ok(())),
            less if less < REQUEST => prop_assert_eq!(verdict, Err(DeviceFault::Short)),
            _ => prop_assert_eq!(verdict, Err(DeviceFault::Overlong)),
        }
    }
}

/// Around the length that was asked for, and around twice as much.
#[test]
fn every_length_but_the_right_one_is_refused() {
    assert_eq!(REQUEST, 64);
    for claimed in 0..300 {
        let expected = match claimed {
            0..64 => Err(DeviceFault::Short),
            64 => Ok(()),
            _ => Err(DeviceFault::Overlong),
        };
        assert_eq!(judge(&good(3), claimed), expected, "{claimed}");
    }
}

/// A short answer is short, whatever it says: its content is not looked at.
#[test]
fn a_short_answer_is_not_judged_by_its_content() {
    assert_eq!(judge(&[0; REQUEST], 63), Err(DeviceFault::Short));
    assert_eq!(judge(&[0; REQUEST], 65), Err(DeviceFault::Overlong));
}
