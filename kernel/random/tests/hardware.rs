//! Acceptance rules for hardware generators: each test plays a part that shipped broken.

use alea_random::credit::EntropyBits;
use alea_random::hardware::{
    HardwareFault, HardwareRng, RDRAND_RESEED_WORDS, RDRAND_SEED_BITS, SELF_TEST_DISTINCT,
    SELF_TEST_SAMPLES, SelfTest, TRIES, WordTests, draw, gather, self_test, test_words,
};
use alea_random::health::HealthFault;
use alea_random::splitmix64::SplitMix64;

/// Plays back answers for ever, and counts how often it was asked.
struct Replay<F> {
    answer: F,
    asked: u32,
}

impl<F: FnMut(u32) -> Option<u64>> Replay<F> {
    fn new(answer: F) -> Self {
        Self { answer, asked: 0 }
    }
}

impl<F: FnMut(u32) -> Option<u64>> HardwareRng for Replay<F> {
    fn next_u64(&mut self) -> Option<u64> {
        self.asked += 1;
        (self.answer)(self.asked - 1)
    }
}

#[test]
fn a_good_source_is_asked_once() {
    let mut good = SplitMix64::new(1);
    let mut rng = Replay::new(|_| Some(good.next_u64()));
    assert!(draw(&mut rng).is_ok());
    assert_eq!(rng.asked, 1);
    assert_eq!(self_test(&mut rng), Ok(()));
}

#[test]
fn a_dead_source_is_asked_ten_times() {
    let mut rng = Replay::new(|_| None);
    assert_eq!(draw(&mut rng), Err(HardwareFault::NoData));
    assert_eq!(rng.asked, TRIES);
}

#[test]
fn zeros_and_ones_are_no_answer() {
    for word in [0, u64::MAX] {
        let mut rng = Replay::new(|_| Some(word));
        assert_eq!(draw(&mut rng), Err(HardwareFault::Implausible));
        assert_eq!(rng.asked, TRIES);
        assert_eq!(self_test(&mut rng), Err(HardwareFault::Implausible));
    }
}

#[test]
fn the_tenth_try_may_succeed_and_the_eleventh_never_happens() {
    let mut rng = Replay::new(|n| if n == 9 { Some(77) } else { [None, Some(0)][n as usize % 2] });
    assert_eq!(draw(&mut rng), Ok(77));
    let mut rng = Replay::new(|n| (n == 10).then_some(77));
    assert_eq!(draw(&mut rng), Err(HardwareFault::NoData));
}

#[test]
fn a_constant_and_every_short_cycle_are_stuck() {
    for period in 1..=6u64 {
        let mut rng = Replay::new(|n| Some(1000 + u64::from(n) % period));
        assert_eq!(self_test(&mut rng), Err(HardwareFault::Stuck), "period {period}");
    }
}

#[test]
fn one_coincidence_is_forgiven() {
    let mut rng = Replay::new(|n| Some(if n == 7 { 100 } else { 100 + u64::from(n) }));
    assert_eq!(self_test(&mut rng), Ok(()));
}

#[test]
fn gathering_reports_what_really_came() {
    let mut rng = Replay::new(|n| (n < 3).then_some(u64::from(n) + 1));
    let mut words = [0; 8];
    assert_eq!(gather(&mut rng, &mut words), 3);
    assert_eq!(words, [1, 2, 3, 0, 0, 0, 0, 0]);
}

/// A cycle of seven or more, and a part that plays the same words at each test, pass any test without a memory.
#[test]
fn cycles_and_replays_fail_the_second_test() {
    for period in 7..=14u64 {
        let mut rng = Replay::new(|n| Some(1000 + u64::from(n) % period));
        let mut test = SelfTest::new();
        if period == 7 {
            assert_eq!(self_test(&mut Replay::new(|n| Some(1 + u64::from(n) % 7))), Ok(()));
        }
        let mut verdicts = (0..4).map(|_| test.judge(&test_words(&mut rng).unwrap()));
        assert!(verdicts.any(|verdict| verdict == Err(HardwareFault::Stuck)), "period {period}");
    }
    let mut test = SelfTest::new();
    let mut verdict = || {
        let mut restarted = Replay::new(|n| Some(500 + u64::from(n)));
        test.judge(&test_words(&mut restarted).unwrap())
    };
    assert_eq!(verdict(), Ok(()));
    assert_eq!(verdict(), Err(HardwareFault::Stuck));
}

#[test]
fn a_good_source_passes_every_test() {
    let mut good = SplitMix64::new(2);
    let mut rng = Replay::new(|_| Some(good.next_u64()));
    let mut test = SelfTest::new();
    let rounds = if cfg!(miri) { 10 } else { 1000 };
    assert!((0..rounds).all(|_| test.judge(&test_words(&mut rng).unwrap()).is_ok()));
}

/// What the rules and the credit of RDRAND rest on; the reasons stand beside the constants.
#[test]
fn the_numbers_are_those_that_are_argued_for() {
    assert_eq!((TRIES, SELF_TEST_SAMPLES, SELF_TEST_DISTINCT), (10, 8, 7));
    assert_eq!((RDRAND_RESEED_WORDS, RDRAND_SEED_BITS), (1022, EntropyBits(128)));
}

/// One coincidence is forgiven in a test, and two are not.
#[test]
fn two_coincidences_are_not_forgiven() {
    let mut rng = Replay::new(|n| Some(100 + u64::from(n) % 6));
    assert_eq!(self_test(&mut rng), Err(HardwareFault::Stuck));
    let words = |from: u64| core::array::from_fn(|n| from + n as u64);
    let mut test = SelfTest::new();
    assert_eq!(test.judge(&words(100)), Ok(()));
    assert_eq!(test.judge(&words(107)), Ok(()), "one word again");
    assert_eq!(test.judge(&words(113)), Err(HardwareFault::Stuck), "two words again");
}

/// After how many words a part is found that gives `word(n)`.
fn found(limit: u32, mut word: impl FnMut(u32) -> u64) -> Option<(u32, HardwareFault)> {
    let mut tests = WordTests::new();
    (0..limit).find_map(|n| tests.observe(word(n)).err().map(|fault| (n + 1, fault)))
}

/// Start-up is 1,024 bytes, and a perfect source passes it and much more.
#[test]
fn good_words_pass_for_long() {
    let mut good = SplitMix64::new(20);
    let mut tests = WordTests::new();
    for n in 0..if cfg!(miri) { 200 } else { 200_000 } {
        assert_eq!(tests.started(), n >= 128, "after {n} words");
        assert_eq!(tests.observe(good.next_u64()), Ok(()));
    }
}

/// Parts of whose words some bits stand: those of half a word within the start-up, those of one byte soon. No test that
/// looks at whole words finds them.
#[test]
fn words_of_which_a_part_stands_are_found() {
    let half = u64::from(u32::MAX);
    for mask in [half, !half, 0xffff_0000_ffff_0000, 0x0000_ffff_0000_ffff] {
        let (mut words, mut others) = (SplitMix64::new(21), SplitMix64::new(21));
        assert!(found(128, |_| words.next_u64() & mask).is_some(), "{mask:#x}");
        let mut replay = Replay::new(|_| Some(others.next_u64() & mask));
        assert_eq!(self_test(&mut replay), Ok(()), "{mask:#x}");
    }
    for byte in (0..8).step_by(if cfg!(miri) { 7 } else { 1 }) {
        let mut words = SplitMix64::new(22);
        let after =
            found(10_000, |_| words.next_u64() & !(0xff << (8 * byte)) | 0x5a << (8 * byte));
        assert!(after.is_some_and(|(words, _)| words <= 8 * 64), "byte {byte}: {after:?}");
    }
}

/// A part that turns bad after any number of good words is found within a start-up's worth of bad ones.
#[test]
fn a_part_that_turns_bad_is_found() {
    for good in [0, 1, 63, 64, 129, 1_000] {
        let mut words = SplitMix64::new(23);
        let (after, fault) =
            found(good + 128, |n| if n < good { words.next_u64() } else { 0x4242_4242_4242_4242 })
                .expect("a constant");
        assert_eq!(fault, HardwareFault::Biased(HealthFault::Repetition), "{good}");
        assert!(after <= good + 2, "{good}: {after}");
    }
}

/// A part that plays the same eight words at each test has bytes that look well.
#[test]
fn words_that_are_played_again_are_found() {
    let mut words = SplitMix64::new(25);
    let mut tests = WordTests::new();
    let played = std::array::from_fn(|_| words.next_u64());
    assert_eq!(tests.judge(&played), Ok(()));
    assert_eq!(tests.judge(&played), Err(HardwareFault::Stuck));
}

/// Eight words are enough to find any byte that stands, whatever came before.
#[test]
fn a_byte_that_stands_is_found_by_eight_words() {
    let mut words = SplitMix64::new(24);
    let good = if cfg!(miri) { 2 } else { 200 };
    for (byte, value) in (0..8).flat_map(|byte| [(byte, 0), (byte, 0x5a), (byte, 0xff)]) {
        let mut tests = WordTests::new();
        for _ in 0..good {
            assert_eq!(tests.judge(&std::array::from_fn(|_| words.next_u64())), Ok(()));
        }
        let others = !(0xff << (8 * byte));
        let bad = std::array::from_fn(|_| words.next_u64() & others | value << (8 * byte));
        assert_eq!(tests.judge(&bad), Err(HardwareFault::Stuck), "byte {byte}: {value:#x}");
    }
}
