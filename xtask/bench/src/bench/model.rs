//! `bench --model`: what hardware pays for and an emulator does not, counted per operation on both kernels by a plugin of QEMU's.
//!
//! The plugin (`model/plugin.c`) says what the model is. The guest does a tenth of the work, once; each row is one window between
//! two marks, so the plugin's lines and the guest's are in the same order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::bench::{Bench, Kernel};
use crate::figures::Figures;
use xtask_guest::qemu::MachineArgs;
use xtask_host::table::{self, Table};
use xtask_host::{paths, process};

/// What the plugin counts, in its order.
const COUNTERS: [&str; 13] = [
    "instr", "loads", "stores", "L1I", "L1D", "L2", "TLB", "walks", "locked", "CR3", "flushes",
    "serial", "exits",
];

/// The first counter that a kernel may not have more of: instructions and accesses have their own command.
const FIRST_JUDGED: usize = 3;

/// On which rows none of Alea's counts may be above Linux's.
const JUDGED: [&str; 8] = [
    "getrandom_16",
    "read_urandom_16",
    "pipe_1",
    "mmap_touch_64",
    "fork_exit",
    "exec_true",
    "spawn_true",
    "shell_noop",
];

/// What an operation may have more of by the way of counting: interrupts of the timer fall into one window or the other.
const SLACK: f64 = 0.5;

/// The counters of one kernel, per operation, by row.
type Counts = BTreeMap<String, [f64; COUNTERS.len()]>;

impl Bench {
    pub(super) fn model(&self) -> Result<ExitCode> {
        let plugin = plugin()?;
        let mut both = [Counts::new(), Counts::new()];
        let mut order = Vec::new();
        for kernel in self.kernels() {
            let (figures, counts) = self.counted(kernel, &plugin)?;
            if order.is_empty() {
                order.clone_from(&figures.order);
            }
            both[kernel as usize] = counts;
        }
        let file = paths::alea().join("model.json");
        let all = json!({ "counters": COUNTERS, "linux": both[0], "alea": both[1] });
        fs::write(&file, serde_json::to_string_pretty(&all)? + "\n")?;
        print!("{}", shown(&order, &both).render());
        println!(
            "per operation, {} CPU(s), -cpu {}; misses of caches and TLBs by the model of a Sunny Cove core; all figures are in {}",
            self.machine.smp,
            self.machine.cpu,
            paths::shown(&file)
        );
        let worse = worse(&order, &both);
        for line in &worse {
            println!("more than on Linux: {line}");
        }
        Ok(if worse.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// One boot of a kernel under the plugin.
    fn counted(&self, kernel: Kernel, plugin: &Path) -> Result<(Figures, Counts)> {
        let lines = tempfile::NamedTempFile::new()?;
        let argument = format!("-plugin {},out={}", plugin.display(), lines.path().display());
        let mut machine = MachineArgs { icount: true, ..self.machine.clone() };
        machine.qemu_args.push(argument);
        let boot = Self { runs: 1, quick: true, only: Some(kernel), machine, ..self.clone() };
        let mut both = boot.measure(&boot.machine.machine()?)?;
        let figures = std::mem::take(&mut both[kernel as usize]);
        ensure!(figures.failures.is_empty(), "{}: {}", kernel.name(), figures.failures.join("; "));
        let counts = read(&fs::read_to_string(lines.path())?, &figures.windows)?;
        Ok((figures, counts))
    }
}

/// The plugin, compiled.
fn plugin() -> Result<PathBuf> {
    let source = paths::root().join("xtask/bench/model/plugin.c");
    let made = paths::alea().join("model.so");
    fs::create_dir_all(paths::alea())?;
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-o",
    ]);
    gcc.arg(&made).arg(source);
    process::output(&mut gcc).context("the plugin does not compile")?;
    Ok(made)
}

/// The plugin's lines, each divided by how often its window did the work.
fn read(lines: &str, windows: &[(String, f64)]) -> Result<Counts> {
    let lines: Vec<&str> = lines.lines().collect();
    if lines.len() != windows.len() {
        bail!("the plugin counted {} windows, the guest measured {}", lines.len(), windows.len());
    }
    let mut counts = Counts::new();
    for (line, (name, iterations)) in lines.iter().zip(windows) {
        let numbers: Vec<f64> = line
            .split(' ')
            .map(|number| number.parse::<f64>().map(|number| number / iterations))
            .collect::<Result<_, _>>()
            .with_context(|| format!("the plugin said {line:?}"))?;
        let numbers =
            numbers.try_into().ok().with_context(|| format!("the plugin said {line:?}"))?;
        counts.insert(name.clone(), numbers);
    }
    Ok(counts)
}

/// Two lines for each row.
fn shown(order: &[String], both: &[Counts; 2]) -> Table {
    let mut header = vec!["per operation", ""];
    header.extend(COUNTERS);
    let mut table = Table::new(&header);
    for name in order {
        for (kernel, counts) in ["Linux", "Alea"].into_iter().zip(both) {
            if let Some(counts) = counts.get(name) {
                let first = if kernel == "Alea" && both[0].contains_key(name) { "" } else { name };
                let mut cells = vec![first.to_owned(), kernel.to_owned()];
                cells.extend(counts.iter().map(|&count| number(count)));
                table.row(cells);
            }
        }
    }
    table
}

fn number(count: f64) -> String {
    if count >= 100.0 { table::count(count) } else { format!("{count:.1}") }
}

/// What Alea has more of than Linux, where it may not.
fn worse(order: &[String], [linux, alea]: &[Counts; 2]) -> Vec<String> {
    let mut worse = Vec::new();
    for name in order.iter().filter(|name| JUDGED.contains(&name.as_str())) {
        let (Some(linux), Some(alea)) = (linux.get(name), alea.get(name)) else { continue };
        for at in FIRST_JUDGED..COUNTERS.len() {
            if alea[at] > linux[at] + SLACK {
                let [linux, alea] = [linux[at], alea[at]].map(number);
                worse.push(format!("{name}: {} {alea}, on Linux {linux}", COUNTERS[at]));
            }
        }
    }
    worse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(locked: f64) -> Counts {
        let mut row = [1.0; COUNTERS.len()];
        row[8] = locked;
        Counts::from([("pipe_1".into(), row), ("stat".into(), row)])
    }

    #[test]
    fn windows_are_read_per_operation() {
        let windows = [("pipe_1".into(), 10.0), ("stat".into(), 2.0)];
        let line = "10 20 30 0 0 0 0 0 0 0 0 0 5";
        let read = read(&format!("{line}\n{line}\n"), &windows).unwrap();
        assert_eq!(read["pipe_1"][..3], [1.0, 2.0, 3.0]);
        assert_eq!(read["stat"][12], 2.5);
    }

    #[test]
    fn windows_and_rows_are_as_many() {
        let windows = [("pipe_1".into(), 10.0)];
        assert!(read("", &windows).is_err());
        assert!(read("1 2 3\n", &windows).is_err(), "a counter is missing");
        assert!(read(&"x ".repeat(13), &windows).is_err());
    }

    #[test]
    fn more_than_on_linux_is_told_of_some_rows() {
        let order = ["pipe_1".to_owned(), "stat".to_owned()];
        assert_eq!(worse(&order, &[counts(5.0), counts(5.4)]), [""; 0]);
        assert_eq!(
            worse(&order, &[counts(5.0), counts(11.0)]),
            ["pipe_1: locked 11.0, on Linux 5.0"]
        );
    }
}
