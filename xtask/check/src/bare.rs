//! The example `bare` of alea-random on four architectures: built for each, and run where QEMU has its machine.
//!
//! Each machine boots until it has served twice with a clock that runs beside it: 32 bytes, and not the same ones. (Without a
//! hardware generator it may say a few times that it has no entropy.) Then it boots once with a clock that counts instructions and no
//! hardware generator, when it must say so.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use xtask_host::{paths, process};
use xtask_setup::setup::{self, Need};

/// Where the example is built: not where the workspace is, whose crates have other flags.
const TARGET_DIR: &str = "target/crate";
const LINKER_SCRIPT: &str = "kernel/random/examples/bare/link.ld";

/// In seconds; a boot takes one or two.
const LIMIT: &str = "120";

/// Boots of which one must find entropy.
const BOOTS: u32 = 20;

struct Machine {
    target: &'static str,
    /// Where its memory begins, or the loader puts a program.
    base: &'static str,
    qemu: &'static str,
    arguments: &'static [&'static str],
    /// A CPU with a hardware generator if there is one, and one without.
    cpus: [&'static str; 2],
    /// QEMU's exit status when all went well, and when the example gave up.
    statuses: [i32; 2],
}

const SEMIHOSTING: [&str; 6] = [
    "-serial",
    "none",
    "-chardev",
    "stdio,id=out",
    "-semihosting-config",
    "enable=on,target=native,chardev=out",
];

const MACHINES: [Machine; 4] = [
    Machine {
        target: "x86_64-unknown-none",
        base: "0x100000",
        qemu: "qemu-system-x86_64",
        arguments: &["-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"],
        cpus: ["max", "qemu64"],
        statuses: [33, 35],
    },
    Machine {
        target: "aarch64-unknown-none",
        base: "0x40080000",
        qemu: "qemu-system-aarch64",
        arguments: &["-machine", "virt"],
        cpus: ["max", "cortex-a72"],
        statuses: [0, 1],
    },
    Machine {
        target: "riscv64gc-unknown-none-elf",
        base: "0x80000000",
        qemu: "qemu-system-riscv64",
        arguments: &["-machine", "virt", "-bios", "none", "-serial", "stdio"],
        cpus: ["rv64", "rv64"],
        statuses: [0, 1],
    },
    Machine {
        target: "thumbv7em-none-eabihf",
        base: "0",
        qemu: "qemu-system-arm",
        arguments: &["-machine", "mps2-an386"],
        cpus: ["cortex-m4", "cortex-m4"],
        statuses: [0, 1],
    },
];

/// Builds the example for every target, with its own draw and with that of `getrandom`; why not, where Rust's library for
/// a target cannot be had.
pub fn build() -> Result<Option<String>> {
    for machine in &MACHINES {
        if let Err(error) = setup::provide_target(machine.target) {
            return Ok(Some(format!("no {}: {error:#}", machine.target)));
        }
        for backend in [None, Some("custom")] {
            let mut cargo = machine.cargo("build", backend);
            process::run(&process::show(&cargo), &mut cargo)?;
        }
        let mut clippy = machine.cargo("clippy", Some("custom"));
        process::run(&process::show(&clippy), &mut clippy)?;
    }
    Ok(None)
}

/// Boots what [`build`] has built; why not, where a QEMU cannot be had.
pub fn run() -> Result<Option<String>> {
    if let Err(error) = setup::ensure(&[Need::QemuOthers]) {
        return Ok(Some(format!("{error:#}").lines().next().unwrap_or_default().to_owned()));
    }
    for machine in &MACHINES {
        if !machine.program().exists() {
            return Ok(Some(format!("the example is not built for {}", machine.target)));
        }
        machine.check().with_context(|| format!("the example on {}", machine.target))?;
    }
    Ok(None)
}

impl Machine {
    fn cargo(&self, what: &str, backend: Option<&str>) -> Command {
        let mut flags = format!(
            "-D warnings -C relocation-model=static -C link-arg=-T{LINKER_SCRIPT} -C link-arg=--defsym=BASE={}",
            self.base
        );
        if let Some(backend) = backend {
            flags += &format!(" --cfg getrandom_backend=\"{backend}\"");
        }
        let mut cargo = process::cargo();
        cargo.args([what, "--quiet", "--package", "alea-random", "--example", "bare"]);
        cargo.args(["--target", self.target, "--target-dir", TARGET_DIR]);
        cargo.env("RUSTFLAGS", flags);
        cargo
    }

    fn program(&self) -> PathBuf {
        paths::root().join(TARGET_DIR).join(self.target).join("debug/examples/bare")
    }

    fn check(&self) -> Result<()> {
        let [first, second] = [self.serve()?, self.serve()?];
        ensure!(first != second, "two boots printed the same bytes: {first}");
        let (status, printed) = self.boot(true)?;
        ensure!(self.refused(status, &printed), "without noise: {status:?}, printed `{printed}`");
        Ok(())
    }

    /// What the machine prints that has entropy. How much the time varies that a clock of some MHz measures is the host's affair:
    /// where nothing else is a source, it may refuse a few times before.
    fn serve(&self) -> Result<String> {
        let [with_generator, without] = self.cpus;
        let boots = if with_generator == without { BOOTS } else { 1 };
        for _ in 0..boots {
            let (status, printed) = self.boot(false)?;
            if self.served(status, &printed) {
                return Ok(printed);
            }
            let refused = boots > 1 && self.refused(status, &printed);
            ensure!(refused, "status {status:?}, printed `{printed}`");
        }
        bail!("it found no entropy in {boots} boots");
    }

    fn served(&self, status: Option<i32>, printed: &str) -> bool {
        let bytes = printed.strip_prefix("random: ").unwrap_or_default();
        status == Some(self.statuses[0])
            && bytes.len() == 64
            && bytes.bytes().all(|b| b.is_ascii_hexdigit())
    }

    fn refused(&self, status: Option<i32>, printed: &str) -> bool {
        status == Some(self.statuses[1]) && printed == "this machine has no source of entropy"
    }

    /// QEMU's exit status and what the machine printed.
    fn boot(&self, noiseless: bool) -> Result<(Option<i32>, String)> {
        let [noisy_cpu, plain_cpu] = self.cpus;
        let mut qemu = Command::new("timeout");
        qemu.args([LIMIT, self.qemu, "-display", "none", "-monitor", "none", "-no-reboot"]);
        qemu.args(self.arguments);
        if !self.arguments.contains(&"stdio") {
            qemu.args(SEMIHOSTING);
        }
        if noiseless {
            qemu.args(["-icount", "shift=0", "-cpu", plain_cpu]);
        } else {
            qemu.args(["-cpu", noisy_cpu]);
        }
        qemu.arg("-kernel").arg(self.program());
        let out = qemu.stdin(Stdio::null()).output().context("cannot start timeout")?;
        if !out.stderr.is_empty() {
            bail!("{}", String::from_utf8_lossy(&out.stderr));
        }
        Ok((out.status.code(), String::from_utf8_lossy(&out.stdout).trim_end().to_owned()))
    }
}
