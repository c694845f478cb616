//! `cargo xtask profile --flame PROGRAM...`: a flame graph of one program on Alea, of its own code and the kernel's.
//!
//! Debian's perf samples it in a root of Debian, and inferno draws what perf script prints. Programs of `userland` stand in the guest's /.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use inferno::flamegraph;

use xtask_guest::qemu::MachineArgs;
use xtask_host::table::Table;
use xtask_host::{paths, process};
use xtask_suites::debian::root;

/// What of a profile is about one program.
#[derive(Args, Default)]
pub struct Flame {
    /// Sample PROGRAM, with its arguments, and write a flame graph to target/alea/flame
    #[arg(long, requires = "program", help_heading = "One program")]
    pub flame: bool,
    /// Samples a second
    #[arg(long, default_value_t = 997, help_heading = "One program")]
    frequency: u32,
    /// A root that has perf, in place of a small Debian
    #[arg(long, value_name = "DIR|FILE", help_heading = "One program")]
    root: Option<std::path::PathBuf>,
    /// Fail if a function of the kernel whose name contains WORD was ever seen
    #[arg(long, value_name = "WORD", help_heading = "One program")]
    without: Vec<String>,
    /// Look only at stacks in which a name contains WORD
    #[arg(long, value_name = "WORD", default_value = "", help_heading = "One program")]
    below: String,
    /// The program, as the guest finds it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, help_heading = "One program")]
    program: Vec<OsString>,
}

/// What the guest does; `$1` are the samples a second.
const SCRIPT: &str = r#"
frequency=$1; shift
mkdir -p /tmp/flame
perf record -q -F "$frequency" -g -e cpu-clock -o /tmp/flame/data "$@" > /tmp/flame/output 2>&1
echo $? > /tmp/flame/status
perf script -F comm,pid,tid,time,event,ip,sym,dso -i /tmp/flame/data > /tmp/flame/script 2> /tmp/flame/errors
rm -f /tmp/flame/data
"#;

/// Rows of the table.
const SHOWN: usize = 20;

impl Flame {
    pub fn run(&self, machine: &MachineArgs) -> Result<ExitCode> {
        let out = paths::alea().join("flame");
        let _old = fs::remove_dir_all(&out);
        let root = match &self.root {
            Some(root) => root.clone(),
            None => root::tar(&["linux-perf"], &root::hook(&[], false), false)?,
        };
        self.sample(machine, &root, &out)?;
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        let status = read("status");
        if status.trim() != "0" {
            bail!("perf or the program failed: status {}\n{}", status.trim(), read("output"));
        }
        let folded = fold(&out)?;
        ensure!(!folded.is_empty(), "no sample was taken: {}", read("errors"));
        fs::write(out.join("folded"), folded.join("\n") + "\n")?;
        let mut options = flamegraph::Options::default();
        let words: Vec<_> = self.program.iter().map(|word| word.to_string_lossy()).collect();
        options.title = words.join(" ");
        options.count_name = "samples".into();
        let lines = folded.iter().map(String::as_str);
        let svg = out.join("flame.svg");
        flamegraph::from_lines(&mut options, lines, fs::File::create(&svg)?)
            .context("the flame graph")?;
        show(&folded);
        println!("{}", paths::shown(&svg));
        self.check(&folded)
    }

    fn sample(&self, machine: &MachineArgs, root: &Path, out: &Path) -> Result<()> {
        let mut run = process::cargo();
        run.args(["xtask", "run", "--root"]).arg(root).arg("--overlay");
        run.arg(paths::alea().join("userland"));
        run.args(["--smp", &machine.smp.to_string(), "--out"]);
        run.arg(format!("/tmp/flame:{}", out.display()));
        run.args(["--", "/bin/sh", "-c", SCRIPT, "flame", &self.frequency.to_string()]);
        run.args(&self.program).stdin(Stdio::null());
        status(&mut run)
    }

    /// None of the words that must not be there is in a name of the kernel's.
    fn check(&self, folded: &[String]) -> Result<ExitCode> {
        let stacks = folded.iter().filter_map(|line| line.rsplit_once(' ').map(|(stack, _)| stack));
        let names = stacks.filter(|stack| stack.contains(&self.below));
        let kernel = names.flat_map(|stack| stack.split(';')).filter(|name| name.ends_with("_[k]"));
        let mut found: Vec<&str> =
            kernel.filter(|name| self.without.iter().any(|word| name.contains(word))).collect();
        found.sort_unstable();
        found.dedup();
        for name in &found {
            println!("seen: {name}");
        }
        Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn status(run: &mut Command) -> Result<()> {
    let status = run.status().context("cannot start cargo")?;
    ensure!(status.success(), "the guest failed: {status}");
    Ok(())
}

/// `outermost;...;innermost count` for each distinct stack; functions of the kernel end in `_[k]`.
fn fold(out: &Path) -> Result<Vec<String>> {
    let mut options = Options::default();
    options.annotate_kernel = true;
    let mut folded = Vec::new();
    let script = fs::File::open(out.join("script")).context("perf script printed nothing")?;
    Folder::from(options).collapse(std::io::BufReader::new(script), &mut folded)?;
    let folded = String::from_utf8(folded).context("what perf script printed")?;
    Ok(folded.lines().map(String::from).collect())
}

/// Where it was seen most often, by the innermost function.
fn show(folded: &[String]) {
    let (counts, all) = innermost(folded);
    let mut table = Table::new(&["function", "samples", "%"]);
    for (name, count) in counts.iter().take(SHOWN) {
        let share = *count as f64 * 100.0 / all as f64;
        table.row(vec![name.clone(), count.to_string(), format!("{share:.1}")]);
    }
    println!("{}\n{all} samples", table.render());
}

/// The innermost functions, the most frequent first, and how many samples there are.
fn innermost(folded: &[String]) -> (Vec<(String, u64)>, u64) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (stack, count) in folded.iter().filter_map(|line| line.rsplit_once(' ')) {
        let name = stack.rsplit(';').next().unwrap_or(stack);
        *counts.entry(name).or_default() += count.parse::<u64>().unwrap_or(0);
    }
    let all = counts.values().sum();
    let mut sorted: Vec<_> = counts.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    (sorted, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_function_counts() {
        let folded = ["a;b 3", "a;c_[k] 5", "d;b 4"].map(String::from);
        let (counts, all) = innermost(&folded);
        assert_eq!(all, 12);
        assert_eq!(counts[0], ("b".to_owned(), 7));
        assert_eq!(counts[1], ("c_[k]".to_owned(), 5));
    }
}
