//! Test programs of others that an init of ours runs one after the other, each behind a mark, in a machine that ends with them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// Begins a line of the init's own, and goes before the name of a test; before `end` when all have run.
pub const MARK: &str = "=-=-= ";

/// Boots `kernel` with the archive whose init runs the tests, and gives all that was printed: an error if they were not all run, or
/// if nothing was printed for as long as `silence`.
pub fn run_all(
    machine: &Machine,
    kernel: &Path,
    initrd: &Path,
    silence: Duration,
) -> Result<String> {
    println!("running on {} ...", paths::shown(kernel));
    // Linux gives up on a timer that a busy host starves.
    let line = "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check";
    let machine = machine.clone().direct(kernel, Some(initrd.to_owned()), line);
    let outcome = Guest::start(&machine)?.finish(Limits::idle(silence))?;
    if outcome.end != End::Exited(0) || !outcome.output.contains(&format!("{MARK}end")) {
        bail!("{}\n{}", outcome.describe(), outcome.stuck_at(kernel));
    }
    Ok(outcome.output.replace('\r', ""))
}
