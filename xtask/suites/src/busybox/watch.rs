//! One run of a guest, watched: the serial line becomes a transcript, and the bar moves.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;

use super::Plan;
use super::transcript::{Kind, Transcript};
use xtask_guest::guest::{Guest, Limits, Outcome};
use xtask_host::{process, term};

/// How much longer than one test's limit a guest may be silent: the runner's killing, widened step by
/// step, comes before.
const SILENCE: Duration = Duration::from_secs(600);

/// Without a terminal, a line after this many tests.
const STEP: usize = 100;

/// What came of one boot.
pub struct Run {
    pub transcript: Transcript,
    pub outcome: Outcome,
    /// CPU time of QEMU: unlike wall time it hardly depends on what else the machine does.
    pub cpu: Duration,
}

impl Run {
    /// Boots `kernel` and follows it to its end; `tests` are expected in each pass.
    pub fn of(plan: &Plan, kernel: &Path, tests: usize) -> Result<Self> {
        let shared = Arc::new(Mutex::new(Transcript::default()));
        let bar = term::bar(tests as u64 * u64::from(plan.passes), "booting");
        let listener = Listener {
            shared: shared.clone(),
            bar: bar.clone(),
            line: Vec::new(),
            verbose: plan.verbose,
            done: 0,
            failed: 0,
        };
        let before = process::children_cpu();
        let guest = Guest::start_echoing(&plan.machine(kernel), listener)?;
        let idle = Duration::from_secs(plan.limit) + SILENCE;
        let outcome = guest.finish(Limits::idle(idle))?;
        bar.finish_and_clear();
        let transcript = lock(&shared).clone();
        let cpu = process::children_cpu().saturating_sub(before);
        Ok(Self { transcript, outcome, cpu })
    }
}

/// A panic elsewhere leaves the transcript whole: lines are taken one at a time.
fn lock(shared: &Mutex<Transcript>) -> MutexGuard<'_, Transcript> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the serial line goes.
struct Listener {
    shared: Arc<Mutex<Transcript>>,
    bar: ProgressBar,
    /// The line so far.
    line: Vec<u8>,
    verbose: bool,
    done: usize,
    failed: usize,
}

impl Listener {
    fn take_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim_end_matches('\r').to_owned();
        self.line.clear();
        lock(&self.shared).line(&line, Instant::now());
        let Some(rest) = line.strip_prefix("suite-") else { return };
        if let Some((kind, name)) = rest.strip_prefix("result ").and_then(|r| r.split_once(": ")) {
            self.done += 1;
            self.failed += usize::from(kind == Kind::Fail.word());
            self.show(kind, name);
        } else if let Some(hung) = rest.strip_prefix("hung ") {
            let what = "no result for so many seconds, killed";
            self.bar.suspend(|| println!("HUNG    {what}: {hung}"));
        } else if self.verbose {
            self.bar.suspend(|| println!("{}", rest.strip_prefix("detail ").unwrap_or(rest)));
        }
    }

    fn show(&self, kind: &str, name: &str) {
        self.bar.inc(1);
        self.bar.set_message(format!("{} failed, {name}", self.failed));
        if self.verbose {
            self.bar.suspend(|| println!("{kind}: {name}"));
        } else if !std::io::stderr().is_terminal() && self.done.is_multiple_of(STEP) {
            eprintln!("{} tests done, {} failed", self.done, self.failed);
        }
    }
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for &byte in bytes {
            if byte == b'\n' {
                self.take_line();
            } else {
                self.line.push(byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
