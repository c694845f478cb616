//! `cargo xtask image`: `target/alea/alea.iso`, which boots with Limine under BIOS and UEFI.
//!
//! Limine's published binaries are used as they are; nothing of it is compiled. They are looked for
//! in `$LIMINE_DIR` and the usual folders, and cloned at a pinned tag if they are nowhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::boot;
use xtask_guest::guest::Limits;
use xtask_guest::qemu::{Boot, MachineArgs};
use xtask_host::{paths, process};
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

const UPSTREAM: &str = "https://github.com/limine-bootloader/limine.git";

/// The last version whose configuration this was tried with.
pub const TAG: &str = "v8.2.0-binary";

/// What of Limine goes on the ISO.
const FILES: [&str; 4] =
    ["limine-bios.sys", "limine-bios-cd.bin", "limine-uefi-cd.bin", "BOOTX64.EFI"];

const USUAL_FOLDERS: [&str; 3] =
    ["/usr/share/limine", "/usr/local/share/limine", "/usr/lib/limine"];

/// Makes a bootable ISO with Limine, and boots it if asked to.
#[derive(Args)]
pub struct Image {
    /// Boot the ISO afterwards
    #[arg(long, value_name = "FIRMWARE")]
    boot: Option<Firmware>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    build: build::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Firmware {
    Bios,
    Uefi,
}

impl Image {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::Xorriso])?;
        // Before the build: whoever has to fetch something by hand should learn it at once.
        let limine = limine()?;
        build::build_own(self.build)?;
        let iso = iso();
        write_iso(&limine, &paths::kernel(), &iso)?;
        println!("{}", paths::shown(&iso));
        let Some(firmware) = self.boot else { return Ok(ExitCode::SUCCESS) };
        setup::ensure(&[Need::Qemu])?;
        let mut machine = self.machine.machine()?;
        let firmware = match firmware {
            Firmware::Bios => None,
            Firmware::Uefi => {
                setup::ensure(&[Need::Ovmf])?;
                setup::ovmf()
            }
        };
        machine.boot = Boot::Iso { iso, firmware };
        boot::join(&machine, Limits::NONE, &paths::kernel())
    }
}

/// Where `cargo xtask image` puts the ISO.
pub fn iso() -> PathBuf {
    paths::alea().join("alea.iso")
}

/// The folder of Limine's binaries.
pub fn limine() -> Result<PathBuf> {
    let complete = |dir: &Path| FILES.iter().all(|file| dir.join(file).exists());
    if let Some(named) = std::env::var_os("LIMINE_DIR") {
        let dir = PathBuf::from(named);
        if !complete(&dir) {
            bail!("LIMINE_DIR={} lacks one of {}", dir.display(), FILES.join(", "));
        }
        return Ok(dir);
    }
    let cloned = paths::alea().join("limine");
    let usual = USUAL_FOLDERS.iter().map(PathBuf::from).chain([cloned.clone()]);
    if let Some(dir) = usual.into_iter().find(|dir| complete(dir)) {
        return Ok(dir);
    }
    if let Err(error) = clone(&cloned) {
        bail!("{error:#}\n\n{}", how_to_get_limine());
    }
    if !complete(&cloned) {
        bail!("{TAG} lacks one of {}\n\n{}", FILES.join(", "), how_to_get_limine());
    }
    Ok(cloned)
}

fn clone(into: &Path) -> Result<()> {
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--depth", "1", "--branch", TAG, UPSTREAM]).arg(into);
    // A clone that asks for a password would wait for ever.
    git.env("GIT_TERMINAL_PROMPT", "0");
    process::run("cloning Limine's binaries", &mut git)
}

/// Puts files into `folder` that are named as Limine's and boot nothing: an ISO can be made of them, to be compared.
pub fn stand_in_for_limine(folder: &Path) -> Result<()> {
    for name in FILES {
        fs::write(folder.join(name), name.repeat(1000))?;
    }
    Ok(())
}

fn how_to_get_limine() -> String {
    format!(
        "Limine's binaries are neither on this machine nor to be cloned. Where the network allows it, run\n  \
         git clone --depth 1 --branch {TAG} {UPSTREAM} DIR\n\
         bring DIR to this machine, and run `LIMINE_DIR=DIR cargo xtask image`"
    )
}

/// Writes an ISO with `kernel` and the initramfs. The same files of the same commit give the same bytes.
pub fn write_iso(limine: &Path, kernel: &Path, iso: &Path) -> Result<()> {
    let config = fs::read_to_string(paths::source("limine.cfg")).context("limine.cfg")?;
    let root = tempfile::tempdir_in(paths::alea())?;
    let place = |from: &Path, to: &str| -> Result<()> {
        let to = root.path().join(to);
        fs::create_dir_all(to.parent().context("every file of the ISO has a folder")?)?;
        fs::copy(from, &to).with_context(|| from.display().to_string())?;
        Ok(())
    };
    place(kernel, "boot/kernel.elf")?;
    place(&paths::initramfs(), "boot/initramfs.cpio")?;
    for file in &FILES[..3] {
        place(&limine.join(file), &format!("boot/limine/{file}"))?;
    }
    place(&limine.join("BOOTX64.EFI"), "EFI/BOOT/BOOTX64.EFI")?;
    fs::write(root.path().join("boot/limine/limine.conf"), modern_config(&config))?;
    // Every date on it, and the volume's number, are made of this.
    let date = process::output(process::git().args(["log", "-1", "--format=%ct"]))?;
    set_dates(root.path(), UNIX_EPOCH + Duration::from_secs(date.trim().parse()?))?;
    let mut xorriso = Command::new("xorriso");
    xorriso
        .env("SOURCE_DATE_EPOCH", date.trim())
        .args(["-as", "mkisofs", "-quiet", "-R", "-r", "-J"])
        .args(["-b", "boot/limine/limine-bios-cd.bin", "-no-emul-boot"])
        .args(["-boot-load-size", "4", "-boot-info-table"])
        .args(["--efi-boot", "boot/limine/limine-uefi-cd.bin", "-efi-boot-part"])
        .args(["--efi-boot-image", "--protective-msdos-label"])
        .arg("-o")
        .arg(iso)
        .arg(root.path());
    process::run("writing the ISO", &mut xorriso)
}

fn set_dates(folder: &Path, date: SystemTime) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            set_dates(&path, date)?;
        } else {
            fs::File::open(&path)?.set_modified(date)?;
        }
    }
    fs::File::open(folder)?.set_modified(date).context("the dates of the ISO's files")
}

/// `limine.cfg` (before Limine 8) in the syntax of `limine.conf` (8 and later).
fn modern_config(old: &str) -> String {
    let modern_line = |line: &str| {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return line.to_owned();
        }
        let name = line.trim_start_matches(':');
        if name.len() < line.len() {
            return format!("{}{name}", "/".repeat(line.len() - name.len()));
        }
        match line.split_once('=') {
            Some((key, value)) => {
                // boot:///x and hdd://1:2/x became boot():/x and hdd(1:2):/x.
                let value = match value.split_once("://") {
                    Some((resource, rest)) => match rest.split_once('/') {
                        Some((place, path)) => format!("{resource}({place}):/{path}"),
                        None => value.to_owned(),
                    },
                    None => value.to_owned(),
                };
                format!("{}: {value}", key.trim().to_ascii_lowercase())
            }
            None => line.to_owned(),
        }
    };
    old.lines().map(|line| modern_line(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_syntax_becomes_the_new_one() {
        let old = "# Alea\nTIMEOUT=0\n\n:Alea\nPROTOCOL=limine\nKERNEL_PATH=boot:///boot/kernel.elf\n\
            CMDLINE=console=ttyS0 init=/bin/sh\n::Sub\nMODULE_PATH=hdd://1:2/initramfs.cpio\n";
        assert_eq!(
            modern_config(old),
            "# Alea\ntimeout: 0\n\n/Alea\nprotocol: limine\nkernel_path: boot():/boot/kernel.elf\n\
             cmdline: console=ttyS0 init=/bin/sh\n//Sub\nmodule_path: hdd(1:2):/initramfs.cpio\n"
        );
    }

    #[test]
    fn the_advice_can_be_typed() {
        let advice = how_to_get_limine();
        assert!(advice.contains(TAG) && advice.contains("LIMINE_DIR"), "{advice}");
    }
}
