//! What one more costs when there are N already, and on N CPUs: runs `userland/growth` and reads its curves.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::report::{Curve, Refusal};
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::paths;

/// Enough for ten thousand processes.
const MEMORY: &str = "2G";

/// A kernel that says nothing for so long is given up: Linux needs a minute for its longest curve.
const PATIENCE: Duration = Duration::from_secs(600);

/// The boots on several CPUs; a first look ends at two.
pub const CPUS: [u32; 4] = [1, 2, 4, 8];

/// What the curves over CPUs are called in the guest.
pub const OVER_CPUS: &str = "cpus_";

/// One kernel's curves, in instructions.
#[derive(Default)]
pub struct Grown {
    points: Vec<(String, f64, f64)>,
    refused: Vec<(String, f64, String)>,
}

impl Grown {
    /// Adds the sizes up to `most`.
    pub fn measure_sizes(&mut self, kernel: &Path, cpu: &str, most: u32) -> Result<()> {
        self.boot(kernel, cpu, 1, &format!("alea.growth_max={most}"))
    }

    /// Adds what the same work costs on `cpus` CPUs.
    pub fn measure_cpus(&mut self, kernel: &Path, cpu: &str, cpus: u32) -> Result<()> {
        self.boot(kernel, cpu, cpus, &format!("alea.growth={OVER_CPUS}*"))
    }

    fn boot(&mut self, kernel: &Path, cpu: &str, smp: u32, words: &str) -> Result<()> {
        let machine: Machine = args(cpu, smp).machine()?.direct(
            kernel,
            Some(paths::programs_initramfs()),
            &format!("console=ttyS0 quiet rdinit=/usr/lib/alea/growth {words}"),
        );
        let outcome = Guest::start(&machine)?.finish(Limits::idle(PATIENCE))?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(kernel, &outcome.output);
            bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(kernel)));
        }
        if !self.read(&outcome.output) {
            bail!("the curves did not come to their end\n{}", outcome.describe());
        }
        Ok(())
    }

    /// Reads what a guest printed; whether it came to its end.
    pub fn read(&mut self, output: &str) -> bool {
        let mut complete = false;
        for line in output.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["growth", name, n, cost] => {
                    if let (Ok(n), Ok(cost)) = (n.parse(), cost.parse()) {
                        self.points.push((name.to_owned(), n, cost));
                    }
                }
                ["growth-skip", name, n, why] => {
                    let n = n.parse().unwrap_or(0.0);
                    self.refused.push((name.to_owned(), n, why.to_owned()));
                }
                ["growth-end"] => complete = true,
                _ => {}
            }
        }
        complete
    }

    /// `(curve, size, cost)` in the order in which they were measured.
    pub fn points(&self) -> &[(String, f64, f64)] {
        &self.points
    }

    /// Curves that ended early, with the size and the reason.
    pub fn refused(&self) -> &[(String, f64, String)] {
        &self.refused
    }
}

/// The machine of the curves.
fn args(cpu: &str, smp: u32) -> MachineArgs {
    MachineArgs {
        icount: true,
        memory: Some(MEMORY.into()),
        cpu: cpu.to_owned(),
        smp,
        ..MachineArgs::default()
    }
}

/// The curves of both kernels side by side.
pub fn join(linux: &Grown, alea: &Grown) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (grown, is_linux) in [(linux, true), (alea, false)] {
        for (name, n, cost) in &grown.points {
            let curve = named(&mut curves, name);
            let points = if is_linux { &mut curve.linux } else { &mut curve.alea };
            points.push((*n, *cost));
        }
        for (name, n, why) in &grown.refused {
            let kernel = if is_linux { "linux" } else { "alea" }.to_owned();
            named(&mut curves, name).refused.push(Refusal { kernel, n: *n, why: why.clone() });
        }
    }
    curves
}

/// The curve of that name, which is made if there is none.
fn named<'a>(curves: &'a mut Vec<Curve>, name: &str) -> &'a mut Curve {
    let at = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
        curves.push(Curve { name: name.to_owned(), ..Curve::default() });
        curves.len() - 1
    });
    &mut curves[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_joined_by_name() {
        let (mut linux, mut alea) = (Grown::default(), Grown::default());
        assert!(!linux.read("growth epoll 1 2775\ngrowth epoll 10 2776\ngrowth-skip x 1 12\n"));
        assert!(alea.read("growth epoll 1 1562\ngrowth timers 1 1228\ngrowth-end\n"));
        let curves = join(&linux, &alea);
        assert_eq!(curves.len(), 3);
        assert_eq!(curves[0].linux, [(1.0, 2775.0), (10.0, 2776.0)]);
        assert_eq!(curves[0].alea, [(1.0, 1562.0)]);
        let refusal = Refusal { kernel: "linux".into(), n: 1.0, why: "12".into() };
        assert_eq!((&curves[1].name[..], &curves[1].refused[..]), ("x", &[refusal][..]));
        assert!(curves[2].linux.is_empty());
    }
}
