//! A person at the login of a machine that boots as Debian does: logs in as root, types a script, and takes the machine down.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Of root, in the units' Debian.
pub const PASSWORD: &str = "alea";

/// What ends a script that is typed.
const END: &str = "END-OF-UNIT";

/// A guest's serial line.
struct Line {
    keys: ChildStdin,
    screen: ChildStdout,
    /// All that was printed.
    seen: Vec<u8>,
    /// How much of it was waited for.
    read: usize,
}

/// Boots `init` by `command` (a `cargo xtask run` without its last options), and types `script`. The exit status, and what the
/// script printed: all of the boot, if it did not get there.
pub fn type_in(command: &mut Command, init: &str, script: &str) -> Result<(Option<i32>, String)> {
    command.args(["--init", init, "--append", "quiet"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start cargo")?;
    let keys = child.stdin.take().context("no standard input")?;
    let screen = child.stdout.take().context("no standard output")?;
    let mut line = Line { keys, screen, seen: Vec::new(), read: 0 };
    let typed = line.log_in_and_type(script);
    if typed.is_err() {
        // The machine stands at some prompt, and nobody will type any more.
        let _ = child.kill();
    }
    let status = child.wait()?.code();
    Ok(match typed {
        Ok(told) => match told.rsplit_once("=== ") {
            Some((output, "0")) => (status, output.to_owned()),
            _ => (Some(1), told),
        },
        Err(error) => {
            let all = String::from_utf8_lossy(&line.seen);
            (status.or(Some(1)), format!("{error:#} after\n{all}"))
        }
    })
}

impl Line {
    fn log_in_and_type(&mut self, script: &str) -> Result<String> {
        self.until("login: ")?;
        self.keys("root\n")?;
        self.until("Password: ")?;
        self.keys(&format!("{PASSWORD}\n"))?;
        self.until("# ")?;
        // A shell that prints nothing of its own.
        self.keys("exec sh\n")?;
        self.until("# ")?;
        self.keys("stty -echo -onlcr; PS1= PS2=; echo be''gins\n")?;
        self.until("begins\n")?;
        self.keys(&format!("sh <<'{END}' 2>&1\n{script}{END}\necho \"=== $? ===\"\n"))?;
        let told = self.until(" ===\n")?;
        self.keys("poweroff\n")?;
        self.rest()?;
        Ok(told)
    }

    fn keys(&mut self, keys: &str) -> Result<()> {
        self.keys
            .write_all(keys.as_bytes())
            .and_then(|()| self.keys.flush())
            .context("nobody types")
    }

    /// Waits for `needle`, and returns what came before it.
    fn until(&mut self, needle: &str) -> Result<String> {
        loop {
            let new = &self.seen[self.read..];
            let found = new.windows(needle.len()).position(|at| at == needle.as_bytes());
            if let Some(at) = found {
                let before = String::from_utf8_lossy(&new[..at]).into_owned();
                self.read += at + needle.len();
                return Ok(before);
            }
            if !self.more()? {
                bail!("the guest ended, and {needle:?} was not there");
            }
        }
    }

    fn rest(&mut self) -> Result<()> {
        while self.more()? {}
        Ok(())
    }

    /// Whether more has come.
    fn more(&mut self) -> Result<bool> {
        let mut piece = [0; 4096];
        let length = self.screen.read(&mut piece).context("the guest's line")?;
        self.seen.extend(&piece[..length]);
        Ok(length > 0)
    }
}
