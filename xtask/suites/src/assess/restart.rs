//! The restart tests of SP 800-90B, 3.1.4: does a source that was started again and again repeat itself?
//!
//! The samples of the starts are a matrix with a row for each start. The sanity check (3.1.4.3) counts the most frequent
//! value of each row and of each column: a value that comes too often at one place of all starts, or within one
//! start, contradicts what the consecutive samples promised.

use serde::Serialize;

/// The probability that a sound source fails the sanity check, over all rows and columns.
const FALSE_ALARM: f64 = 0.01;

/// What the sanity check counted.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Sanity {
    /// The greatest count of one value in a row, and how often it may be there.
    pub in_rows: (u32, u32),
    /// The greatest count of one value in a column, and how often it may be there.
    pub in_columns: (u32, u32),
}

impl Sanity {
    /// Counts in a matrix whose rows have `width` samples, for a claim of `claim` bits of min-entropy a sample.
    pub fn check(matrix: &[u8], width: usize, claim: f64) -> Self {
        let height = matrix.len() / width;
        let columns = transposed(matrix, width);
        let alpha = 1.0 - ((1.0 - FALSE_ALARM).ln() / (width + height) as f64).exp();
        Self {
            in_rows: (most_frequent(matrix, width), cutoff(width as u32, claim, alpha)),
            in_columns: (most_frequent(&columns, height), cutoff(height as u32, claim, alpha)),
        }
    }

    /// A count that equals the cutoff passes.
    pub fn passed(&self) -> bool {
        [self.in_rows, self.in_columns].iter().all(|(count, cutoff)| count <= cutoff)
    }
}

/// The same samples, one place of all starts after the other.
pub fn transposed(matrix: &[u8], width: usize) -> Vec<u8> {
    (0..width).flat_map(|column| matrix[column..].iter().step_by(width).copied()).collect()
}

/// The greatest number of equal values in any of the lines.
fn most_frequent(lines: &[u8], length: usize) -> u32 {
    let of_line = |line: &[u8]| {
        let mut counts = [0u32; 256];
        line.iter().for_each(|&value| counts[usize::from(value)] += 1);
        counts.into_iter().max().unwrap_or(0)
    };
    lines.chunks_exact(length).map(of_line).max().unwrap_or(0)
}

/// The least `u` for which more than `u` of `n` samples have the likeliest value with a probability of at most `alpha`, if
/// that value has the probability `2^-claim`.
fn cutoff(n: u32, claim: f64, alpha: f64) -> u32 {
    let p = (-claim).exp2();
    if p >= 1.0 {
        return n;
    }
    // The logarithm of the probability of n, then n - 1, ... such samples.
    let mut log = f64::from(n) * p.ln();
    let mut tail = 0.0;
    for u in (0..=n).rev() {
        tail += log.exp();
        if tail > alpha {
            return u;
        }
        log += (f64::from(u) / f64::from(n - u + 1)).ln() + (-p).ln_1p() - p.ln();
    }
    0
}

#[cfg(test)]
mod tests {
    use alea_random::splitmix64;

    use super::*;

    /// Computed with sums of exact binomial coefficients (Python, `math.lgamma`), for 1000 starts of 1000 samples.
    #[test]
    fn the_cutoffs_are_the_binomials() {
        let alpha = 1.0 - (0.99f64.ln() / 2000.0).exp();
        for (claim, expected) in
            [(8.0, 15), (2.0, 312), (1.0, 570), (0.5, 769), (0.122, 954), (0.016, 1000)]
        {
            assert_eq!(cutoff(1000, claim, alpha), expected, "{claim} bits");
        }
        assert_eq!(cutoff(100, 1.0, 1.0 - (0.99f64.ln() / 200.0).exp()), 69);
        assert_eq!(cutoff(1000, 0.0, alpha), 1000, "nothing is promised, so nothing is broken");
    }

    #[test]
    fn a_source_that_starts_alike_fails_by_its_columns() {
        // Each row has every value four times; each column has only one value.
        let row: Vec<u8> = (0..1000).map(|at| (at % 250) as u8).collect();
        let sanity = Sanity::check(&row.repeat(1000), 1000, 1.0);
        assert_eq!(sanity, Sanity { in_rows: (4, 570), in_columns: (1000, 570) });
        assert!(!sanity.passed());
        assert!(Sanity::check(&transposed(&row.repeat(1000), 1000), 1000, 0.0).passed());
    }

    /// Half of its samples are one value, so it has one bit of min-entropy, and the other half is spread over 128 values.
    #[test]
    fn a_biased_source_keeps_its_own_promise_and_no_greater_one() {
        let mut state = 1;
        let mut next = || {
            let (then, word) = splitmix64::step(state);
            state = then;
            (word >> 56) as u8
        };
        let matrix: Vec<u8> = (0..1_000_000).map(|_| next()).map(|b| b.max(127)).collect();
        assert!(Sanity::check(&matrix, 1000, 1.0).passed());
        assert!(!Sanity::check(&matrix, 1000, 1.3).passed());
    }

    #[test]
    fn a_count_at_the_cutoff_passes() {
        let sanity = |count| Sanity { in_rows: (4, 570), in_columns: (count, 570) };
        assert!(sanity(570).passed());
        assert!(!sanity(571).passed());
    }

    #[test]
    fn columns_become_rows() {
        assert_eq!(transposed(&[1, 2, 3, 4, 5, 6], 3), [1, 4, 2, 5, 3, 6]);
    }
}
