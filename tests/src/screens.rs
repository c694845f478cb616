//! Sessions whose screens are known: keys are typed, and after each step the whole screen must be
//! what Linux showed, which stands in `tests/screens/NAME.txt`.
//!
//! It owns the format of those files and the comparison. It must never type the keys of a step
//! before the screen of the one before is complete: that is what makes a session repeat.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use xtask_host::paths;

use crate::{PROMPT, Shell, Terminal};

/// What the Enter key sends.
const ENTER: &str = "\r";

/// A session with one program.
pub struct Chapter {
    pub name: &'static str,
    /// What to compare of a screen that changes by itself; `None` compares all and the cursor.
    pub mask: Option<fn(&Terminal) -> Vec<String>>,
    /// The name of each step, and its keys; `\n` is the Enter key.
    pub steps: &'static [(&'static str, &'static str)],
}

/// A screen as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    /// Where the cursor is, and whether a program has asked for that since the last key.
    cursor: String,
    rows: Vec<String>,
}

impl Shown {
    fn of(terminal: &Terminal, chapter: &Chapter) -> Self {
        let asked = if terminal.asked_here() { ", asked for" } else { "" };
        let (row, column) = terminal.cursor();
        let (mut rows, cursor) = match chapter.mask {
            Some(mask) => (mask(terminal), format!(" (cursor somewhere{asked})")),
            None => (terminal.rows(), format!(" (cursor {row}:{column}{asked})")),
        };
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        Self { cursor, rows }
    }

    fn text(&self, step: &str) -> String {
        let mut text = format!("=== {step}{}\n", self.cursor);
        for row in &self.rows {
            let _ = writeln!(text, "|{row}");
        }
        text
    }

    /// Both screens beside each other's lines, for a person.
    fn difference(&self, other: &Self, step: &str) -> String {
        let (want, got) = (self.text(step), other.text(step));
        let lines: Vec<&str> = want.lines().collect();
        let mut text = String::new();
        for (at, line) in got.lines().enumerate() {
            match lines.get(at) {
                Some(same) if *same == line => drop(writeln!(text, "  {line}")),
                Some(other) => drop(writeln!(text, "- {other}\n+ {line}")),
                None => drop(writeln!(text, "+ {line}")),
            }
        }
        for line in lines.iter().skip(got.lines().count()) {
            let _ = writeln!(text, "- {line}");
        }
        text
    }
}

impl Chapter {
    fn file(&self) -> PathBuf {
        paths::source(&format!("tests/screens/{}.txt", self.name))
    }

    /// The screens that Linux showed, by step.
    fn expected(&self) -> Result<VecDeque<(String, Shown)>> {
        let file = self.file();
        let text = std::fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
        let mut screens: VecDeque<(String, Shown)> = VecDeque::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("=== ") {
                let at = head.find(" (cursor ").unwrap_or(head.len());
                let (step, cursor) = head.split_at(at);
                let shown = Shown { cursor: cursor.to_owned(), rows: Vec::new() };
                screens.push_back((step.to_owned(), shown));
            } else if let (Some(row), Some((_, shown))) =
                (line.strip_prefix('|'), screens.back_mut())
            {
                shown.rows.push(row.to_owned());
            } else {
                bail!("{}: not understood: {line:?}", paths::shown(&file));
            }
        }
        Ok(screens)
    }

    /// A shell and a folder as new, the screen empty.
    fn begin(shell: &mut Shell) -> Result<()> {
        shell.run(&format!(
            "cd /; rm -rf /tmp/s; mkdir /tmp/s; cd /tmp/s; \
             exec env -i HOME=/tmp/s PATH=$PATH TERM=linux PS1='{PROMPT}' sh"
        ))?;
        shell.resize(16, 72)?;
        shell.run("clear").map(drop)
    }

    /// Plays the session; the first screen that never comes is an error.
    pub fn play(&self, shell: &mut Shell) -> Result<()> {
        let mut expected = self.expected()?;
        Self::begin(shell)?;
        for (step, keys) in self.steps {
            let (name, want) = expected.pop_front().context("tests/screens knows fewer steps")?;
            ensure!(name == *step, "the step {step:?} is {name:?} in tests/screens");
            shell.keys(&keys.replace('\n', ENTER))?;
            let came = shell.wait_until(&format!("the screen of {step:?}"), |terminal| {
                Shown::of(terminal, self) == want
            });
            if let Err(error) = came {
                let got = Shown::of(shell.terminal(), self);
                bail!("{}\n{error:#}", want.difference(&got, step));
            }
        }
        ensure!(expected.is_empty(), "tests/screens knows more steps");
        Ok(())
    }

    /// Plays the session and writes down what the screen shows when it has been at rest for long.
    pub fn record(&self, shell: &mut Shell) -> Result<()> {
        let mut text = String::new();
        Self::begin(shell)?;
        for (step, keys) in self.steps {
            shell.keys(&keys.replace('\n', ENTER))?;
            shell.watch(std::time::Duration::from_secs(4))?;
            text.push_str(&Shown::of(shell.terminal(), self).text(step));
        }
        let file = self.file();
        std::fs::write(&file, text).with_context(|| paths::shown(&file))
    }
}
