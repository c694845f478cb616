//! Shared parts of the integration tests: booting QEMU, typing at the guest's shell.
//!
//! The artefacts under `target/alea` must have been built (`cargo xtask test` does it); a test never
//! builds anything itself. At most as many guests run at once as the machine has CPUs.
#![forbid(unsafe_code)]

pub mod screens;
mod shell;
mod terminal;
pub mod timing;

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use xtask_check::abi;
use xtask_guest::guest::{Guest, Limits, Outcome};
use xtask_guest::qemu::Machine;
use xtask_host::paths;

pub use shell::Shell;
pub use terminal::Terminal;

/// What the shell of `userland/root/etc/profile` prints when it waits.
pub const PROMPT: &str = "root@alea:~# ";

/// Far more than any single step takes under TCG on a busy machine: only a hang takes as long.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Alea on the default machine, with the initramfs that has all programs but those of `tests/abi`.
pub fn alea() -> Machine {
    alea_with(paths::programs_initramfs())
}

/// Alea with the ABI programs too, and with as much memory as they need.
pub fn alea_with_abi_programs() -> Machine {
    alea_with(paths::tests_initramfs()).memory(abi::MEMORY)
}

fn alea_with(initramfs: PathBuf) -> Machine {
    let files = [paths::kernel(), initramfs.clone()];
    paths::require(&files).unwrap_or_else(|error| panic!("{error:#}"));
    Machine::new(paths::kernel()).initrd(initramfs)
}

/// Boots until the guest ends by itself; silence or forty minutes are an end too.
pub fn boot(machine: &Machine) -> Result<Outcome> {
    let limits = Limits { total: Some(10 * PATIENCE), idle: Some(PATIENCE) };
    in_turn(|| Guest::start(machine)?.finish(limits))
}

/// Runs what starts a guest of its own when it is its turn.
pub fn in_turn<T>(run: impl FnOnce() -> T) -> T {
    let _turn = Turn::take();
    run()
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
