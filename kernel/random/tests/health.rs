//! Health tests: the cutoffs recomputed, and sources that must pass or fail.

use alea_random::health::{Cutoffs, HealthFault, HealthTests, STARTUP, StandardTests, WINDOW};
use alea_random::splitmix64::SplitMix64;

/// The false-alarm probability per sample or window that the cutoffs are made for.
const ALPHA: f64 = 1.0 / (1u64 << 30) as f64;

/// Long enough for every test to speak.
const SPAN: u32 = if cfg!(miri) { 2 } else { 20 } * WINDOW;

/// `P(Binomial(WINDOW, p) >= cutoff)`.
fn tail(p: f64, cutoff: u32) -> f64 {
    tail_of(WINDOW, p, cutoff)
}

/// `P(Binomial(trials, p) >= cutoff)`, summed from the small end.
fn tail_of(trials: u32, p: f64, cutoff: u32) -> f64 {
    let n = f64::from(trials);
    let mut log_choose = vec![0.0f64];
    for k in 0..trials {
        let last = log_choose[k as usize];
        log_choose.push(last + ((n - f64::from(k)) / (f64::from(k) + 1.0)).ln());
    }
    (cutoff..=trials)
        .rev()
        .map(|k| {
            let k_f = f64::from(k);
            (log_choose[k as usize] + k_f * p.ln() + (n - k_f) * (1.0 - p).ln()).exp()
        })
        .sum()
}

#[test]
fn cutoffs_are_those_of_the_standard() {
    for (h, cutoffs) in [
        (0.125, Cutoffs::EIGHTH_BIT),
        (0.5, Cutoffs::HALF_BIT),
        (1.0, Cutoffs::ONE_BIT),
        (8.0, Cutoffs::EIGHT_BITS),
    ] {
        assert_eq!(cutoffs.repetition, 1 + (30.0f64 / h).ceil() as u32, "RCT for {h} bits");
        let p = 2.0f64.powf(-h);
        assert!(tail(p, cutoffs.proportion) <= ALPHA, "APT for {h} bits is too strict");
        assert!(tail(p, cutoffs.proportion - 1) > ALPHA, "APT for {h} bits is too lax");
    }
}

/// The first sample of a window is compared with itself, so that 511 others decide.
#[test]
fn windows_fail_as_rarely_as_is_said() {
    let window = |h: f64, c: Cutoffs| tail_of(WINDOW - 1, 2.0f64.powf(-h), c.proportion - 1).log2();
    for (h, cutoffs) in
        [(0.125, Cutoffs::EIGHTH_BIT), (0.5, Cutoffs::HALF_BIT), (1.0, Cutoffs::ONE_BIT)]
    {
        assert!(window(h, cutoffs) <= -30.0, "{h} bits: 2^{}", window(h, cutoffs));
    }
    assert!((-29.0..=-28.0).contains(&window(8.0, Cutoffs::EIGHT_BITS)));
}

/// Constants that other tests only repeat: the standard's window and start-up, and what the credit of jitter rests on.
#[test]
fn the_numbers_are_those_that_are_argued_for() {
    assert_eq!((WINDOW, STARTUP), (512, 1024));
    assert_eq!(Cutoffs::EIGHTH_BIT, Cutoffs { repetition: 241, proportion: 502 });
    // Bytes of RDRAND, RDSEED and virtio-rng.
    assert_eq!(Cutoffs::EIGHT_BITS, Cutoffs { repetition: 5, proportion: 16 });
    assert_eq!(alea_random::fast_pool::CHANCES, 3);
    #[cfg(feature = "jitter")]
    assert_eq!(alea_random::jitter::SAMPLES_PER_BIT, 64);
    assert_eq!(alea_random::fast_pool::INTERRUPTS_PER_BIT, 64);
}

/// The proportion test alone: one sample too often, with no run, no cycle and no lag.
#[test]
fn the_favourite_of_a_window_is_found() {
    let mut random = SplitMix64::new(9);
    let mut n = 0u64;
    // Two samples in three are the same one; what stands between differs each time.
    let favours = |_| {
        n += 1;
        if random.next_u64().is_multiple_of(3) { 1000 + n } else { 7 }
    };
    let found = verdict(Cutoffs::EIGHT_BITS, WINDOW, favours).map(|(fault, _)| fault);
    assert!(found.is_some());
    // Each pair of a window's first sample lies 9 to 15 apart, where no lag looks, and no two others are equal.
    let mut gap = SplitMix64::new(10);
    let mut next = 0;
    let apart = |n: u32| {
        if n == next {
            next = n + 9 + (gap.next_u64() % 7) as u32;
            return 7;
        }
        u64::from(n) + 1_000
    };
    let found = verdict(Cutoffs::EIGHT_BITS, WINDOW, apart).map(|(fault, _)| fault);
    assert_eq!(found, Some(HealthFault::Proportion));
}

/// The first failure within `samples`, and after how many.
fn verdict(
    cutoffs: Cutoffs,
    samples: u32,
    mut source: impl FnMut(u32) -> u64,
) -> Option<(HealthFault, u32)> {
    let mut tests = HealthTests::new(cutoffs);
    (0..samples).find_map(|n| tests.observe(source(n)).err().map(|fault| (fault, n + 1)))
}

#[test]
fn a_stuck_source_fails_at_the_cutoff() {
    for cutoffs in [Cutoffs::EIGHTH_BIT, Cutoffs::HALF_BIT, Cutoffs::ONE_BIT] {
        let expected = Some((HealthFault::Repetition, cutoffs.repetition));
        assert_eq!(verdict(cutoffs, 10_000, |_| 0), expected);
        assert_eq!(verdict(cutoffs, 10_000, |_| u64::MAX), expected);
    }
}

#[test]
fn a_biased_source_fails() {
    // 99.5 % the same sample: 0.007 bits, far below the claim of an eighth.
    let mut random = SplitMix64::new(1);
    let biased = |_| u64::from(random.next_u64() % 1000 >= 995);
    assert!(verdict(Cutoffs::EIGHTH_BIT, SPAN, biased).is_some());
    // 90 %: 0.15 bits, enough for a claim of an eighth, not for one of half a bit.
    for (cutoffs, fails) in [(Cutoffs::EIGHTH_BIT, false), (Cutoffs::HALF_BIT, true)] {
        let mut random = SplitMix64::new(2);
        let biased = |_| u64::from(random.next_u64() % 10 == 9);
        assert_eq!(verdict(cutoffs, SPAN, biased).is_some(), fails, "{cutoffs:?}");
    }
}

#[test]
fn short_cycles_fail_the_lag_test() {
    for period in 2..=8 {
        let cutoffs = Cutoffs::EIGHTH_BIT;
        let (fault, after) = verdict(cutoffs, 2 * WINDOW, |n| u64::from(n % period)).unwrap();
        assert_eq!(fault, HealthFault::Lag, "period {period}");
        assert!(after <= WINDOW);
    }
}

#[test]
fn good_sources_pass() {
    let samples = if cfg!(miri) { 600 } else { 2_000_000 };
    let mut random = SplitMix64::new(3);
    assert_eq!(verdict(Cutoffs::EIGHT_BITS, samples, |_| random.next_u64() & 0xffff), None);
    let mut random = SplitMix64::new(4);
    assert_eq!(verdict(Cutoffs::ONE_BIT, samples, |_| random.next_u64() & 3), None);
}

#[test]
fn a_failure_late_in_life_is_found() {
    let mut random = SplitMix64::new(5);
    let life = if cfg!(miri) { 1_000 } else { 100_000 };
    let dies = |n| if n < life { random.next_u64() } else { 7 };
    let (fault, after) = verdict(Cutoffs::EIGHTH_BIT, 2 * life, dies).unwrap();
    assert_eq!(fault, HealthFault::Repetition);
    assert_eq!(after, life + Cutoffs::EIGHTH_BIT.repetition);
}

#[test]
fn nothing_counts_during_start_up() {
    let mut tests = HealthTests::new(Cutoffs::EIGHTH_BIT);
    let mut random = SplitMix64::new(6);
    for n in 0..STARTUP {
        assert!(!tests.started(), "after {n}");
        tests.observe(random.next_u64()).unwrap();
    }
    assert!(tests.started());
}

/// Where two tests are asked of one source they agree, and what a lag test alone finds passes the standard's.
#[test]
fn the_standard_alone_is_the_standard() {
    let first = |cutoffs: Cutoffs, source: &mut dyn FnMut(u32) -> u64| {
        let mut tests = StandardTests::new(cutoffs);
        (0..SPAN).find_map(|n| tests.observe(source(n)).err().map(|fault| (fault, n + 1)))
    };
    let cutoffs = Cutoffs::EIGHT_BITS;
    assert_eq!(first(cutoffs, &mut |_| 7), Some((HealthFault::Repetition, 5)));
    // One sample in 32: no run of five, and the sixteenth after 481.
    let favours = |n: u32| if n.is_multiple_of(32) { 7 } else { 1_000 + u64::from(n) };
    assert_eq!(first(cutoffs, &mut { favours }), Some((HealthFault::Proportion, 15 * 32 + 1)));
    let cycle = |n: u32| u64::from(n % 2);
    assert_eq!(first(Cutoffs::EIGHTH_BIT, &mut { cycle }), None);
    let (fault, _) = verdict(Cutoffs::EIGHTH_BIT, SPAN, cycle).unwrap();
    assert_eq!(fault, HealthFault::Lag);
    let mut tests = StandardTests::new(cutoffs);
    let mut random = SplitMix64::new(7);
    for n in 0..2 * STARTUP {
        assert_eq!(tests.started(), n >= STARTUP);
        tests.observe(random.next_u64()).unwrap();
    }
}
