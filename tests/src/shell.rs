//! A person at the guest's shell: types keys, and waits for what the screen shows.
//!
//! It owns the guest and the terminal. It must never wait for a while and hope: each step ends when
//! the screen shows that it has, or fails after [`PATIENCE`] with a picture of the screen.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::Machine;

use crate::terminal::Terminal;
use crate::{PATIENCE, PROMPT, Turn};

/// `ready NAME` prints `NAME is ready` as soon as a program of that name sleeps in the terminal's
/// foreground. Typed keys reach it then, and neither the shell nor a program that is not there yet.
/// Its shell is an orphan, no job, and so nothing else changes.
const READY: &str = "ready() { ( ( until for stat in /proc/[0-9]*/stat; do \
    read pid comm state parent group session tty front rest < $stat && \
    [ \"$comm $state $group\" = \"($1) S $front\" ] && break; done; do sleep 0.1; done; \
    echo \"$1 is ready\" ) 2>/dev/null & ) }";

/// A guest with a shell at its serial line.
pub struct Shell {
    guest: Guest,
    terminal: Terminal,
    /// How much of the output the terminal has shown.
    shown: usize,
    _turn: Turn,
}

impl Shell {
    /// Boots `machine` (whose command line starts BusyBox init) and waits for the prompt.
    pub fn start(machine: &Machine) -> Result<Self> {
        let turn = Turn::take();
        let guest = Guest::start(machine)?;
        let mut shell = Self { guest, terminal: Terminal::new(24, 80), shown: 0, _turn: turn };
        shell.wait_for_prompt().context("booting to the shell")?;
        shell.run(READY)?;
        Ok(shell)
    }

    /// Makes the screen another size, and tells the guest.
    pub fn resize(&mut self, rows: u16, columns: u16) -> Result<()> {
        self.run(&format!("stty rows {rows} columns {columns}"))?;
        self.terminal.resize(rows, columns);
        Ok(())
    }

    /// Types a line and returns what was printed until the next prompt, the line's echo first.
    pub fn run(&mut self, line: &str) -> Result<String> {
        let before = self.guest.output().len();
        self.keys(&format!("{line}\n"))?;
        self.wait_for_prompt().with_context(|| format!("after {line:?}"))?;
        let output = self.guest.output();
        Ok(output.get(before..).unwrap_or_default().to_owned())
    }

    /// Types a line that starts the full-screen program or the foreground job `name`, and waits
    /// until that sleeps, as what waits for a key does.
    pub fn start_program(&mut self, line: &str, name: &str) -> Result<()> {
        self.wipe();
        self.keys(&format!("ready {name}; {line}\n"))?;
        let ready = format!("{name} is ready");
        self.wait_until(&ready, |terminal| terminal.last_line().as_ref() == Some(&ready))
    }

    /// The exit status of the last command.
    pub fn status(&mut self) -> Result<String> {
        let text = self.run("echo \"status=$?.\"")?;
        let status = text.rsplit("status=").next().and_then(|rest| rest.split('.').next());
        Ok(status.unwrap_or_default().to_owned())
    }

    /// Types keys, exactly.
    pub fn keys(&mut self, keys: &str) -> Result<()> {
        self.terminal.forget_question();
        self.guest.send(keys)
    }

    /// Waits until the screen fulfils a condition, which `what` describes.
    pub fn wait_until(
        &mut self,
        what: &str,
        mut condition: impl FnMut(&Terminal) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !condition(&self.terminal) {
            self.show(deadline).with_context(|| {
                format!("waiting for: {what}; the screen:\n{}", self.terminal.picture())
            })?;
        }
        Ok(())
    }

    /// Watches the screen for a while: only to find out what a program does, never to test it.
    pub fn watch(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if let Err(error) = self.show(until)
                && Instant::now() < until
            {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Shows what the guest prints next, and answers its questions.
    fn show(&mut self, deadline: Instant) -> Result<()> {
        let new = self.guest.more_output(self.shown, deadline)?;
        self.shown += new.len();
        let answer = self.terminal.print(&new);
        if answer.is_empty() { Ok(()) } else { self.guest.send(answer) }
    }

    /// Waits until the shell is ready for a line: the cursor is behind its prompt, and its editor
    /// has asked the terminal where that is.
    pub fn wait_for_prompt(&mut self) -> Result<()> {
        self.wait_until("the prompt", |terminal| {
            terminal.asked_here() && terminal.before_cursor().ends_with(PROMPT)
        })
    }

    /// Wipes the screen, so that what is waited for next was drawn anew.
    pub fn wipe(&mut self) {
        self.terminal.wipe();
    }

    /// What the terminal shows.
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// Powers off and returns how QEMU ended.
    pub fn power_off(mut self) -> Result<End> {
        self.keys("poweroff -f\n")?;
        Ok(self.guest.finish(Limits::total(10 * PATIENCE))?.end)
    }
}
