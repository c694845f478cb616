//! A part of the rows, when several machines measure: each row is measured by one of them, Linux and Alea on the same.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::bench::{BOOT, Bench, Both, Kernel, MEMORY};
use super::results::ratio;
use crate::figures::Samples;
use xtask_guest::qemu::Machine;
use xtask_host::{paths, process};
use xtask_shards::results::{Case, Verdict};

/// What no benchmark is called, for a part that has none of the guest's.
const NONE: &str = "-";

impl Bench {
    /// Measures this machine's part of the rows, and hands in a case for each.
    pub(super) fn part(&self, machine: &Machine) -> Result<ExitCode> {
        let rows = self.names()?;
        let share = self.shards.share(&self.line(None), &rows)?;
        if share.units.is_empty() {
            return share.finish(Vec::new());
        }
        let part = Self { filter: Some(filter(&share.units)), ..self.clone() };
        let start = Instant::now();
        let measured = part.measure(machine);
        let seconds = start.elapsed().as_secs_f64() / share.units.len() as f64;
        let cases: Vec<Case> = match measured {
            Ok(both) => {
                print!("{}", part.table(&both).render());
                println!("{}", part.caption());
                let rows = share.units.iter().map(|row| self.case(row, &both, seconds));
                rows.chain(self.rest(&share.units, &both)).collect()
            }
            // Some row has broken a guest: which one, a run of it alone tells.
            Err(error) => {
                let why = format!("{error:#}");
                let case = |row: &String| {
                    Case::of(row, Verdict::Failed, seconds, &why, &self.line(Some(row)))
                };
                share.units.iter().map(case).collect()
            }
        };
        for case in cases.iter().filter(|case| case.verdict == Verdict::Failed) {
            println!("FAILED  {}: {}", case.name, case.message);
        }
        share.finish(cases)
    }

    /// All rows that would be measured, as the guest's program lists them, and those that are not its own.
    fn names(&self) -> Result<Vec<String>> {
        let listed = process::output(Command::new(paths::program("bench")).arg("--list"))?;
        let globs = self.filter.as_deref().unwrap_or("*").split(',').map(glob::Pattern::new);
        let globs = globs.collect::<Result<Vec<_>, _>>().context("--filter")?;
        let wanted = |name: &&str| globs.iter().any(|glob| glob.matches(name));
        let mut names: Vec<String> = listed.lines().filter(wanted).map(str::to_owned).collect();
        ensure!(!names.is_empty(), "no benchmark matches; there are {}", listed.replace('\n', " "));
        if self.filter.is_none() {
            names.push(MEMORY.to_owned());
            names.extend((!self.machine.icount).then(|| BOOT.to_owned()));
        }
        Ok(names)
    }

    /// The command with the same options; only one row of it.
    fn line(&self, row: Option<&str>) -> String {
        let mut words = vec!["cargo".to_owned(), "xtask".into(), "bench".into()];
        let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        option("--runs", &self.runs.to_string());
        // The others are measured at every boot, whatever the filter says.
        let is_own = |row: &&str| ![BOOT, MEMORY].contains(row);
        match row.filter(is_own).or(self.filter.as_deref()) {
            Some(filter) => option("--filter", filter),
            None if row.is_some() => option("--filter", NONE),
            None => {}
        }
        match self.only {
            Some(Kernel::Linux) => option("--only", "linux"),
            Some(Kernel::Alea) => option("--only", "alea"),
            None => {}
        }
        for (name, path) in [("--linux", &self.linux), ("--alea", &self.alea)] {
            if let Some(path) = path {
                option(name, &path.display().to_string());
            }
        }
        let appended =
            [("--linux-append", &self.linux_append), ("--alea-append", &self.alea_append)];
        for (name, words) in appended {
            if let Some(words) = words {
                option(name, words);
            }
        }
        words.extend(self.quick.then(|| "--quick".into()));
        words.extend(self.machine.words());
        process::line(words)
    }

    /// What failed and is of none of the rows.
    fn rest(&self, rows: &[String], both: &Both) -> Option<Case> {
        let failures = both.iter().flat_map(|figures| &figures.failures);
        let rest: Vec<&str> = failures
            .map(String::as_str)
            .filter(|line| !rows.iter().any(|row| is_of(line, row)))
            .collect();
        let first = rows.first().filter(|_| !rest.is_empty())?;
        let case = Case::of(first, Verdict::Failed, 0.0, &rest.join("\n"), &self.line(None));
        Some(Case { name: "the run itself".into(), ..case })
    }

    fn case(&self, row: &str, both: &Both, seconds: f64) -> Case {
        let samples =
            |kernel: Kernel| both[kernel as usize].samples.get(row).cloned().unwrap_or_default();
        let (mut broken, mut skipped, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for kernel in self.kernels() {
            let (figures, name) = (&both[kernel as usize], kernel.name());
            let of_row = |line: &&String| is_of(line, row);
            let median = samples(kernel).median();
            let bad: Vec<&String> = figures.failures.iter().filter(of_row).collect();
            let skip = figures.skipped.iter().find(of_row);
            match (bad.is_empty(), median, skip) {
                (false, ..) => broken.extend(bad.iter().map(|line| format!("{name}: {line}"))),
                (true, Some(median), _) => {
                    told.push(format!("{name} {}", self.format(row, Some(median))));
                }
                (true, None, Some(line)) => skipped.push(format!("{name} skipped {line}")),
                (true, None, None) => {
                    let why = figures.failures.join("\n");
                    broken.push(format!("{name} gave no figure\n{why}"));
                }
            }
        }
        let (verdict, message) = match (broken.is_empty(), skipped.is_empty()) {
            (false, _) => (Verdict::Failed, broken.join("\n")),
            (true, false) => (Verdict::Skipped, skipped.join("\n")),
            (true, true) => (Verdict::Passed, format!("{} ({})", told.join(", "), self.unit(row))),
        };
        let case = Case::of(row, verdict, seconds, &message, &self.line(Some(row)));
        Case { figures: figures(&samples(Kernel::Linux), &samples(Kernel::Alea)), ..case }
    }
}

/// Whether a line of the guest's is of this row.
fn is_of(line: &str, row: &str) -> bool {
    line.split_whitespace().any(|word| word == row)
}

/// The guest's filter for these rows.
fn filter(rows: &[String]) -> String {
    let own: Vec<&str> =
        rows.iter().map(String::as_str).filter(|row| ![BOOT, MEMORY].contains(row)).collect();
    if own.is_empty() { NONE.to_owned() } else { own.join(",") }
}

/// The medians and their ratio, as far as they are there.
fn figures(linux: &Samples, alea: &Samples) -> BTreeMap<String, f64> {
    let all =
        [("Linux", linux.median()), ("Alea", alea.median()), ("Alea/Linux", ratio(linux, alea))];
    let there = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    // What is divided by nothing is no number, and JSON has none for it.
    there.filter(|(_, value)| value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_guest::qemu::MachineArgs;

    fn bench() -> Bench {
        let machine = MachineArgs { icount: true, ..MachineArgs::default() };
        Bench { only: None, filter: None, ..Bench::instructions_of(Kernel::Alea, "", 2, &machine) }
    }

    #[test]
    fn a_row_is_asked_for_by_its_name_and_what_every_boot_has_by_none() {
        let bench = bench();
        let line = |row| bench.line(Some(row));
        assert_eq!(line("getpid"), "cargo xtask bench --runs 2 --filter getpid --icount");
        assert_eq!(line(MEMORY), "cargo xtask bench --runs 2 --filter - --icount");
        assert_eq!(bench.line(None), "cargo xtask bench --runs 2 --icount");
        let rows =
            |names: &[&str]| filter(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(rows(&["getpid", BOOT, "stat"]), "getpid,stat");
        assert_eq!(rows(&[BOOT]), NONE);
    }

    #[test]
    fn a_row_that_broke_or_is_missing_on_one_kernel_fails() {
        let bench = bench();
        let mut both = Both::default();
        both[0].add("getpid", 100.0);
        both[1].add("getpid", 25.0);
        both[0].add("stat", 100.0);
        both[1].failures.push("bench pipe_1 10 100 FAIL 3 checks".into());
        both[0].add("pipe_1", 1.0);
        both[0].skipped.push("vdso_getrandom_4 no vDSO".into());
        both[1].add("vdso_getrandom_4", 1.0);
        let case = |row| bench.case(row, &both, 1.0);
        let good = case("getpid");
        assert_eq!((good.verdict, good.figures["Alea/Linux"]), (Verdict::Passed, 0.25));
        assert_eq!(good.message, "Linux 100, Alea 25 (instructions)");
        assert_eq!(case("stat").verdict, Verdict::Failed);
        assert!(case("stat").message.starts_with("Alea gave no figure"));
        assert!(case("pipe_1").message.contains("Alea: bench pipe_1 10 100 FAIL"));
        assert_eq!(case("vdso_getrandom_4").verdict, Verdict::Skipped);
        let rows = ["getpid", "pipe_1"].map(String::from);
        assert_eq!(bench.rest(&rows, &both), None);
        assert_eq!(bench.rest(&rows[..1], &both).unwrap().verdict, Verdict::Failed);
    }
}
