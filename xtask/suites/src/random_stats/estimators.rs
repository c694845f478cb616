//! The raw jitter samples, and how much entropy NIST SP 800-90B finds in them.
//!
//! The estimators are NIST's own code in the Python package `sp800-90b`, built into a private environment
//! below target/alea/. Its non-IID track is used: the samples are timings, nobody claims that they are
//! independent. The estimate is an upper bound for what may be credited; passing says nothing about an
//! attacker who knows the machine better than ten predictors do.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use xtask_guest::qemu::Machine;
use xtask_host::{paths, process};
use xtask_setup::setup::{self, Need};

/// How many samples the standard asks for, and a little more than that in mebibytes.
const SAMPLES: usize = 1_000_000;
const MIB: u32 = 1;

/// The version that is known to build.
const PACKAGE: &str = "sp800-90b==0.1.1";

/// What the kernel credits for a sample: see `SAMPLES_PER_BIT` in kernel/random/src/jitter.rs.
const CREDITED: f64 = 1.0 / 64.0;

const SCRIPT: &str = "import json, sys, sp800_90b
samples = open(sys.argv[1], 'rb').read()[:int(sys.argv[2])]
data = sp800_90b.Data(samples, 8)
print(json.dumps({'samples': len(samples), 'distinct': len(set(samples)),
    'most_common': data.h_most_common(), 'initial': data.h_initial()}))";

/// Bits of min-entropy in a sample.
#[derive(Debug, Serialize, Deserialize)]
pub struct Estimate {
    pub samples: usize,
    /// How many different values there are.
    pub distinct: u32,
    /// By the frequency of the most common value alone.
    pub most_common: f64,
    /// The least of all estimators: section 3.1.3.
    pub initial: f64,
}

impl Estimate {
    /// Whether what is credited stays below what was found.
    pub fn is_enough(&self) -> bool {
        self.initial > CREDITED
    }

    pub fn text(&self) -> String {
        format!(
            "raw jitter: {} samples, {} values; most common value {:.3} bits, least of all estimators \
             {:.3} bits a sample\n  credited {CREDITED}: {}\n",
            self.samples,
            self.distinct,
            self.most_common,
            self.initial,
            if self.is_enough() { "below" } else { "NOT below" },
        )
    }
}

/// Draws raw samples from a running kernel and has them judged.
pub fn run(machine: &Machine, folder: &Path) -> Result<Estimate> {
    let python = provide()?;
    let streams = super::draw(machine, folder, MIB, &["jitter"])?;
    let (_, file) = streams.found.first().context("the kernel shows no raw samples")?;
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).arg(file).arg(SAMPLES.to_string());
    let spinner = xtask_host::term::spinner("estimating the entropy of raw jitter");
    let answer = process::output(&mut command);
    spinner.finish_and_clear();
    // NIST's code may print before the answer.
    let answer = answer?;
    let line = answer.lines().last().unwrap_or_default();
    let estimate: Estimate = serde_json::from_str(line).context("the estimators' answer")?;
    if estimate.samples < SAMPLES {
        bail!("{} samples came, {SAMPLES} are needed", estimate.samples);
    }
    Ok(estimate)
}

/// The Python that has the package, if it was installed.
pub fn installed() -> Option<PathBuf> {
    let python = home().join("bin/python");
    let asked = process::output(Command::new(&python).args(["-c", "import sp800_90b"]));
    asked.is_ok().then_some(python)
}

fn home() -> PathBuf {
    paths::alea().join("sp800-90b")
}

/// The Python that has the package, which is installed where it is missing.
pub fn provide() -> Result<PathBuf> {
    if let Some(python) = installed() {
        return Ok(python);
    }
    setup::ensure(&[Need::Estimators])?;
    let venv = ["-m", "venv", "--clear"];
    process::run("making a Python environment", Command::new("python3").args(venv).arg(home()))?;
    let python = home().join("bin/python");
    let pip = |what: &str, words: &[&str]| {
        process::run(what, Command::new(&python).args(["-m", "pip", "install", "-q"]).args(words))
    };
    pip("fetching build tools from PyPI", &["pybind11", "setuptools", "wheel"])?;
    pip("building the SP 800-90B estimators", &["--no-build-isolation", PACKAGE])?;
    installed().with_context(|| format!("{PACKAGE} was built and does not load"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credit_has_to_stay_below_the_estimate() {
        let answer =
            "{\"samples\": 1000000, \"distinct\": 40, \"most_common\": 2.0, \"initial\": 0.67}";
        let estimate: Estimate = serde_json::from_str(answer).unwrap();
        assert!(estimate.is_enough());
        assert!(!Estimate { initial: 0.01, ..estimate }.is_enough());
    }
}
