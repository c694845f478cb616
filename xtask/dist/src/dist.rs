//! `cargo xtask dist`: the files of a release, into `target/alea/dist`.
//!
//! No file holds a time or a path of the machine that made it: the times are that of the commit, and paths in the symbols begin
//! with `/alea` and `/cargo`. `--verify` makes all in two other folders and compares.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use sha2::{Digest, Sha256};

use crate::sbom;
use xtask_check::image;
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// What is made, in the order in which it is listed.
const FILES: [&str; 5] =
    ["alea.iso", "initramfs.cpio", "kernel.elf", "kernel.elf.debug", "sbom.cdx.json"];

const SUMS: &str = "SHA256SUMS";

/// Where the files are, in a clone.
const RELEASE: &str = "target/alea/dist";

const NEEDS: [Need; 4] = [Need::RustTarget, Need::Compiler, Need::Busybox, Need::Xorriso];

/// Makes the files of a release.
#[derive(Args)]
pub struct Dist {
    /// Make all of it in two clones of the last commit, in folders of different names, and compare byte for byte
    #[arg(long)]
    verify: bool,
}

impl Dist {
    pub fn run(self) -> Result<ExitCode> {
        if self.verify {
            return verify();
        }
        let folder = paths::source(RELEASE);
        make(&folder)?;
        for name in FILES.iter().chain([&SUMS]) {
            let file = folder.join(name);
            let size = fs::metadata(&file)?.len();
            println!("{:>9} KiB  {}", size.div_ceil(1024), paths::shown(&file));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn make(folder: &Path) -> Result<()> {
    setup::ensure(&NEEDS)?;
    // Before the build: whoever has to fetch something by hand should learn it at once.
    let limine = image::limine()?;
    fs::create_dir_all(folder)?;
    let at = |name: &str| folder.join(name);
    let whole = at("whole.elf");
    build::distributed_kernel(&whole)?;
    split(&whole, &at("kernel.elf"), &at("kernel.elf.debug"))?;
    fs::remove_file(whole)?;
    build::own_initramfs()?;
    fs::copy(paths::initramfs(), at("initramfs.cpio"))?;
    image::write_iso(&limine, &at("kernel.elf"), &at("alea.iso"))?;
    fs::write(at("sbom.cdx.json"), sbom::of_release()?)?;
    let mut sums = String::new();
    for name in FILES {
        let bytes = fs::read(at(name)).with_context(|| name.to_owned())?;
        let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push_str(&format!("{sum}  {name}\n"));
    }
    fs::write(at(SUMS), sums)?;
    Ok(())
}

/// The kernel without symbols, and the symbols, to which the kernel's debug link points.
fn split(whole: &Path, kernel: &Path, symbols: &Path) -> Result<()> {
    let objcopy = |options: &[&str], from: &Path, to: &Path| {
        process::output(Command::new("objcopy").args(options).arg(from).arg(to)).map(drop)
    };
    objcopy(&["--only-keep-debug"], whole, symbols)?;
    let link = format!("--add-gnu-debuglink={}", symbols.display());
    objcopy(&["--strip-all", &link], whole, kernel)
}

/// Makes a release of the last commit twice, elsewhere.
fn verify() -> Result<ExitCode> {
    setup::ensure(&NEEDS)?;
    // Before anything is built: whoever has to fetch it by hand learns it at once.
    compare(&fs::canonicalize(image::limine()?)?, process::cargo)?;
    Ok(ExitCode::SUCCESS)
}

/// CI's part of it, where Limine need not be: an ISO with what stands in for it does not boot, and is the same in every folder. It makes way
/// for whatever else the machine has to do.
pub fn check() -> Result<()> {
    setup::ensure(&NEEDS)?;
    let limine = tempfile::tempdir()?;
    image::stand_in_for_limine(limine.path())?;
    compare(limine.path(), || process::yielding(&process::cargo()))
}

/// Makes a release in two clones of the last commit, one after the other.
fn compare(limine: &Path, cargo: impl Fn() -> Command) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("alea-dist-").tempdir()?;
    // Of different lengths: a path that got into a file moves what stands behind it.
    let clones = ["one", "another-folder"].map(|name| folder.path().join(name));
    let releases = ["first", "second"].map(|name| folder.path().join(name));
    for (clone, release) in clones.iter().zip(&releases) {
        process::clone_last_commit(clone)?;
        let mut dist = cargo();
        // The tools alone, so that their libraries are compiled once: a release has a folder in its clone.
        let tools = folder.path().join("tools");
        dist.current_dir(clone).args(["xtask", "dist"]).env("CARGO_TARGET_DIR", tools);
        dist.env("LIMINE_DIR", limine);
        process::run(&format!("making a release in {}", clone.display()), &mut dist)?;
        fs::rename(clone.join(RELEASE), release)?;
        // Gigabytes, which the other one needs again.
        fs::remove_dir_all(clone)?;
    }
    let mut equal = true;
    for name in FILES.iter().chain([&SUMS]) {
        let [one, other] = releases.each_ref().map(|release| fs::read(release.join(name)));
        let same = one? == other?;
        println!("{}  {name}", if same { "equal  " } else { "DIFFERS" });
        equal &= same;
    }
    if !equal {
        let kept = folder.keep();
        bail!("two folders do not make the same release; both are kept in {}", kept.display());
    }
    Ok(())
}
