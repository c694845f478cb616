//! The commands of `cargo xtask` for all checks in one. `xtask/src/lib.rs` lists all.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::ci;

#[derive(Subcommand)]
pub enum Command {
    /// Run all checks: format, clippy, tidy, test, busybox
    Ci(ci::Ci),
}

impl Command {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Ci(c) => c.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;
    use xtask::{COMMANDS, Command};

    /// The command line of one program.
    fn program<C: Subcommand>() -> clap::Command {
        C::augment_subcommands(clap::Command::new("cargo xtask"))
    }

    fn programs() -> [(&'static str, clap::Command); 8] {
        [
            ("xtask-setup", program::<xtask_setup::commands::Command>()),
            ("xtask-check", program::<xtask_check::commands::Command>()),
            ("xtask-suites", program::<xtask_suites::commands::Command>()),
            ("xtask-bench", program::<xtask_bench::commands::Command>()),
            ("xtask-shards", program::<xtask_shards::commands::Command>()),
            ("xtask-dist", program::<xtask_dist::commands::Command>()),
            ("xtask-tidy", program::<xtask_tidy::commands::Command>()),
            ("xtask-ci", program::<super::Command>()),
        ]
    }

    /// Names of a program's commands, and what they do.
    fn taken(program: &clap::Command) -> Vec<(String, String)> {
        let told = |command: &clap::Command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            (command.get_name().to_owned(), about)
        };
        program.get_subcommands().map(told).collect()
    }

    #[test]
    fn the_command_line_lists_what_the_programs_take() {
        let mut all = 0;
        for (program, taken) in programs().map(|(name, program)| (name, taken(&program))) {
            let listed = COMMANDS.iter().filter(|Command(_, of, _)| *of == program);
            let listed: Vec<(String, String)> = listed
                .map(|Command(name, _, about)| (name.to_string(), about.to_string()))
                .collect();
            assert_eq!(taken, listed, "{program}");
            all += taken.len();
        }
        assert_eq!(all, COMMANDS.len(), "a command of another program");
    }

    const PAGE: &str = include_str!("../../../docs/scale.md");
    const JOB: &str = include_str!("../../../docs/scale/job.yaml");
    const ACTIONS: &str = include_str!("../../../docs/scale/actions.yml");

    /// The words behind `cargo xtask`, as whoever has the command takes them.
    fn assert_taken(line: &str) {
        let words = shlex::split(line).unwrap_or_default();
        let has = |program: &clap::Command| {
            words.first().is_some_and(|name| program.find_subcommand(name).is_some())
        };
        let found = programs().into_iter().find(|(_, program)| has(program));
        let (_, program) = found.unwrap_or_else(|| panic!("nobody has `{line}`"));
        let line = ["cargo xtask".to_owned()].into_iter().chain(words);
        program.try_get_matches_from(line).unwrap_or_else(|error| panic!("{error}"));
    }

    /// What the recipes for many machines run are commands with options that there are.
    #[test]
    fn what_many_machines_run_is_taken() {
        let mut seen = 0;
        for line in PAGE.lines().filter(|line| line.starts_with("    ")) {
            let Some((_, words)) = line.split_once("cargo xtask ") else { continue };
            assert_taken(&words.replace("{}", "1"));
            seen += 1;
        }
        let cells = PAGE.lines().filter_map(|line| line.strip_prefix("| `cargo xtask "));
        for words in cells.filter_map(|rest| rest.split_once('`').map(|(words, _)| words)) {
            let mut known = words.replace("K/N", "1/4").replace("K/4", "1/4");
            for letter in [" S ", " M "] {
                known = known.replace(letter, " 7 ");
            }
            assert_taken(&known);
            seen += 1;
        }
        for line in ACTIONS.lines().filter_map(|line| line.split_once("command: ")) {
            let words = line.1.trim_end_matches('}');
            assert_taken(&format!("{words} --shard 4/4 --results results"));
            seen += 1;
        }
        let command = value(JOB, "COMMAND");
        assert_taken(&format!("{command} --shard 16/16 --results /results"));
        assert!(seen >= 12, "only {seen} lines were found");
    }

    /// What stands behind `value:` below a name.
    fn value<'a>(text: &'a str, name: &str) -> &'a str {
        let (_, after) = text.split_once(&format!("- name: {name}\n")).expect(name);
        let line = after.lines().next().unwrap_or_default();
        line.trim().strip_prefix("value: ").expect(name).trim_matches('"')
    }

    #[test]
    fn the_job_has_as_many_parts_as_it_says() {
        let number = |key: &str| {
            let line = JOB.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
            line.trim().to_owned()
        };
        let shards = value(JOB, "SHARDS");
        assert_eq!([number("completions:"), number("maxFailedIndexes:")], [shards, shards]);
    }
}
