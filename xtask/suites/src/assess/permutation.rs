//! The permutation tests of SP 800-90B, 5.1: are the samples independent of their order?
//!
//! Eighteen of the standard's nineteen statistics are ranked among those of 10,000 permutations of the same samples. One that
//! lies at the edge of them rejects the assumption that the samples are independent and identically distributed. Since
//! one is enough, the tests go on with one statistic at a time once the clear cases are settled, and end with the first
//! that fails.
//!
//! Left out is the length of the samples compressed by bzip2, which takes longer than all others together. It could reject,
//! too; so "not rejected" here is less than the standard asks for, and is said so. Nothing is claimed to be
//! independent, so nothing depends on it.

use alea_random::splitmix64;

/// How many permutations a statistic is ranked among.
pub const PERMUTATIONS: u32 = 10_000;

/// Permutations for which all statistics are computed that are not settled.
const TOGETHER: u32 = 40;

/// So many above (or equal) and so many below (or equal) settle that a statistic is not at the edge.
const EDGE: u32 = 5;

/// The lags of the periodicity and covariance statistics.
const LAGS: [usize; 5] = [1, 2, 8, 16, 32];

const NAMES: [&str; 18] = [
    "number of directional runs",
    "length of directional runs",
    "increases and decreases",
    "runs based on the median",
    "length of runs based on the median",
    "periodicity 1",
    "periodicity 2",
    "periodicity 8",
    "periodicity 16",
    "periodicity 32",
    "covariance 1",
    "covariance 2",
    "covariance 8",
    "covariance 16",
    "covariance 32",
    "excursion",
    "average collision",
    "maximum collision",
];

/// What the tests say.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// The statistic that failed.
    pub failed: Option<&'static str>,
    /// Statistics that passed until then.
    pub passed: usize,
    /// Permutations that were made.
    pub permutations: u32,
}

/// How one statistic compares with those of the permutations.
#[derive(Clone, Copy, Default)]
struct Rank {
    greater: u32,
    equal: u32,
    less: u32,
}

impl Rank {
    fn passed(self) -> bool {
        self.greater + self.equal > EDGE && self.equal + self.less > EDGE
    }

    fn rounds(self) -> u32 {
        self.greater + self.equal + self.less
    }
}

/// Runs the tests with `permutations` shuffles, which repeat with the same `seed`. Samples of more than two values.
pub fn judge(samples: &[u8], permutations: u32, seed: u64) -> Verdict {
    let (mean, median) = middle(samples);
    let original = |which: usize| statistic(which, samples, mean, median);
    let originals: [f64; NAMES.len()] = std::array::from_fn(original);
    let mut ranks = [Rank::default(); NAMES.len()];
    let mut shuffled = samples.to_vec();
    let (mut state, mut made) = (seed, 0);
    loop {
        let open = (0..NAMES.len()).filter(|&which| !ranks[which].passed());
        let open: Vec<usize> =
            if made < TOGETHER { open.collect() } else { open.take(1).collect() };
        let failed = open.iter().copied().find(|&which| ranks[which].rounds() >= permutations);
        if open.is_empty() || failed.is_some() {
            let passed = ranks.iter().filter(|rank| rank.passed()).count();
            return Verdict {
                failed: failed.map(|which| NAMES[which]),
                passed,
                permutations: made,
            };
        }
        shuffle(&mut shuffled, &mut state);
        made += 1;
        for which in open {
            let now = statistic(which, &shuffled, mean, median);
            let rank = &mut ranks[which];
            match originals[which].total_cmp(&now) {
                std::cmp::Ordering::Greater => rank.greater += 1,
                std::cmp::Ordering::Equal => rank.equal += 1,
                std::cmp::Ordering::Less => rank.less += 1,
            }
        }
    }
}

/// Fisher's and Yates' shuffle.
fn shuffle(samples: &mut [u8], state: &mut u64) {
    for at in (1..samples.len()).rev() {
        let (next, word) = splitmix64::step(*state);
        *state = next;
        let other = ((u128::from(word) * (at as u128 + 1)) >> 64) as usize;
        samples.swap(at, other);
    }
}

/// Mean and median.
fn middle(samples: &[u8]) -> (f64, f64) {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    let upper = f64::from(sorted[half]);
    let median =
        if sorted.len() % 2 == 1 { upper } else { (f64::from(sorted[half - 1]) + upper) / 2.0 };
    (sorted.iter().map(|&s| f64::from(s)).sum::<f64>() / sorted.len() as f64, median)
}

/// The statistic of that place in [`NAMES`].
fn statistic(which: usize, samples: &[u8], mean: f64, median: f64) -> f64 {
    let rises = || samples.windows(2).map(|pair| pair[0] <= pair[1]);
    let above = || samples.iter().map(|&s| f64::from(s) >= median);
    let lag = |which: usize| (samples, &samples[LAGS[which % 5]..]);
    match which {
        0 => runs(rises()).0,
        1 => runs(rises()).1,
        2 => {
            let up = rises().filter(|&rise| rise).count();
            up.max(samples.len() - 1 - up) as f64
        }
        3 => runs(above()).0,
        4 => runs(above()).1,
        5..=9 => {
            let (one, other) = lag(which - 5);
            one.iter().zip(other).filter(|(a, b)| a == b).count() as f64
        }
        10..=14 => {
            let (one, other) = lag(which - 10);
            one.iter().zip(other).map(|(&a, &b)| u64::from(a) * u64::from(b)).sum::<u64>() as f64
        }
        15 => excursion(samples, mean),
        16 => collisions(samples).0,
        _ => collisions(samples).1,
    }
}

/// How many runs of equal values there are, and how long the longest is.
fn runs(values: impl Iterator<Item = bool>) -> (f64, f64) {
    let (mut count, mut longest, mut run, mut last) = (0u32, 0u32, 0u32, None);
    for value in values {
        if last == Some(value) {
            run += 1;
        } else {
            (count, run, last) = (count + 1, 1, Some(value));
        }
        longest = longest.max(run);
    }
    (f64::from(count), f64::from(longest))
}

/// How far the sum of the first samples ever is from what their mean would make it.
fn excursion(samples: &[u8], mean: f64) -> f64 {
    let (mut sum, mut most) = (0.0, 0.0f64);
    for (at, &sample) in samples.iter().enumerate() {
        sum += f64::from(sample);
        most = most.max((sum - (at + 1) as f64 * mean).abs());
    }
    most
}

/// The average and the greatest number of samples up to one that was there before, counted anew after each.
fn collisions(samples: &[u8]) -> (f64, f64) {
    let mut seen = [0u32; 256];
    let (mut round, mut length, mut count, mut sum, mut most) = (1u32, 0u32, 0u32, 0u64, 0u32);
    for &sample in samples {
        length += 1;
        if seen[usize::from(sample)] == round {
            (count, sum, most) = (count + 1, sum + u64::from(length), most.max(length));
            (round, length) = (round + 1, 0);
        } else {
            seen[usize::from(sample)] = round;
        }
    }
    (sum as f64 / f64::from(count.max(1)), f64::from(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(which: &str, samples: &[u8]) -> f64 {
        let (mean, median) = middle(samples);
        let at = NAMES.iter().position(|name| *name == which).unwrap();
        statistic(at, samples, mean, median)
    }

    /// The examples that the standard computes in section 5.1.
    #[test]
    fn the_statistics_give_the_standards_numbers() {
        let runs = [2, 2, 2, 5, 7, 7, 9, 3, 1, 4, 4];
        let about_median = [5, 15, 12, 1, 13, 9, 4];
        let collisions = [2, 1, 1, 2, 0, 1, 0, 1, 1, 2];
        for (name, samples, expected) in [
            ("excursion", &[2, 15, 4, 10, 9][..], 6.0),
            ("number of directional runs", &runs, 3.0),
            ("length of directional runs", &runs, 6.0),
            ("increases and decreases", &runs, 8.0),
            ("runs based on the median", &about_median, 5.0),
            ("length of runs based on the median", &about_median, 2.0),
            ("average collision", &collisions, 3.0),
            ("maximum collision", &collisions, 4.0),
            ("periodicity 2", &[2, 1, 2, 1, 0, 1, 0, 1, 1, 2], 5.0),
            ("covariance 2", &[5, 2, 6, 10, 12, 3, 1], 164.0),
        ] {
            assert_eq!(of(name, samples), expected, "{name}");
        }
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 7;
        let mut next = || {
            let (then, word) = splitmix64::step(state);
            state = then;
            (word >> 56) as u8 & 15
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn noise_is_not_rejected_and_what_has_an_order_is() {
        let mut samples = noise(4000);
        let verdict = judge(&samples, 2000, 1);
        assert_eq!((verdict.failed, verdict.passed), (None, NAMES.len()), "{verdict:?}");
        samples.sort_unstable();
        let verdict = judge(&samples, 300, 1);
        assert!(verdict.failed.is_some() && verdict.permutations >= 300, "{verdict:?}");
        // A slow drift of a few values, which only some of the statistics see.
        let drift: Vec<u8> =
            noise(4000).iter().enumerate().map(|(at, s)| s + (at / 500) as u8).collect();
        assert!(judge(&drift, 300, 1).failed.is_some());
    }

    #[test]
    fn six_on_either_side_settle_a_statistic() {
        assert!(Rank { greater: 6, equal: 0, less: 6 }.passed());
        assert!(!Rank { greater: 5, equal: 0, less: 9995 }.passed());
        assert!(!Rank { greater: 9994, equal: 1, less: 4 }.passed());
        assert!(Rank { greater: 0, equal: 6, less: 0 }.passed());
    }

    #[test]
    fn a_shuffle_keeps_the_samples() {
        let samples: Vec<u8> = (0..=255).collect();
        let mut shuffled = samples.clone();
        shuffle(&mut shuffled, &mut 3);
        assert_ne!(shuffled, samples);
        shuffled.sort_unstable();
        assert_eq!(shuffled, samples);
    }
}
