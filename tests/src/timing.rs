//! Whether two classes of measurements differ: Welch's t, as dudect uses it.
//!
//! O. Reparaz, J. Balasch, I. Verbauwhede, *Dude, is my code constant time?* (2017). Times are cut off at a few percentiles
//! first: interrupts and other tasks make a long tail that hides small differences.

/// From here on a difference counts: a perfect routine gives one by chance in 150,000 tests.
pub const THRESHOLD: f64 = 4.5;

/// Of the times of both classes the smallest so many hundredths are compared.
const PERCENTILES: [usize; 4] = [50, 80, 95, 100];

/// One measurement: its class, and how long it took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub fixed: bool,
    pub ticks: u64,
}

/// The largest |t| over the percentiles.
pub fn leakage(samples: &[Sample]) -> f64 {
    let mut sorted: Vec<u64> = samples.iter().map(|sample| sample.ticks).collect();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let cut = PERCENTILES.map(|percentile| sorted[last * percentile / 100]);
    cut.map(|most| welch(samples, most)).into_iter().fold(0.0, f64::max)
}

/// |t| of the times up to `most`.
fn welch(samples: &[Sample], most: u64) -> f64 {
    let class = |fixed| {
        let of_class = samples.iter().filter(move |s| s.fixed == fixed && s.ticks <= most);
        let times: Vec<f64> = of_class.map(|sample| sample.ticks as f64).collect();
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        let squares: f64 = times.iter().map(|time| (time - mean) * (time - mean)).sum();
        (n, mean, squares / (n - 1.0))
    };
    let ((n_a, mean_a, var_a), (n_b, mean_b, var_b)) = (class(true), class(false));
    let error = (var_a / n_a + var_b / n_b).sqrt();
    if n_a < 2.0 || n_b < 2.0 {
        return f64::INFINITY;
    }
    match error > 0.0 {
        true => (mean_a - mean_b).abs() / error,
        // Not a tick of difference within either class.
        false => {
            if mean_a == mean_b {
                0.0
            } else {
                f64::INFINITY
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(n: u32, mut ticks: impl FnMut(u32, bool) -> u64) -> Vec<Sample> {
        let of = |(at, fixed)| Sample { fixed, ticks: ticks(at, fixed) };
        (0..n).flat_map(|at| [(at, true), (at, false)]).map(of).collect()
    }

    /// By hand: means 2 and 4, variances 1 and 1, three each.
    #[test]
    fn t_is_welchs() {
        let all = samples(3, |at, fixed| u64::from(at) + if fixed { 1 } else { 3 });
        assert!((welch(&all, u64::MAX) - 2.0 / (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        // Cut at 3: 1, 2, 3 and a single 3, which has no variance.
        assert_eq!(welch(&all, 3), f64::INFINITY);
    }

    #[test]
    fn equal_classes_do_not_differ_and_others_do() {
        let noise = |at: u32, fixed: bool| u64::from((at * 7919 + u32::from(fixed) * 31) % 101);
        assert!(leakage(&samples(10_000, noise)) < THRESHOLD);
        let later = |at: u32, fixed: bool| 1000 + noise(at, fixed) + if fixed { 0 } else { 3 };
        assert!(leakage(&samples(10_000, later)) > THRESHOLD);
        assert_eq!(leakage(&samples(100, |_, _| 40)), 0.0);
        assert_eq!(leakage(&samples(100, |_, fixed| u64::from(fixed))), f64::INFINITY);
        assert_eq!(leakage(&[]), 0.0);
    }

    /// A difference of a tick under a tail of interrupts.
    #[test]
    fn a_tail_hides_nothing() {
        let tailed = |at: u32, fixed: bool| {
            let tail = if at % 10 == 9 { 50_000 + u64::from(at * 7919 % 100_003) } else { 0 };
            500 + u64::from(at % 3) + u64::from(!fixed) + tail
        };
        let all = samples(5_000, tailed);
        assert!(welch(&all, u64::MAX) < THRESHOLD && leakage(&all) > THRESHOLD);
    }
}
