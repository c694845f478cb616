//! Running other programs: a spinner while they work, their last words when they fail.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{paths, term};

/// Lines of a failed program's output that are worth showing.
const TAIL: usize = 60;

/// Runs `command` behind a spinner that says `what`; shows its output only if it fails.
pub fn run(what: &str, command: &mut Command) -> Result<()> {
    let spinner = term::spinner(what);
    let result = output(command);
    spinner.finish_and_clear();
    result.map(drop)
}

/// Clones the last commit of this repository into the folder `to`, which is not there yet.
pub fn clone_last_commit(to: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--local"]).arg(paths::root()).arg(to);
    run("cloning the last commit", &mut git)
}

/// Runs `command` and returns its standard output; an exit status other than 0 is an error.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let out = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
    let stdout = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&out.stderr);
    let lines: Vec<&str> = stdout.lines().chain(stderr.lines()).collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
    bail!("`{shown}` failed ({}):\n{tail}", out.status)
}

/// Runs `command` with the terminal as its own; an exit status other than 0 is an error.
pub fn passthrough(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
    if !status.success() {
        bail!("`{}` failed ({status})", show(command));
    }
    Ok(())
}

/// `command`, to be killed when the thread that starts it ends, and so with this program, whatever ends that
/// (util-linux's setpriv asks the kernel for it; where there is none, `command` as it is).
pub fn bound(command: Command) -> Command {
    if which("setpriv").is_none() {
        return command;
    }
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        bound.current_dir(folder);
    }
    bound
}

/// CPU time of all programs that were started from here and have ended, in steps of 10 ms.
pub fn children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 16 and 17, counted from the one after the name, which ends in a parenthesis.
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(13).take(2);
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The first file called `name` in `$PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The command as a person would type it.
pub fn show(command: &Command) -> String {
    line(std::iter::once(command.get_program()).chain(command.get_args()))
}

/// Words as one line for a shell.
pub fn line(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    words.into_iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The cargo that runs this program, so that `cargo +nightly xtask` stays on nightly.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::paths::root());
    cargo
}

/// A program that runs only while nothing else wants to (nice(1)), without arguments yet.
pub fn yielding(program: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(program.get_program());
    nice
}

/// git, in this repository.
pub fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(crate::paths::root());
    git
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn commands_are_shown_as_a_shell_reads_them() {
        let mut command = Command::new("qemu");
        command.args(["-append", "console=ttyS0 quiet", "it's", ""]);
        assert_eq!(show(&command), r"qemu -append 'console=ttyS0 quiet' 'it'\''s' ''");
    }

    #[test]
    fn a_failure_carries_the_output() {
        let error = output(&mut shell("echo out; echo err >&2; exit 3"));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("out") && text.contains("err") && text.contains('3'), "{text}");
    }

    #[test]
    fn a_bound_program_ends_with_the_thread_that_started_it() {
        if which("setpriv").is_none() {
            return;
        }
        let start = || {
            // Its line comes from the program itself, which so has the kernel's promise already.
            let mut command = bound(shell("echo started; exec sleep 6000"));
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut line = [0; 8];
            child.stdout.take().unwrap().read_exact(&mut line).unwrap();
            child
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_bound_program_runs_where_it_was_to() {
        let mut command = shell("pwd");
        command.current_dir("/");
        assert_eq!(output(&mut bound(command)).unwrap(), "/\n");
    }

    #[test]
    fn cpu_time_of_children_is_counted() {
        let before = children_cpu();
        output(&mut shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")).unwrap();
        assert!(children_cpu() > before);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut Command::new("/nonexistent/program")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/program"));
    }
}
