//! `cargo xtask dist`: the files of a release, into `target/alea/dist`.
//!
//! No file holds a time or a path of the machine that made it: the times are that of the commit, and paths in the symbols begin
//! with `/alea` and `/cargo`. `--verify` makes all in two other folders and compares.

use std::fs;
use std::path::{Path, PathBuf};
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
        let folder = folder(paths::root());
        make(&folder)?;
        for name in FILES.iter().chain([&SUMS]) {
            let file = folder.join(name);
            let size = fs::metadata(&file)?.len();
            println!("{:>9} KiB  {}", size.div_ceil(1024), paths::shown(&file));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Where the files are, in a clone at `root`.
fn folder(root: &Path) -> PathBuf {
    root.join("target/alea/dist")
}

fn make(folder: &Path) -> Result<()> {
    setup::ensure(&[Need::RustTarget, Need::Compiler, Need::Busybox, Need::Xorriso])?;
    // Before the build: whoever has to fetch something by hand should learn it at once.
    let limine = image::limine()?;
    fs::create_dir_all(folder)?;
    let at = |name: &str| folder.join(name);
    let whole = at("whole.elf");
    build::distributed_kernel(&whole)?;
    split(&whole, &at("kernel.elf"), &at("kernel.elf.debug"))?;
    fs::remove_file(whole)?;
    build::initramfs()?;
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
    // Once for both, and before anything is built: whoever has to fetch it by hand learns it at once.
    setup::ensure(&[Need::RustTarget, Need::Compiler, Need::Busybox, Need::Xorriso])?;
    let limine = fs::canonicalize(image::limine()?)?;
    let clones = tempfile::Builder::new().prefix("alea-dist-").tempdir()?;
    // Of different lengths: a path that got into a file moves what stands behind it.
    let roots = ["one", "another-folder"].map(|name| clones.path().join(name));
    for root in &roots {
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--local"]).arg(paths::root()).arg(root);
        process::run("cloning the last commit", &mut git)?;
    }
    for root in &roots {
        let mut dist = process::cargo();
        dist.current_dir(root).args(["xtask", "dist"]).env("LIMINE_DIR", &limine);
        process::run(&format!("making a release in {}", root.display()), &mut dist)?;
    }
    let mut equal = true;
    for name in FILES.iter().chain([&SUMS]) {
        let [one, other] = roots.each_ref().map(|root| fs::read(folder(root).join(name)));
        let same = one? == other?;
        println!("{}  {name}", if same { "equal  " } else { "DIFFERS" });
        equal &= same;
    }
    if !equal {
        let kept = clones.keep();
        bail!("two folders do not make the same release; both are kept in {}", kept.display());
    }
    Ok(ExitCode::SUCCESS)
}
