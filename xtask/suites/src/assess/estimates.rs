//! The estimators of SP 800-90B, section 6, and the chi-square and LRS tests of section 5: NIST's own code, from PyPI.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use xtask_host::process;

/// What is estimated of a file.
#[derive(Clone, Copy)]
pub enum What {
    /// Samples and their bits, and the tests for independence: 3.1.3 and 5.2.
    Consecutive,
    /// Samples alone, as the restart tests want it: 3.1.4.2.
    Matrix,
    /// The first million bits: 3.1.5.2.
    Bits,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::Matrix => "matrix",
            Self::Bits => "bits",
        }
    }
}

/// Prints one line of JSON after whatever NIST's code prints. The three estimators of `binary` are for bits only.
const SCRIPT: &str = "import json, sys, sp800_90b
samples, what = open(sys.argv[1], 'rb').read(), sys.argv[2]
if what == 'bits':
    samples = bytes(byte >> bit & 1 for byte in samples for bit in range(7, -1, -1))[:1000000]
data = sp800_90b.Data(samples, 1 if what == 'bits' else 8)
names = ['most_common', 'multi_most_common', 'lag_prediction', 'multi_markov', 'lz78y']
binary = ['collision', 'markov', 'compression']
def run(form, names):
    found = {name: getattr(data, 'h_' + form + name)() for name in names}
    found['t_tuple'], found['lrs'] = getattr(data, 'h_' + form + 't_tuple_and_lrs')()
    return {name: found[name] for name in found if found[name] >= 0}
answer = {'samples': len(samples), 'distinct': len(set(samples)),
    'literal': run('', names + (binary if data.is_binary else [])), 'bitstring': {}}
if what == 'consecutive':
    if not data.is_binary:
        answer['bitstring'] = run('bitstring_', names + binary)
    answer['chi_square'], answer['lrs_test'] = data.chi_square_tests(), data.lrs_tests()
print()
print(json.dumps(answer))";

/// Bits of min-entropy by each estimator.
type Found = BTreeMap<String, f64>;

/// What the estimators say of a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Estimates {
    pub samples: usize,
    /// How many different values there are.
    pub distinct: u32,
    /// For a sample.
    pub literal: Found,
    /// For a bit of a sample; empty where a sample is one.
    pub bitstring: Found,
    /// Whether the samples pass for independent: chi-square tests, 5.2.1 to 5.2.4.
    pub chi_square: Option<bool>,
    /// The same: length of the longest repeated substring, 5.2.5.
    pub lrs_test: Option<bool>,
}

/// Bits of a sample.
pub const WIDTH: f64 = 8.0;

impl Estimates {
    pub fn of(python: &Path, file: &Path, what: What) -> Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]).arg(file).arg(what.word());
        let answer = process::output(&mut command)?;
        let line = answer.lines().last().unwrap_or_default();
        serde_json::from_str(line).with_context(|| format!("the estimators' answer: {line}"))
    }

    /// H_original: the least estimate of a sample.
    pub fn of_samples(&self) -> f64 {
        least(&self.literal, WIDTH)
    }

    /// H_bitstring: the least estimate of a bit.
    pub fn of_bits(&self) -> f64 {
        least(&self.bitstring, 1.0)
    }

    /// H_I, the initial entropy estimate: section 3.1.3.
    pub fn initial(&self) -> f64 {
        self.of_samples().min(WIDTH * self.of_bits())
    }
}

fn least(found: &Found, most: f64) -> f64 {
    found.values().copied().fold(most, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_samples_and_of_bits_counts() {
        let answer = r#"{"samples": 10, "distinct": 3, "literal": {"lz78y": 0.9, "lrs": 2.5},
            "bitstring": {"markov": 0.2, "lrs": 0.1}, "chi_square": false, "lrs_test": true}"#;
        let mut estimates: Estimates = serde_json::from_str(answer).unwrap();
        assert_eq!((estimates.of_samples(), estimates.of_bits()), (0.9, 0.1));
        assert!((estimates.initial() - 0.8).abs() < 1e-12);
        estimates.literal.insert("markov".into(), 0.3);
        assert_eq!(estimates.initial(), 0.3);
        assert_eq!(Estimates { literal: Found::new(), ..estimates }.of_samples(), 8.0);
    }
}
