//! rngtest, ent and dieharder: running them, reading what they say, and when that is a fault.
//!
//! Owns the thresholds, each with its false-alarm probability for perfect bytes.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use xtask_host::{process, term};

/// How many of 100,000 blocks of 20,000 perfectly random bits fail FIPS 140-2: its own thresholds, and what
/// rngtest finds on every good generator (78 to 83 have been seen over many gigabytes).
const FIPS_RATE: f64 = 0.0008;

/// A p-value nearer to 0 or 1 than this is a fault. With 60 values an interface: 10^-5 or so.
const TAIL: f64 = 1e-7;

/// What rngtest counted.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Rngtest {
    pub successes: u64,
    pub failures: u64,
    /// The same 32 bits twice in a row: 2^-32 a word for a perfect source.
    pub continuous: u64,
}

impl Rngtest {
    pub fn run(stream: &Path) -> Result<Self> {
        // Its exit status is 1 when a block failed, which some have to.
        let out = Command::new("rngtest")
            .stdin(File::open(stream)?)
            .output()
            .context("cannot start rngtest")?;
        Self::parse(&String::from_utf8_lossy(&out.stderr)).context("rngtest says nothing of use")
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |label: &str| {
            let rest = text.lines().find_map(|line| line.split_once(label))?.1;
            rest.trim().parse::<u64>().ok()
        };
        Some(Self {
            successes: number("successes:")?,
            failures: number("failures:")?,
            continuous: number("Continuous run:")?,
        })
    }

    pub fn blocks(&self) -> u64 {
        self.successes + self.failures
    }

    pub fn expected(&self) -> f64 {
        self.blocks() as f64 * FIPS_RATE
    }

    /// More failures than six standard deviations above what is expected: 10^-7 at most, and never for
    /// fewer than five, as small samples are no bell curve.
    pub fn faults(&self) -> Vec<String> {
        let most = self.expected() + 6.0 * self.expected().sqrt() + 5.0;
        let mut faults = Vec::new();
        if self.blocks() == 0 {
            faults.push("rngtest saw no block".to_owned());
        }
        if self.failures as f64 > most {
            faults.push(format!("{} FIPS blocks failed, {most:.0} may", self.failures));
        }
        if self.continuous > 2 {
            faults.push(format!("{} words came twice in a row", self.continuous));
        }
        faults
    }
}

/// What ent measured.
#[derive(Debug, PartialEq, Serialize)]
pub struct Ent {
    pub entropy: f64,
    pub chi_square: f64,
    pub mean: f64,
    pub pi: f64,
    pub serial_correlation: f64,
}

impl Ent {
    pub fn run(stream: &Path) -> Result<Self> {
        let text = process::output(Command::new("ent").arg("-t").arg(stream))?;
        Self::parse(&text).with_context(|| format!("ent says nothing of use: {text}"))
    }

    fn parse(text: &str) -> Option<Self> {
        let values = text.lines().nth(1)?.split(',').skip(2).map(|word| word.trim().parse::<f64>());
        let values = values.collect::<Result<Vec<_>, _>>().ok()?;
        let [entropy, chi_square, mean, pi, serial_correlation] = values[..] else { return None };
        Some(Self { entropy, chi_square, mean, pi, serial_correlation })
    }

    /// Chi-square with 255 degrees of freedom, as a standard normal deviate (Wilson and Hilferty).
    fn deviate(&self) -> f64 {
        let n = 255.0;
        let part = 2.0 / (9.0 * n);
        ((self.chi_square / n).cbrt() - (1.0 - part)) / part.sqrt()
    }

    /// The probability that a perfect source exceeds the measured chi-square.
    pub fn chi_square_p(&self) -> f64 {
        upper_tail(self.deviate())
    }

    /// Each beyond five or six standard deviations: 10^-6 together.
    pub fn faults(&self, bytes: u64) -> Vec<String> {
        let n = bytes as f64;
        let mut faults = Vec::new();
        if self.deviate().abs() > 5.5 {
            faults.push(format!("chi-square of the bytes is {:.0}, 255 expected", self.chi_square));
        }
        if (self.mean - 127.5).abs() * (n * 12.0).sqrt() / 256.0 > 5.5 {
            faults.push(format!("the bytes' mean is {}", self.mean));
        }
        if self.serial_correlation.abs() * n.sqrt() > 6.0 {
            faults.push(format!("serial correlation {}", self.serial_correlation));
        }
        faults
    }
}

/// The probability that a standard normal deviate exceeds `x` (Abramowitz and Stegun 26.2.17: seven digits).
fn upper_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let poly = [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = poly.iter().rev().fold(0.0, |sum, factor| t * (factor + sum));
    let tail = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if x < 0.0 { 1.0 - tail } else { tail }
}

/// One p-value of dieharder.
#[derive(Debug, PartialEq, Serialize)]
pub struct Dieharder {
    pub test: String,
    pub ntuple: u32,
    pub p: f64,
    /// Which of the tests gave it, in their order.
    pub run: usize,
    /// How often the file was read from its start again: the test wants more than there is.
    pub rewinds: u64,
}

/// The tests that are run: number, and size of the tuples where there is a choice; the quickest first. Left
/// out are those that dieharder itself calls suspect (5, 6, 7) or not to be used (14), and the ones that need
/// gigabytes.
const DIEHARDER: [(u32, Option<u32>); 26] = [
    (0, None),
    (15, None),
    (100, None),
    (101, None),
    (8, None),
    (202, Some(3)),
    (203, Some(0)),
    (11, None),
    (12, None),
    (10, None),
    (9, None),
    (16, None),
    (205, None),
    (200, Some(1)),
    (200, Some(2)),
    (202, Some(5)),
    (1, None),
    (3, None),
    (201, Some(2)),
    (2, None),
    (200, Some(4)),
    (4, None),
    (13, None),
    (102, None),
    (203, Some(3)),
    (201, Some(4)),
];

impl Dieharder {
    /// How many tests there are.
    pub const TESTS: usize = DIEHARDER.len();

    /// Runs the tests, or as many of them as begin before `end`.
    pub fn run_all(interface: &str, stream: &Path, end: Option<Instant>) -> Result<Vec<Self>> {
        let mut results = Vec::new();
        for (at, (test, ntuple)) in DIEHARDER.iter().enumerate() {
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let spinner =
                term::spinner(&format!("{interface}: dieharder {} of {}", at + 1, DIEHARDER.len()));
            let result = Self::run(stream, *test, *ntuple);
            spinner.finish_and_clear();
            results.extend(result?.into_iter().map(|result| Self { run: at, ..result }));
        }
        Ok(results)
    }

    /// How many tests gave these values; some give several.
    pub fn tests_in(results: &[Self]) -> usize {
        results.last().map_or(0, |last| last.run + 1)
    }

    fn run(stream: &Path, test: u32, ntuple: Option<u32>) -> Result<Vec<Self>> {
        let mut command = Command::new("dieharder");
        // Generator 201 reads raw bytes from a file.
        command.args(["-g", "201", "-f"]).arg(stream).args(["-d", &test.to_string()]);
        // Output: test name, ntuple, p-value, and nothing around them.
        command.args(["-D", "test_name", "-D", "ntuple", "-D", "pvalues"]);
        if let Some(ntuple) = ntuple {
            command.args(["-n", &ntuple.to_string()]);
        }
        let out = command.stdin(Stdio::null()).output().context("cannot start dieharder")?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let errors = String::from_utf8_lossy(&out.stderr);
        let results = Self::parse(&format!("{text}\n{errors}"));
        if results.is_empty() {
            bail!("dieharder -d {test} ({}) says nothing of use: {text}{errors}", out.status);
        }
        Ok(results)
    }

    fn parse(text: &str) -> Vec<Self> {
        let mut rewinds = 0;
        let mut results = Vec::new();
        for line in text.lines() {
            if let Some((_, rest)) = line.split_once("was rewound") {
                rewinds = rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
            }
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            if let [test, ntuple, p, ..] = cells[..]
                && let (Ok(ntuple), Ok(p)) = (ntuple.parse(), p.parse())
            {
                results.push(Self { test: test.to_owned(), ntuple, p, run: 0, rewinds: 0 });
            }
        }
        results.iter_mut().for_each(|result| result.rewinds = rewinds);
        results
    }

    /// How near to 0 or 1 the p-value is.
    pub fn tail(&self) -> f64 {
        self.p.min(1.0 - self.p)
    }

    /// dieharder prints eight digits; a value that is printed as 0 or 1 is beyond them.
    pub fn fault(&self) -> Option<String> {
        (self.tail() < TAIL).then(|| format!("{} {}: p = {}", self.test, self.ntuple, self.p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rngtest_is_read_and_judged() {
        let text = "rngtest: bits received from input: 2147483648\n\
            rngtest: FIPS 140-2 successes: 107285\nrngtest: FIPS 140-2 failures: 89\n\
            rngtest: FIPS 140-2(2001-10-10) Continuous run: 0\n";
        let good = Rngtest::parse(text).unwrap();
        assert_eq!(good, Rngtest { successes: 107_285, failures: 89, continuous: 0 });
        assert!(good.faults().is_empty());
        assert_eq!(Rngtest { failures: 200, ..good }.faults().len(), 1);
        let few = Rngtest { successes: 800, failures: 5, continuous: 0 };
        assert!(few.faults().is_empty(), "a small sample may have some");
        assert!(!Rngtest::default().faults().is_empty(), "nothing was tested");
    }

    #[test]
    fn ent_is_read_and_judged() {
        let text = "0,File-bytes,Entropy,Chi-square,Mean,Monte-Carlo-Pi,Serial-Correlation\n\
            1,268435456,7.999999,231.93,127.4939,3.141875,-0.000044\n";
        let good = Ent::parse(text).unwrap();
        assert!((good.chi_square_p() - 0.8472).abs() < 0.001, "ent itself says 84.72 percent");
        assert!(good.faults(268_435_456).is_empty());
        let biased = Ent { mean: 127.6, ..good };
        assert_eq!(biased.faults(268_435_456).len(), 1);
        let text = text.replace("231.93", "9000.0").replace("-0.000044", "0.01");
        assert_eq!(Ent::parse(&text).unwrap().faults(268_435_456).len(), 2);
    }

    #[test]
    fn dieharder_is_read_and_judged() {
        let text = "   diehard_birthdays|   0|0.92971902\nsts_serial|   1|0.00000000\n\
            # The file file_input_raw was rewound 3 times\nnonsense\n";
        let results = Dieharder::parse(text);
        assert_eq!(results.len(), 2);
        assert_eq!((results[0].rewinds, results[0].fault()), (3, None));
        assert!(results[1].fault().is_some());
    }
}
