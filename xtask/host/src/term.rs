//! The user's terminal: raw mode for the guest's console, spinners and bars for long work.
//!
//! Raw mode is a guard: it must be dropped before the process exits, or the shell is left raw.

use std::io::{IsTerminal, stderr, stdin, stdout};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// True when a person sits at standard input and standard output.
pub fn interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// A spinner on standard error; when that is no terminal, one plain line instead.
pub fn spinner(message: &str) -> ProgressBar {
    if !stderr().is_terminal() {
        eprintln!("{message} ...");
    }
    let spinner = ProgressBar::new_spinner().with_message(message.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// A spinner for what is mostly done at once: nothing is printed when standard error is no terminal.
pub fn silent_spinner(message: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(300));
    spinner
}

/// A bar of `steps` steps on standard error; invisible when that is no terminal.
pub fn bar(steps: u64, message: &str) -> ProgressBar {
    let bar = ProgressBar::new(steps).with_message(message.to_owned());
    let template = "{bar:30} {pos}/{len} {msg} ({elapsed})";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A bar of so many bytes on standard error; when that is no terminal, one plain line instead.
pub fn bytes_bar(bytes: u64, message: &str) -> ProgressBar {
    if !stderr().is_terminal() {
        eprintln!("{message} ({} MiB) ...", bytes >> 20);
    }
    let bar = ProgressBar::new(bytes).with_message(message.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Columns and rows of the terminal, when it knows them.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// While this lives, every key goes to the program: Ctrl-C, Ctrl-Z and Ctrl-D are bytes.
pub struct RawMode {
    saved: Termios,
}

impl RawMode {
    /// Makes standard input raw.
    pub fn enter() -> Result<Self> {
        let saved = tcgetattr(stdin()).context("cannot read the terminal's settings")?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).context("cannot make the terminal raw")?;
        Ok(Self { saved })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Nothing better can be done about a terminal that has gone away.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.saved);
    }
}
