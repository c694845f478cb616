//! What `bench` in the guest prints, and the statistics over several boots.

use std::collections::BTreeMap;

use serde::Serialize;

/// All samples of one measurement on one kernel.
#[derive(Clone, Default, Debug, PartialEq, Serialize)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// In the order in which they were measured.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The middle value, or the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            length if length % 2 == 1 => Some(sorted[middle]),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        }
    }

    pub fn min(&self) -> Option<f64> {
        self.0.iter().copied().min_by(f64::total_cmp)
    }

    pub fn max(&self) -> Option<f64> {
        self.0.iter().copied().max_by(f64::total_cmp)
    }
}

/// What one boot, or several of the same kernel, brought.
#[derive(Default, Debug)]
pub struct Figures {
    /// In the order of their first appearance: `bench` prints them in a sensible one.
    pub order: Vec<String>,
    pub samples: BTreeMap<String, Samples>,
    /// Each measurement of the guest in its order, and how often it did the work.
    pub windows: Vec<(String, f64)>,
    /// Benchmarks whose work was not done right, with the reason.
    pub failures: Vec<String>,
    /// Benchmarks that this kernel cannot run.
    pub skipped: Vec<String>,
    /// The guest's own figures in KiB: MemTotal and MemAvailable.
    pub memory: Vec<(f64, f64)>,
    /// `bench` came to its end.
    pub complete: bool,
}

impl Figures {
    /// Adds a value of the measurement `name`.
    pub fn add(&mut self, name: &str, value: f64) {
        if !self.samples.contains_key(name) {
            self.order.push(name.to_owned());
        }
        self.samples.entry(name.to_owned()).or_default().add(value);
    }

    /// Reads the serial output of one boot.
    pub fn read(&mut self, output: &str) {
        self.complete = false;
        for line in output.lines() {
            self.read_line(line);
        }
        if !self.complete {
            self.failures.push("the benchmark did not come to its end".into());
        }
    }

    fn read_line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["bench", name, iterations, total, "ok"] => {
                match (iterations.parse::<f64>(), total.parse::<f64>()) {
                    (Ok(n), Ok(total)) if n > 0.0 => {
                        self.add(name, total / n);
                        self.windows.push((name.to_owned(), n));
                    }
                    _ => self.failures.push(format!("cannot read {line:?}")),
                }
            }
            ["bench-skip", ..] => {
                let skipped = words[1..].join(" ");
                // Every boot skips the same ones.
                if !self.skipped.contains(&skipped) {
                    self.skipped.push(skipped);
                }
            }
            ["bench-end"] => self.complete = true,
            ["meminfo", total, available] => match (total.parse(), available.parse()) {
                (Ok(total), Ok(available)) => self.memory.push((total, available)),
                _ => self.failures.push(format!("cannot read {line:?}")),
            },
            ["bench", ..] | ["bench-init:", ..] | ["meminfo:", ..] => {
                self.failures.push(line.trim().to_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let samples = Samples(vec![3.0, 1.0, 10.0]);
        assert_eq!(samples.median(), Some(3.0));
        assert_eq!((samples.min(), samples.max()), (Some(1.0), Some(10.0)));
        assert_eq!(Samples(vec![1.0, 2.0]).median(), Some(1.5));
        assert_eq!(Samples::default().median(), None);
    }

    #[test]
    fn a_boot_is_read() {
        let mut figures = Figures::default();
        figures.read(
            "alea: first user instruction\nmeminfo 476040 440440\nbench getpid 200 1000 ok\n\
             bench exec_true 15 3000 FAIL child 3 exited with 127\nbench-skip vdso no vDSO here\n\
             bench-skip vdso no vDSO here\nbench getpid 100 700 ok\nbench-end\n",
        );
        assert_eq!(figures.order, ["getpid"]);
        assert_eq!(figures.samples["getpid"].median(), Some(6.0));
        assert_eq!(figures.failures, ["bench exec_true 15 3000 FAIL child 3 exited with 127"]);
        assert_eq!(figures.skipped, ["vdso no vDSO here"]);
        assert_eq!(figures.memory, [(476_040.0, 440_440.0)]);
    }

    #[test]
    fn a_boot_that_breaks_off_is_a_failure() {
        let mut figures = Figures::default();
        figures.read("bench getpid 200 1000 ok\n");
        assert_eq!(figures.failures.len(), 1);
        figures.read("bench getpid 0 0 ok\nbench-end\n");
        assert_eq!(figures.failures.len(), 2, "no iterations are no figure");
    }
}
