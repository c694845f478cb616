//! `cargo xtask debug`: a machine that stands at its first instruction, and gdb, with the kernel's types and variables and the commands of
//! `kernel/gdb.py`.
//!
//! gdb takes this program's place, so that Ctrl-C is its own; QEMU is in a process group of its own and ends with gdb.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// How long QEMU may take until it listens.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a machine that stands at its first instruction, and gdb: alea-ps, alea-bt and alea-log are its commands.
#[derive(Args)]
pub struct Debug {
    /// The initramfs; default: the one that `build` makes
    #[arg(long, value_name = "PATH")]
    initrd: Option<PathBuf>,
    /// The kernel command line, exactly
    #[arg(long, value_name = "LINE", default_value = "console=ttyS0", allow_hyphen_values = true)]
    append: String,
    /// A command of gdb's for the beginning; may be given several times
    #[arg(long = "ex", value_name = "COMMAND")]
    commands: Vec<String>,
    /// End after those commands
    #[arg(long)]
    batch: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

impl Debug {
    pub fn run(self) -> Result<ExitCode> {
        prepare()?;
        if self.initrd.is_none() {
            build::initramfs()?;
        }
        let initrd = self.initrd.unwrap_or_else(paths::initramfs);
        ensure!(initrd.is_file(), "{} is no file", initrd.display());
        let machine = self.machine.machine()?;
        let machine = machine.direct(paths::debugger_kernel(), Some(initrd), &self.append);
        let socket = paths::alea().join("debug.sock");
        let log = paths::alea().join("debug.log");
        let standing = Standing::start(&machine, &socket, &log)?;
        eprintln!(
            "the guest's serial line is {}, and what it says is in {}; `continue` starts the machine",
            standing.terminal,
            paths::shown(&log)
        );
        let mut gdb = gdb(&socket, &self.commands)?;
        if self.batch {
            gdb.arg("-batch");
        }
        // QEMU ends with this process, which becomes gdb: nothing of ours runs afterwards.
        let error = gdb.exec();
        drop(standing);
        Err(error).context("cannot start gdb")
    }
}

/// Installs gdb if it is missing, and builds the kernel for it.
pub fn prepare() -> Result<()> {
    setup::ensure(&[Need::Qemu, Need::Gdb])?;
    build::debugger_kernel()
}

/// QEMU with a machine that stands until gdb lets it run; it ends with this value.
pub struct Standing {
    qemu: Child,
    /// The path of the terminal that is the serial line.
    pub terminal: String,
}

impl Standing {
    /// Starts `machine`, whose gdb stub listens at `socket`.
    pub fn start(machine: &Machine, socket: &Path, log: &Path) -> Result<Self> {
        if socket.exists() {
            fs::remove_file(socket)?;
        }
        let stub = format!("unix:{},server=on,wait=off", socket.display());
        let machine = machine.clone().standing().on_a_terminal(log).args(["-gdb", &stub]);
        let mut command = process::bound(machine.command());
        // Ctrl-C stops the guest by way of gdb.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut qemu = command.spawn().context("cannot start QEMU")?;
        let told = qemu.stdout.take().context("QEMU has no standard output")?;
        let mut standing = Self { qemu, terminal: String::new() };
        let mut line = String::new();
        BufReader::new(told).read_line(&mut line)?;
        let path = line.split_whitespace().find(|word| word.starts_with("/dev/"));
        standing.terminal = path.context("QEMU names no terminal")?.to_owned();
        let deadline = Instant::now() + PATIENCE;
        while !socket.exists() {
            if Instant::now() > deadline || standing.qemu.try_wait()?.is_some() {
                bail!("QEMU opens no gdb stub at {}", socket.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(standing)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// gdb on the kernel, connected, with our commands and Rust's own ways to show its types.
pub fn gdb(socket: &Path, commands: &[String]) -> Result<Command> {
    let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let types = Path::new(sysroot.trim()).join("lib/rustlib/etc");
    let mut gdb = Command::new("gdb");
    gdb.arg("-q").arg(paths::debugger_kernel()).env("PYTHONPATH", types);
    gdb.arg("-x").arg(paths::source("kernel/gdb.py"));
    gdb.args(["-ex", &format!("target remote {}", socket.display())]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    Ok(gdb)
}
