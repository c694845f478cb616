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

    /// Names of a program's commands, and what they do.
    fn taken<C: Subcommand>() -> Vec<(String, String)> {
        let program = C::augment_subcommands(clap::Command::new("cargo xtask"));
        let told = |command: &clap::Command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            (command.get_name().to_owned(), about)
        };
        program.get_subcommands().map(told).collect()
    }

    #[test]
    fn the_command_line_lists_what_the_programs_take() {
        let programs = [
            ("xtask-setup", taken::<xtask_setup::commands::Command>()),
            ("xtask-check", taken::<xtask_check::commands::Command>()),
            ("xtask-suites", taken::<xtask_suites::commands::Command>()),
            ("xtask-bench", taken::<xtask_bench::commands::Command>()),
            ("xtask-shards", taken::<xtask_shards::commands::Command>()),
            ("xtask-dist", taken::<xtask_dist::commands::Command>()),
            ("xtask-tidy", taken::<xtask_tidy::commands::Command>()),
            ("xtask-ci", taken::<super::Command>()),
        ];
        for (program, taken) in &programs {
            let listed = COMMANDS.iter().filter(|Command(_, of, _)| of == program);
            let listed: Vec<(String, String)> = listed
                .map(|Command(name, _, about)| (name.to_string(), about.to_string()))
                .collect();
            assert_eq!(*taken, listed, "{program}");
        }
        let all: usize = programs.iter().map(|(_, taken)| taken.len()).sum();
        assert_eq!(all, COMMANDS.len(), "a command of another program");
    }
}
