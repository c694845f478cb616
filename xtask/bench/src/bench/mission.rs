//! The comparison that the project exists for: an exec, a fork, a shell and a draw beside Linux's, under each generator.

use anyhow::{Context, Result, ensure};

use super::bench::{Bench, Kernel};
use crate::profile::Generator;
use xtask_guest::qemu::{Accel, MachineArgs};
use xtask_host::paths;
use xtask_setup::build;

const NAMES: [&str; 4] = ["exec_true", "fork_exit", "shell_noop", "getrandom_16"];

/// Boots whose medians are compared: of times, and of instructions where one boot missed a goal, since the addresses that a boot
/// draws decide how many page tables a process has.
const BOOTS: u32 = 5;

/// One benchmark under one generator.
#[derive(Debug)]
pub struct Ratio {
    pub name: &'static str,
    pub generator: &'static str,
    /// `instructions` or `ns`.
    pub unit: &'static str,
    pub linux: f64,
    pub alea: f64,
    /// The part of Linux's figure that the design allows.
    pub goal: f64,
}

impl Ratio {
    /// Alea's part of Linux's figure.
    pub fn ratio(&self) -> f64 {
        self.alea / self.linux
    }
}

/// Boots Linux and Alea in turn for each generator: on a KVM that works five times each, and compares times; elsewhere once, and compares
/// instructions. Linux and the programs are there; Alea is the kernel that is shipped.
pub fn mission() -> Result<Vec<Ratio>> {
    build::shipped_kernel()?;
    let has_kvm = MachineArgs::default().machine()?.accel == Accel::Kvm;
    let args = MachineArgs { icount: !has_kvm, ..MachineArgs::default() };
    let mut all = Vec::new();
    for generator in [Generator::Chacha20, Generator::Splitmix64, Generator::Rdrand] {
        let once = if has_kvm { Vec::new() } else { ratios(generator, 1, &args)? };
        let enough = !once.is_empty() && once.iter().all(|one| one.ratio() <= one.goal);
        all.extend(if enough { once } else { ratios(generator, BOOTS, &args)? });
    }
    Ok(all)
}

/// Boots both kernels so often under one generator.
fn ratios(generator: Generator, boots: u32, args: &MachineArgs) -> Result<Vec<Ratio>> {
    let bench = Bench {
        only: None,
        alea: Some(paths::shipped_kernel()),
        alea_append: Some(format!("random.generator={}", generator.name())),
        ..Bench::instructions_of(Kernel::Alea, &NAMES.join(","), boots, args)
    };
    let both = bench.measure(&args.machine()?)?;
    for (kernel, figures) in [Kernel::Linux, Kernel::Alea].into_iter().zip(&both) {
        ensure!(figures.failures.is_empty(), "{}: {:?}", kernel.name(), figures.failures);
    }
    let ratio = |name| {
        let median = |kernel: Kernel| {
            let samples = both[kernel as usize].samples.get(name);
            let median = samples.and_then(|samples| samples.median());
            median.with_context(|| format!("{} did not measure {name}", kernel.name()))
        };
        Ok(Ratio {
            name,
            generator: generator.name(),
            unit: bench.unit(name),
            linux: median(Kernel::Linux)?,
            alea: median(Kernel::Alea)?,
            goal: bench.goal(name).with_context(|| format!("{name} has no goal"))?,
        })
    };
    NAMES.into_iter().map(ratio).collect()
}
