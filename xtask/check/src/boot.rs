//! `cargo xtask boot`: boots any kernel with any initramfs, as the user says.
//!
//! Also the home of [`join`], which joins a guest's serial line to the terminal for `run` and `image` too.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ExitCode};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_guest::symbolize;
use xtask_host::keys::Escapes;
use xtask_host::{paths, term};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// Boots a kernel. The exit status is QEMU's own: 0 after a power-off, 33 after a panic of Alea.
#[derive(Args)]
pub struct Boot {
    /// `alea` (built first), `linux` (Debian's), or the path of a kernel image
    #[arg(long, value_name = "alea|linux|PATH", default_value = "alea")]
    kernel: String,
    /// The initramfs, plain or compressed (gzip, xz, zstd); default: the one that `build` makes
    #[arg(long, value_name = "PATH")]
    initrd: Option<PathBuf>,
    /// Boot without any initramfs
    #[arg(long, conflicts_with = "initrd")]
    no_initrd: bool,
    /// The kernel command line, exactly
    #[arg(long, value_name = "LINE", default_value = "console=ttyS0", allow_hyphen_values = true)]
    append: String,
    /// Stop the guest after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Print QEMU's command line and start nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    machine: MachineArgs,
    /// Halt the machine before its first instruction, and say how gdb is attached
    #[arg(long)]
    debug: bool,
    #[command(flatten)]
    build: build::Options,
}

impl Boot {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::Qemu])?;
        let own_initrd = self.initrd.is_none() && !self.no_initrd;
        if self.kernel == "alea" {
            build::build(self.build)?;
        } else if own_initrd {
            build::initramfs()?;
        }
        let kernel = setup::kernel_image(&self.kernel)?;
        let initrd = if own_initrd { Some(paths::initramfs()) } else { self.initrd };
        if let Some(initrd) = &initrd {
            ensure!(initrd.is_file(), "{} is no file", initrd.display());
        }
        let machine =
            self.machine.machine()?.debugged(self.debug).direct(&kernel, initrd, &self.append);
        if self.print {
            println!("{}", xtask_host::process::show(&machine.command()));
            return Ok(ExitCode::SUCCESS);
        }
        let limits = Limits { total: self.timeout.map(Duration::from_secs), idle: None };
        join(&machine, limits, &kernel)
    }
}

/// Runs `machine` with its serial line on this process's standard input and output, to its end. The exit status is QEMU's own, or 0
/// if the user left.
pub fn join(machine: &Machine, limits: Limits, kernel: &Path) -> Result<ExitCode> {
    Ok(match watch(machine, limits)? {
        Watched::Left => ExitCode::SUCCESS,
        Watched::Ended(outcome) => exit_code(&outcome, kernel),
    })
}

/// The same for a root's own init: the exit statuses are those of `cargo xtask run --root`.
pub fn join_init(machine: &Machine, limits: Limits, kernel: &Path) -> Result<ExitCode> {
    Ok(match watch(machine, limits)? {
        Watched::Left => ExitCode::from(xtask_run::LEFT),
        Watched::Ended(outcome) => {
            let own = exit_code(&outcome, kernel);
            if is_failure(&outcome.end) { ExitCode::from(xtask_run::FAILED) } else { own }
        }
    })
}

/// Whether the kernel or the machine failed, which is no end that the guest or the user chose.
fn is_failure(end: &End) -> bool {
    match end {
        End::Exited(status) => *status != 0,
        End::Panicked | End::Signalled(_) => true,
        End::TimedOut => false,
    }
}

/// How a guest on the user's terminal came to its end.
enum Watched {
    Ended(Outcome),
    /// The user typed Ctrl-A x.
    Left,
}

/// On a terminal every key goes to the guest; a pipe or file is typed as it is, and its end types nothing.
fn watch(machine: &Machine, limits: Limits) -> Result<Watched> {
    let raw = if std::io::stdin().is_terminal() {
        eprintln!("note: `poweroff -f` in the guest or Ctrl-A x here ends it");
        Some(term::RawMode::enter()?)
    } else {
        None
    };
    let mut guest = Guest::start_echoing(machine, std::io::stdout())?;
    let keyboard = guest.take_stdin().context("QEMU has no standard input")?;
    let (leave, left) = mpsc::channel();
    let is_terminal = raw.is_some();
    // Never joined: it sleeps in a read of standard input until this process ends.
    std::thread::spawn(move || type_keys(keyboard, is_terminal, &leave));
    let outcome = loop {
        match guest.poll_end(limits, Duration::from_millis(50))? {
            Some(end) => break guest.finish_with(end)?,
            None if left.try_recv().is_ok() => {
                guest.stop()?;
                drop(raw);
                eprintln!("\nleft: the guest was stopped");
                return Ok(Watched::Left);
            }
            None => {}
        }
    };
    drop(raw);
    Ok(Watched::Ended(outcome))
}

/// Reports anything but a power-off on standard error, and passes QEMU's exit status on.
fn exit_code(outcome: &Outcome, kernel: &Path) -> ExitCode {
    // The text was on the serial line, and so is seen already.
    if let Some(trace) = symbolize::panic_trace(kernel, &outcome.output) {
        eprintln!("\n{trace}");
    }
    if !outcome.stderr.trim().is_empty() {
        eprintln!("QEMU: {}", outcome.stderr.trim());
    }
    match outcome.end {
        End::Exited(status) => ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)),
        End::Panicked => ExitCode::from(33),
        End::TimedOut => {
            eprint!("\n{}", outcome.stuck_at(kernel));
            eprintln!("error: the guest was stopped after {:.0?}", outcome.elapsed);
            ExitCode::from(124)
        }
        End::Signalled(signal) => {
            eprintln!("error: signal {signal} killed QEMU");
            ExitCode::FAILURE
        }
    }
}

/// Copies keys to the guest until the user leaves or either side is gone.
fn type_keys(mut keyboard: ChildStdin, is_terminal: bool, leave: &mpsc::Sender<()>) {
    let mut escapes = Escapes::default();
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = std::io::stdin().read(&mut buffer) {
        let typed = &buffer[..n];
        let (bytes, leaves) =
            if is_terminal { escapes.filter(typed) } else { (typed.to_vec(), false) };
        if keyboard.write_all(&bytes).and_then(|()| keyboard.flush()).is_err() {
            return;
        }
        if leaves {
            // The receiver is gone only when the guest has ended by itself.
            let _ = leave.send(());
            return;
        }
    }
    // Keep the line open: its end would look like a hang-up to the guest's console.
    loop {
        std::thread::park();
    }
}
