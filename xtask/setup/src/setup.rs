//! `cargo xtask setup`: finds out what is missing on this machine, and installs exactly that.
//!
//! Every other command calls [`ensure`] with what it needs, so nobody has to run this by hand.
//! A second run only looks, and looking is quick.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};
use clap::Args;

use crate::apt::Apt;
use crate::{linux, tools};
use xtask_guest::{accel, qemu};
use xtask_host::{paths, process};

/// The target that the kernel is built for.
pub const TARGET: &str = "x86_64-unknown-none";

/// The target that the tests' boot loader is built for.
pub const UEFI_TARGET: &str = "x86_64-unknown-uefi";

/// Installs what is missing.
#[derive(Args)]
pub struct Setup {
    /// Only say what is there and what is missing; exit status 1 if anything is
    #[arg(long)]
    check: bool,
    /// Also what only `image`, `test` and `ci` need: xorriso, UEFI firmware, rustfmt, clippy, z3, mmdebstrap
    #[arg(long)]
    all: bool,
}

impl Setup {
    pub fn run(self) -> Result<ExitCode> {
        let mut needs = DEFAULT.to_vec();
        if self.all {
            needs.extend([Need::Rustfmt, Need::Clippy, Need::Solver, Need::Mmdebstrap]);
            needs.extend([Need::Xorriso, Need::Ovmf]);
        }
        if !self.check {
            ensure(&needs)?;
        }
        let mut complete = true;
        for need in needs {
            let missing = need.missing();
            let word = if missing.is_none() { "ok" } else { "MISSING" };
            complete &= missing.is_none();
            println!(
                "{word:8} {}{}",
                need.name(),
                missing.map_or(String::new(), |m| format!(": {m}"))
            );
        }
        if complete {
            println!("{:8} {}", "uses", accel::describe()?);
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("`cargo xtask setup` installs what is missing");
        Ok(ExitCode::FAILURE)
    }
}

/// Something that a command cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    RustTarget,
    Rustfmt,
    Clippy,
    Qemu,
    QemuOthers,
    Compiler,
    Busybox,
    Linux,
    Xorriso,
    Ovmf,
    DpkgSource,
    Mmdebstrap,
    Rngtest,
    Ent,
    Dieharder,
    Estimators,
    Swtpm,
    Compressors,
    Solver,
    Gdb,
    Mutants,
    SemverChecks,
    Go,
}

/// What `run`, `test` and `bench` need.
pub const DEFAULT: [Need; 5] =
    [Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox, Need::Linux];

/// Where distributions put the UEFI firmware for QEMU's `-bios`.
const OVMF: [&str; 3] =
    ["/usr/share/ovmf/OVMF.fd", "/usr/share/OVMF/OVMF.fd", "/usr/share/edk2/x64/OVMF.4m.fd"];

impl Need {
    fn name(self) -> &'static str {
        match self {
            Self::RustTarget => "Rust's target x86_64-unknown-none",
            Self::Rustfmt => "rustfmt",
            Self::Clippy => "clippy",
            Self::Qemu => "QEMU 8.2 or newer",
            Self::QemuOthers => "QEMU for Arm and RISC-V",
            Self::Compiler => "C compiler and static C library",
            Self::Busybox => "static BusyBox",
            Self::Linux => "Linux to compare with",
            Self::Xorriso => "xorriso",
            Self::Ovmf => "UEFI firmware for QEMU",
            Self::DpkgSource => "dpkg-source",
            Self::Mmdebstrap => "mmdebstrap",
            Self::Rngtest => "rngtest",
            Self::Ent => "ent",
            Self::Dieharder => "dieharder",
            Self::Swtpm => "swtpm, an emulator of a TPM",
            Self::Compressors => "xz and zstd",
            Self::Estimators => "what NIST's entropy estimators are built with",
            Self::Solver => "z3",
            Self::Gdb => "gdb",
            Self::Mutants => "cargo-mutants",
            Self::SemverChecks => "cargo-semver-checks",
            Self::Go => "Go",
        }
    }

    /// Why it is not there, or nothing when it is.
    fn missing(self) -> Option<String> {
        let file = |path: PathBuf| (!path.exists()).then(|| format!("no {}", paths::shown(&path)));
        let program = |name: &str| process::which(name).is_none().then(|| format!("no {name}"));
        match self {
            Self::RustTarget => rust_target_missing(TARGET),
            Self::Rustfmt => component_missing("fmt"),
            Self::Clippy => component_missing("clippy"),
            Self::Qemu => qemu::check().err().map(|error| format!("{error:#}")),
            Self::QemuOthers => program("qemu-system-aarch64")
                .or_else(|| program("qemu-system-arm"))
                .or_else(|| program("qemu-system-riscv64")),
            Self::Compiler => compiler_missing(),
            Self::Busybox => file(paths::busybox()),
            Self::Linux => file(paths::vmlinuz()),
            Self::Xorriso => program("xorriso"),
            Self::DpkgSource => program("dpkg-source"),
            Self::Mmdebstrap => program("mmdebstrap").or_else(|| program("newuidmap")),
            Self::Ovmf => ovmf().is_none().then(|| "no OVMF.fd".to_owned()),
            Self::Rngtest => program("rngtest"),
            Self::Ent => program("ent"),
            Self::Swtpm => program("swtpm"),
            Self::Compressors => program("xz").or_else(|| program("zstd")),
            Self::Dieharder => program("dieharder"),
            Self::Estimators => program("python3")
                .or_else(|| program("g++"))
                .or_else(|| library_missing("libdivsufsort.so"))
                .or_else(|| library_missing("libbz2.so")),
            Self::Solver => program("z3"),
            Self::Gdb => program("gdb"),
            Self::Mutants => tools::MUTANTS.missing(),
            Self::SemverChecks => tools::SEMVER_CHECKS.missing(),
            Self::Go => program("go"),
        }
    }

    /// The Debian packages that bring it, for what has to be installed.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Qemu => &["qemu-system-x86"],
            Self::QemuOthers => &["qemu-system-arm", "qemu-system-misc"],
            Self::Compiler => &["gcc", "libc6-dev"],
            Self::Xorriso => &["xorriso"],
            Self::DpkgSource => &["dpkg-dev"],
            Self::Mmdebstrap => &["mmdebstrap", "uidmap"],
            Self::Ovmf => &["ovmf"],
            Self::Swtpm => &["swtpm"],
            Self::Compressors => &["xz-utils", "zstd"],
            Self::Rngtest => &["rng-tools5"],
            Self::Ent => &["ent"],
            Self::Dieharder => &["dieharder"],
            Self::Estimators => {
                &["g++", "python3-venv", "python3-dev", "libdivsufsort-dev", "libbz2-dev"]
            }
            Self::Solver => &["z3"],
            Self::Gdb => &["gdb"],
            Self::Go => &["golang-go"],
            _ => &[],
        }
    }
}

/// The image that `--kernel` names: `alea` (which must be built), `linux` (Debian's, fetched if need be), or a path.
pub fn kernel_image(name: &str) -> Result<PathBuf> {
    let image = match name {
        "alea" => paths::kernel(),
        "linux" => {
            ensure(&[Need::Linux])?;
            paths::vmlinuz()
        }
        path => PathBuf::from(path),
    };
    if !image.is_file() {
        bail!("{} is no file", paths::shown(&image));
    }
    Ok(image)
}

/// The UEFI firmware, if it is installed.
pub fn ovmf() -> Option<PathBuf> {
    OVMF.iter().map(PathBuf::from).find(|path| path.exists())
}

/// Makes sure that all of `needs` are there; says nothing and is quick when they are.
pub fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<Need> =
        needs.iter().copied().filter(|need| need.missing().is_some()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(paths::alea())?;
    let has = |need: Need| missing.contains(&need);
    if has(Need::RustTarget) {
        provide_target(TARGET)?;
    }
    if has(Need::Rustfmt) {
        rustup("adding rustfmt", &["component", "add", "rustfmt"])?;
    }
    if has(Need::Clippy) {
        rustup("adding clippy", &["component", "add", "clippy"])?;
    }
    if has(Need::Mutants) {
        tools::MUTANTS.provide()?;
    }
    if has(Need::SemverChecks) {
        tools::SEMVER_CHECKS.provide()?;
    }
    let mut apt = OnDemand(None);
    // Whatever needs no rights comes first: a user without them has the rest ready then.
    if has(Need::Busybox) {
        linux::provide_busybox(&mut || apt.open())?;
    }
    if has(Need::Linux) {
        linux::provide_linux(&mut || apt.open())?;
    }
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages()).copied().collect();
    if !packages.is_empty() {
        apt.open()?.install(&packages)?;
    }
    for need in missing {
        if let Some(why) = need.missing() {
            bail!("{} is still missing after its installation: {why}", need.name());
        }
    }
    Ok(())
}

/// apt is opened (and reads its lists over the network) at most once, and only if it is needed.
struct OnDemand(Option<Apt>);

impl OnDemand {
    fn open(&mut self) -> Result<Apt> {
        if self.0.is_none() {
            self.0 = Some(Apt::open()?);
        }
        match &self.0 {
            Some(apt) => Ok(apt.clone()),
            None => unreachable!("it was opened above"),
        }
    }
}

fn rustup(what: &str, args: &[&str]) -> Result<()> {
    if process::which("rustup").is_none() {
        bail!("{what} needs rustup: see https://rustup.rs, and use its stable Rust");
    }
    process::run(what, Command::new("rustup").args(args).current_dir(paths::root()))
}

/// Makes sure that Rust's library for `target` is there.
pub fn provide_target(target: &str) -> Result<()> {
    if rust_target_missing(target).is_none() {
        return Ok(());
    }
    rustup(&format!("adding Rust's target {target}"), &["target", "add", target])
}

fn rust_target_missing(target: &str) -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", target]).current_dir(paths::root());
    match process::output(&mut command) {
        Ok(dir) if Path::new(dir.trim()).exists() => None,
        Ok(_) => Some("not installed".into()),
        Err(error) => Some(format!("{error:#}")),
    }
}

fn component_missing(subcommand: &str) -> Option<String> {
    let found = process::output(process::cargo().args([subcommand, "--version"]));
    found.is_err().then(|| "not installed".to_owned())
}

fn compiler_missing() -> Option<String> {
    if process::which("gcc").is_none() {
        return Some("no gcc".into());
    }
    library_missing("libc.a").map(|_| "no static libc".into())
}

/// Why gcc does not find the library file `name`.
fn library_missing(name: &str) -> Option<String> {
    // gcc answers with a path when it finds the file, and with the bare name when it does not.
    let library = process::output(Command::new("gcc").arg(format!("-print-file-name={name}")));
    match library {
        Ok(path) if Path::new(path.trim()).is_absolute() => None,
        Ok(_) => Some(format!("no {name}")),
        Err(error) => Some(format!("{error:#}")),
    }
}
