//! Shared parts of the integration tests: booting QEMU, typing at the guest's shell.
//!
//! The artefacts under `target/alea` must have been built (`cargo xtask test` does it); a test never
//! builds anything itself. At most as many guests run at once as the machine has CPUs.
#![forbid(unsafe_code)]

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use xtask::guest::{End, Guest, Limits, Outcome};
use xtask::paths;
use xtask::qemu::Machine;

/// What the shell of `userland/root/etc/profile` prints when it waits.
pub const PROMPT: &str = "root@alea:~# ";

/// Enough for any single step under TCG on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Alea on the default machine, with the initramfs that has the ABI programs too.
pub fn alea() -> Machine {
    let files = [paths::kernel(), paths::tests_initramfs()];
    paths::require(&files).unwrap_or_else(|error| panic!("{error:#}"));
    Machine::new(paths::kernel()).initrd(paths::tests_initramfs())
}

/// Boots until the guest ends by itself; silence or ten minutes is an end too.
pub fn boot(machine: &Machine) -> Result<Outcome> {
    let _turn = Turn::take();
    let limits = Limits { total: Some(10 * PATIENCE), idle: Some(PATIENCE) };
    Guest::start(machine)?.finish(limits)
}

/// A guest with a shell at its serial line.
pub struct Shell {
    guest: Guest,
    _turn: Turn,
}

impl Shell {
    /// Boots `machine` (whose command line starts BusyBox init) and waits for the prompt.
    pub fn start(machine: &Machine) -> Result<Self> {
        let turn = Turn::take();
        let mut guest = Guest::start(machine)?;
        guest.wait_for(PROMPT, PATIENCE).context("booting to the shell")?;
        Ok(Self { guest, _turn: turn })
    }

    /// Types a line and returns what was printed until the next prompt, the line's echo first.
    pub fn run(&mut self, line: &str) -> Result<String> {
        let before = self.guest.output().len();
        self.keys(&format!("{line}\n"))?;
        self.wait_for(PROMPT).with_context(|| format!("after {line:?}"))?;
        let output = self.guest.output();
        Ok(output.get(before..).unwrap_or_default().to_owned())
    }

    /// The exit status of the last command.
    pub fn status(&mut self) -> Result<String> {
        let text = self.run("echo \"status=$?.\"")?;
        let status = text.rsplit("status=").next().and_then(|rest| rest.split('.').next());
        Ok(status.unwrap_or_default().to_owned())
    }

    /// Types keys, exactly.
    pub fn keys(&mut self, keys: &str) -> Result<()> {
        self.guest.send(keys)
    }

    /// Waits for text after what was seen last; `\n` stands for the terminal's line end.
    pub fn wait_for(&mut self, text: &str) -> Result<()> {
        self.guest.wait_for(&text.replace('\n', "\r\n"), PATIENCE).map(drop)
    }

    /// Powers off and returns how QEMU ended.
    pub fn power_off(mut self) -> Result<End> {
        self.keys("poweroff -f\n")?;
        Ok(self.guest.finish(Limits::total(Duration::from_secs(600)))?.end)
    }
}

/// The right to run a guest: dropped, it lets the next one start.
struct Turn;

static RUNNING: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Turn {
    fn take() -> Self {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = FREED
            .wait_while(running, |running| *running >= most)
            .unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}
