//! A newcomer's first minutes: what README's first section says to type is typed in a fresh clone.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use xtask_host::{paths, process};

/// From the clone to a program of one's own, on two cores.
const LIMIT: Duration = Duration::from_secs(600);

/// Until the tool says what it can do.
const HELP_LIMIT: Duration = Duration::from_secs(20);

/// What the program of README's example ends with.
const STATUS: &str = "7";

/// Types the commands, and looks at what the last one says.
pub fn check() -> Result<()> {
    let readme = fs::read_to_string(paths::source("README.md")).context("README.md")?;
    let commands = commands(&readme);
    let folder = tempfile::Builder::new().prefix("alea-newcomer-").tempdir()?;
    let clone = folder.path().join("alea");
    let start = Instant::now();
    process::clone_last_commit(&clone)?;
    process::output(process::cargo().args(["xtask", "--help"]).current_dir(&clone))?;
    let took = start.elapsed();
    ensure!(took < HELP_LIMIT, "cargo xtask --help took {} s", took.as_secs());
    let mut said = String::new();
    for line in commands {
        let mut shell = Command::new("sh");
        said = process::output(shell.args(["-c", line]).current_dir(&clone))?;
    }
    ensure!(said.lines().last() == Some(STATUS), "README's example ends with {said}");
    let took = start.elapsed();
    ensure!(took < LIMIT, "{} s from the clone to a program of one's own", took.as_secs());
    Ok(())
}

/// The commands of README's section "Two commands", but for the one that runs every test, as CI does.
fn commands(readme: &str) -> Vec<&str> {
    let section = readme.split("\n## ").find(|section| section.starts_with("Two commands"));
    let lines = section.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("    "));
    let typed = lines.filter(|line| line.starts_with("cargo ") || line.starts_with("mkdir "));
    typed.filter(|line| !line.starts_with("cargo xtask test")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_the_readme_are_found() {
        let readme = fs::read_to_string(paths::source("README.md")).unwrap();
        let commands = commands(&readme);
        let [first, program, last] = commands[..] else { panic!("{commands:?}") };
        assert!(first.starts_with("cargo xtask run "), "{first}");
        assert!(program.contains(&format!("return {STATUS};")), "{program}");
        assert!(last.ends_with("-- /seven; echo $?"), "{last}");
    }
}
