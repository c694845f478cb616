//! The jitter collector, fed with counters that vary and counters that only seem to.

use alea_random::credit::EntropyBits;
use alea_random::health::STARTUP;
use alea_random::jitter::{
    CycleCounter, Jitter, JitterFault, PATIENCE, SAMPLES_PER_BIT, seed_word,
};
use alea_random::splitmix64::{SplitMix64, step};

/// A counter that advances by what a function says.
struct Counter<F> {
    time: u64,
    reads: u64,
    advance: F,
}

impl<F: FnMut(u64) -> u64> Counter<F> {
    fn new(advance: F) -> Self {
        Self { time: 0, reads: 0, advance }
    }
}

impl<F: FnMut(u64) -> u64> CycleCounter for Counter<F> {
    fn now(&mut self) -> u64 {
        self.reads += 1;
        self.time = self.time.wrapping_add((self.advance)(self.reads));
        self.time
    }
}

fn noisy(seed: u64) -> Counter<impl FnMut(u64) -> u64> {
    let mut noise = SplitMix64::new(seed);
    Counter::new(move |_| 50 + noise.next_u64() % 16)
}

#[test]
fn a_noisy_counter_is_credited_after_start_up() {
    let mut counter = noisy(1);
    let mut absorbed = 0;
    let wanted = EntropyBits(16);
    let report = Jitter::new().collect(&mut counter, wanted, |_| absorbed += 1).unwrap();
    assert_eq!(report.credit, wanted);
    assert_eq!(report.samples, absorbed, "every sample is handed over, counted or not");
    assert_eq!(report.samples - report.regular, 16 * SAMPLES_PER_BIT);
    assert!(report.regular >= STARTUP - 1);
}

/// As [`a_noisy_counter_is_credited_after_start_up`], sample by sample.
#[test]
fn start_up_ends_with_its_last_sample() {
    let (mut jitter, mut counter) = (Jitter::new(), noisy(2));
    for _ in 0..STARTUP {
        assert!(!jitter.started());
        jitter.sample(&mut counter, &mut |_| ()).unwrap();
    }
    assert!(jitter.started());
}

/// What the caller hashes are the times that were measured, each of them.
#[test]
fn what_is_handed_over_is_what_was_measured() {
    let mut noise = SplitMix64::new(8);
    let mut measured = Vec::new();
    let mut counter = Counter::new(|n| {
        let time = 50 + noise.next_u64() % 16;
        if n % 2 == 0 {
            measured.push(time);
        }
        time
    });
    let mut absorbed = Vec::new();
    Jitter::new().collect(&mut counter, EntropyBits(1), |sample| absorbed.push(sample)).unwrap();
    assert!(absorbed.len() > STARTUP as usize && absorbed == measured);
}

#[test]
fn counters_without_jitter_are_refused() {
    let refused = |advance: fn(u64) -> u64| {
        let mut counter = Counter::new(advance);
        Jitter::new().collect(&mut counter, EntropyBits(8), |_| ()).unwrap_err()
    };
    assert!(matches!(refused(|_| 0), JitterFault::Health(_)), "stands still");
    assert!(matches!(refused(|_| 26), JitterFault::Health(_)), "even");
    assert!(matches!(refused(|n| n % 2), JitterFault::Health(_)), "alternates");
    assert!(matches!(refused(|n| 40 + n % 7), JitterFault::Health(_)), "cycles");
    assert_eq!(refused(|n| n), JitterFault::TooRegular, "accelerates evenly");
    assert!(matches!(refused(|n| u64::from(n % 300 == 0)), JitterFault::Health(_)), "coarse");
}

/// A clock that counts what is executed, as an emulator's does: each read comes as many instructions after
/// the one before as the code in between has. The work that is measured must not depend on what was measured.
#[test]
fn a_clock_that_counts_the_work_gets_no_credit() {
    // The second read of each pair ends the work, which is the same each time; what lies between the pairs
    // may take any time.
    let mut between = SplitMix64::new(3);
    let mut counter =
        Counter::new(move |n| if n % 2 == 0 { 177 } else { between.next_u64() % 5000 });
    let result = Jitter::new().collect(&mut counter, EntropyBits(8), |_| ());
    assert!(matches!(result, Err(JitterFault::Health(_))), "{result:?}");
}

#[test]
fn seeds_from_different_noise_differ() {
    let seed = |noise| seed_word(&mut noisy(noise)).unwrap();
    assert_ne!(seed(1), seed(2));
    assert!(seed_word(&mut Counter::new(|_| 0)).is_err());
}

#[test]
#[cfg(not(miri))]
fn this_machine_has_jitter() {
    struct Host(std::time::Instant);
    impl CycleCounter for Host {
        fn now(&mut self) -> u64 {
            self.0.elapsed().as_nanos() as u64
        }
    }
    // The health tests may refuse a sound source, and a busy host now and then is none: try again.
    let mut host = Host(std::time::Instant::now());
    let mut collect = || Jitter::new().collect(&mut host, EntropyBits::READY, |_| ());
    let ready = std::iter::repeat_with(&mut collect).take(20).find_map(Result::ok);
    assert_eq!(ready.map(|report| report.credit), Some(EntropyBits::READY));
}

/// A machine whose time is a function of what it executes, an instruction a nanosecond, and whose clock is coarser than that:
/// what is measured differs by a tick, now up, now down, and no health test sees a pattern in it.
#[test]
fn a_coarse_clock_makes_no_entropy_of_a_machine_without_noise() {
    // Nanoseconds of a tick: 100 MHz, 62.5 MHz (QEMU's Arm), 25 MHz (its Cortex-M), 24 MHz, 19.2 MHz, 3.58 MHz.
    let mut costs = SplitMix64::new(4);
    for (numerator, denominator) in
        [(10, 1), (16, 1), (40, 1), (125, 3), (625, 12), (2_793_651, 10_000)]
    {
        for _ in 0..10 {
            let mut cost = |least: u64, most: u64| least + costs.next_u64() % (most - least);
            let (work, between, mixing) = (cost(100, 3000), cost(20, 300), cost(2000, 60_000));
            let (mut elapsed, mut reads) = (0, 0u64);
            let mut last = 0;
            let mut counter = Counter::new(|_| {
                // Even reads end what is measured; the samples are hashed 64 at once.
                elapsed += if reads % 2 == 1 { work } else { between };
                elapsed += if reads % 128 == 0 { mixing } else { 0 };
                reads += 1;
                let now = elapsed * denominator / numerator;
                now - std::mem::replace(&mut last, now)
            });
            let result = Jitter::new().collect(&mut counter, EntropyBits(64), |_| ());
            assert!(
                result.is_err(),
                "{numerator}/{denominator} ns, {work}, {between}, {mixing}: {result:?}"
            );
        }
    }
}

/// The word is every sample, folded by the published mixer one after the other.
#[test]
fn a_seed_is_folded_of_all_samples() {
    let mut noise = noisy(5);
    let mut samples = Vec::new();
    Jitter::new().collect(&mut noise, EntropyBits(64), |sample| samples.push(sample)).unwrap();
    let folded = samples.iter().fold(0, |word, sample| step(word ^ sample).1);
    assert_eq!(seed_word(&mut noisy(5)), Ok(folded));
}

/// How much varies for a bit, and when a source is given up.
#[test]
fn the_numbers_are_those_that_are_argued_for() {
    assert_eq!((SAMPLES_PER_BIT, PATIENCE), (64, 8));
    let mut asked = 0;
    let mut regular = Counter::new(|n| n);
    let refused = Jitter::new().collect(&mut regular, EntropyBits(2), |_| asked += 1);
    assert_eq!((refused, asked), (Err(JitterFault::TooRegular), 2 * 64 * 8 + 1024));
}
