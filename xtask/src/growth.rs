//! What one more costs when there are N already: runs `userland/growth` and reads its curves.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::guest::{End, Guest, Limits};
use crate::qemu::{Machine, MachineArgs};
use crate::report::Curve;
use crate::{paths, symbolize};

/// Enough for ten thousand processes.
const MEMORY: &str = "2G";

/// A kernel that says nothing for so long is given up: Linux needs a minute for its longest curve.
const PATIENCE: Duration = Duration::from_secs(600);

/// One kernel's curves, counted in instructions, with sizes up to `most`.
pub fn measure(kernel: &std::path::Path, cpu: &str, most: u32) -> Result<Vec<(String, f64, f64)>> {
    let args = MachineArgs {
        icount: true,
        memory: MEMORY.into(),
        cpu: cpu.to_owned(),
        ..MachineArgs::default()
    };
    let line = format!("console=ttyS0 quiet rdinit=/usr/lib/alea/growth alea.growth_max={most}");
    let machine: Machine = args.machine()?.direct(kernel, Some(paths::initramfs()), &line);
    let outcome = Guest::start(&machine)?.finish(Limits::idle(PATIENCE))?;
    if outcome.end != End::Exited(0) {
        let report = symbolize::panic_report(kernel, &outcome.output);
        bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(kernel)));
    }
    if !outcome.output.contains("growth-end") {
        bail!("the curves did not come to their end\n{}", outcome.describe());
    }
    Ok(outcome.output.lines().filter_map(point).collect())
}

/// The curves of both kernels side by side.
pub fn join(linux: &[(String, f64, f64)], alea: &[(String, f64, f64)]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (points, is_linux) in [(linux, true), (alea, false)] {
        for (name, n, cost) in points {
            let at = curves.iter().position(|curve| curve.name == *name).unwrap_or_else(|| {
                curves.push(Curve { name: name.clone(), linux: Vec::new(), alea: Vec::new() });
                curves.len() - 1
            });
            let curve = &mut curves[at];
            let points = if is_linux { &mut curve.linux } else { &mut curve.alea };
            points.push((*n, *cost));
        }
    }
    curves
}

/// A line `growth NAME N COST`.
fn point(line: &str) -> Option<(String, f64, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["growth", name, n, cost] = words[..] else { return None };
    Some((name.to_owned(), n.parse().ok()?, cost.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_joined_by_name() {
        let read = |text: &str| text.lines().filter_map(point).collect::<Vec<_>>();
        let linux = read("growth epoll 1 2775\ngrowth epoll 10 2776\ngrowth-skip x 1 12\n");
        let alea = read("growth epoll 1 1562\ngrowth timers 1 1228\n");
        let curves = join(&linux, &alea);
        assert_eq!(curves.len(), 2);
        assert_eq!(curves[0].linux, [(1.0, 2775.0), (10.0, 2776.0)]);
        assert_eq!(curves[0].alea, [(1.0, 1562.0)]);
        assert!(curves[1].linux.is_empty());
    }
}
