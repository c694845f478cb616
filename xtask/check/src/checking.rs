//! The part of `ci` that boots the checking kernel: lock order, what may block, who owns a frame.
//!
//! All ABI programs, a little soak, a little fuzz and some kinds of exhaustion, on two CPUs. The kernel has its own file, so that what comes after
//! still finds the ordinary one.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::{abi, exhaust, fuzz, soak};
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::Machine;
use xtask_host::paths;
use xtask_host::tally::Tally;
use xtask_setup::build;

/// As many as CI's machine has.
const CPUS: u32 = 2;
const SOAK: Duration = Duration::from_secs(20);
/// Seeds and rounds of the fuzzer: other seeds than `tests/tests/fuzz.rs` has.
const SEEDS: [u64; 2] = [11, 12];
const ROUNDS: u32 = 20;
/// What once hung, panicked or leaked when memory ran out: ports made under the lock that their end takes, targets of links and
/// timers that took the kernel's last memory, sockets in circles; and all kinds at once.
const EXHAUST: &str =
    "exhaust.only=tcp_connects,tcp_data,symlinks,posix_timers,sent_in_circles,all exhaust.ms=1500";
/// Rules that `alea.crash=` breaks, and what the panic says.
const BROKEN_RULES: [(&str, &str); 8] = [
    ("lock-order", "lock order: MountTable taken while Leaf is held"),
    ("block-locked", "blocking while the spinlock Leaf is held"),
    ("block-pinned", "blocking while per-CPU data is in use"),
    ("file-locked", "blocking while the spinlock Leaf is held"),
    ("freed-twice", "freed twice"),
    ("freed-foreign", "a page table freed as data"),
    ("freed-write", "was written to after it was given back"),
    ("sysret", "a system call that changed rip or flags leaves by SYSRET"),
];
/// How long a kernel without an initramfs may say nothing.
const BOOT: Duration = Duration::from_secs(60);

/// Runs it all; each ABI program counts as one, and so do the soak and each seed.
pub fn check(gate: &mut dyn FnMut(&mut Tally, &str, Result<()>), tally: &mut Tally) {
    if let Err(error) = build::checking_kernel() {
        return gate(tally, "checking kernel", Err(error));
    }
    let kernel = paths::checking_kernel();
    let machine = Machine::new(&kernel).smp(CPUS);
    match abi::verdicts(&machine, &kernel) {
        Ok(verdicts) => {
            for (name, verdict) in verdicts {
                let verdict = verdict.map_err(anyhow::Error::msg);
                gate(tally, &format!("checking kernel, {name}"), verdict);
            }
        }
        Err(error) => gate(tally, "checking kernel, ABI programs", Err(error)),
    }
    for (kind, says) in BROKEN_RULES {
        gate(tally, &format!("checking kernel, alea.crash={kind}"), notices(&machine, kind, says));
    }
    gate(tally, "checking kernel, soak", soak(&machine));
    gate(tally, "checking kernel, exhaustion", exhaustion(&machine));
    for seed in SEEDS {
        gate(tally, &format!("checking kernel, fuzz seed {seed}"), fuzz(&machine, seed));
    }
}

/// Boots a kernel that breaks a rule on purpose: the checks must notice.
fn notices(machine: &Machine, kind: &str, says: &str) -> Result<()> {
    let line = format!("console=ttyS0 panic=-1 alea.crash={kind}");
    let machine = machine.clone().direct(paths::checking_kernel(), None, &line);
    let outcome = Guest::start(&machine)?.finish(Limits::idle(BOOT))?;
    if outcome.end != End::Panicked || !outcome.output.contains(says) {
        bail!("nobody said `{says}`\n{}", outcome.describe());
    }
    Ok(())
}

fn soak(machine: &Machine) -> Result<()> {
    let outcome = soak::run(&soak::boots(machine.clone(), &paths::checking_kernel(), SOAK))?;
    if !soak::is_good(&outcome) {
        bail!("{}", outcome.describe());
    }
    Ok(())
}

fn exhaustion(machine: &Machine) -> Result<()> {
    let machine =
        exhaust::boots(machine.clone().memory("128M"), &paths::checking_kernel(), EXHAUST);
    let outcome = exhaust::run(&machine)?;
    match exhaust::trouble(&outcome) {
        Some(trouble) => bail!("{trouble}\n{}", outcome.describe()),
        None => Ok(()),
    }
}

fn fuzz(machine: &Machine, seed: u64) -> Result<()> {
    let words = format!("fuzz.seed={seed} fuzz.rounds={ROUNDS} fuzz.seconds=100000");
    let outcome = fuzz::attack(machine, &paths::checking_kernel(), &words)?;
    match fuzz::trouble(&outcome) {
        Some(trouble) => bail!("{trouble}\n{}", outcome.describe()),
        None => Ok(()),
    }
}
