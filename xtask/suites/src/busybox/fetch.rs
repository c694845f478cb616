//! BusyBox's source and its static binary, both of one Debian release, fetched through apt.
//!
//! They are unpacked below `target/alea/busybox-RELEASE` and never installed or committed. apt checks
//! the lists' signature and every file's checksum, dpkg-source those of the source once more. The folder
//! appears whole, by rename, so that one that is there is complete.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use xtask_host::{paths, process};
use xtask_setup::apt::Apt;
use xtask_setup::setup::{self, Need};

/// A Debian release, and by it a version of BusyBox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Release {
    /// Debian 12: BusyBox 1.35
    Bookworm,
    /// Debian 13: BusyBox 1.37
    Trixie,
}

impl Release {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }

    fn folder(self) -> PathBuf {
        paths::alea().join(format!("busybox-{}", self.name()))
    }
}

/// What was fetched.
pub struct Busybox {
    folder: PathBuf,
    /// Debian's version of the package, such as `1:1.35.0-4+deb12u1`.
    pub version: String,
}

impl Busybox {
    /// Fetches what is not there yet.
    pub fn of(release: Release) -> Result<Self> {
        let folder = release.folder();
        if !folder.exists() {
            fetch(release, &folder).with_context(|| advice(release))?;
        }
        let version = fs::read_to_string(folder.join(VERSION))?.trim().to_owned();
        Ok(Self { folder, version })
    }

    /// The static binary that is tested.
    pub fn binary(&self) -> PathBuf {
        self.folder.join(BINARY)
    }

    /// A file or folder of the source.
    pub fn source(&self, relative: &str) -> PathBuf {
        self.folder.join(SOURCE).join(relative)
    }
}

const BINARY: &str = "busybox";
const SOURCE: &str = "source";
const VERSION: &str = "version";

fn fetch(release: Release, folder: &Path) -> Result<()> {
    setup::ensure(&[Need::DpkgSource])?;
    fs::create_dir_all(paths::alea())?;
    let scratch = tempfile::tempdir_in(paths::alea())?;
    let apt = Apt::of_release(release.name())?;
    let downloads = scratch.path().join("downloads");
    fs::create_dir(&downloads)?;
    let dsc = apt.source("busybox", &downloads)?;
    let whole = scratch.path().join("whole");
    fs::create_dir(&whole)?;
    let mut unpack = Command::new("dpkg-source");
    unpack.arg("--extract").arg(&dsc).arg(whole.join(SOURCE));
    process::run("unpacking the source of busybox", &mut unpack)?;
    let package = scratch.path().join("package");
    apt.extract("busybox-static", &package)?;
    let places = ["bin/busybox", "usr/bin/busybox"].map(|place| package.join(place));
    let found = places.iter().find(|place| place.exists());
    let found = found.context("the package busybox-static has no busybox")?;
    fs::copy(found, whole.join(BINARY))?;
    fs::set_permissions(whole.join(BINARY), fs::Permissions::from_mode(0o755))?;
    let version = version_of(&fs::read_to_string(&dsc)?).context("the .dsc names no version")?;
    fs::write(whole.join(VERSION), version + "\n")?;
    fs::rename(&whole, folder).with_context(|| paths::shown(folder))
}

fn version_of(dsc: &str) -> Option<String> {
    Some(dsc.lines().find_map(|line| line.strip_prefix("Version: "))?.trim().to_owned())
}

/// What a person can do when nothing can be fetched.
fn advice(release: Release) -> String {
    format!(
        "BusyBox's source and busybox-static of Debian {0} cannot be fetched. Once they are, no network is \
         needed: get online (apt heeds http_proxy), or copy target/alea/busybox-{0} from a clone that has it",
        release.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_dsc() {
        let dsc = "-----BEGIN PGP SIGNED MESSAGE-----\nFormat: 3.0 (quilt)\nVersion: 1:1.35.0-4+deb12u1\n";
        assert_eq!(version_of(dsc).as_deref(), Some("1:1.35.0-4+deb12u1"));
        assert_eq!(version_of("Format: 3.0\n"), None);
    }
}
