//! Debian's root: made by mmdebstrap once for each set of packages, and kept below `target/alea/debian`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use blake2::{Blake2s256, Digest};

use super::login::PASSWORD;
use super::units::Unit;
use xtask_host::{paths, process};
use xtask_setup::apt;
use xtask_setup::setup::{self, Need};

/// The release whose package names the units know.
const RELEASE: &str = "bookworm";

/// The tar that has the packages of all units.
pub fn provide(units: &[Unit], fresh: bool) -> Result<PathBuf> {
    let of = |words: fn(&Unit) -> &Vec<String>| -> Vec<&str> {
        let all: BTreeSet<&str> = units.iter().flat_map(words).map(String::as_str).collect();
        all.into_iter().collect()
    };
    let (packages, repository) = (of(|unit| &unit.packages), of(|unit| &unit.repository));
    tar(&packages, &hook(&repository, units.iter().any(|unit| unit.init.is_some())), fresh)
}

/// The tar of a root with those packages, on which `hook` was run.
pub fn tar(packages: &[&str], hook: &str, fresh: bool) -> Result<PathBuf> {
    let folder = paths::alea().join("debian");
    fs::create_dir_all(&folder)?;
    let sum = Blake2s256::digest(format!("{RELEASE} {packages:?} {hook}"));
    let tar = folder
        .join(format!("{:x}.tar", u128::from_le_bytes(*sum.first_chunk().context("a hash")?)));
    if tar.is_file() && !fresh {
        return Ok(tar);
    }
    setup::ensure(&[Need::Mmdebstrap])?;
    let sources = folder.join("sources.list");
    fs::write(&sources, apt::binary_source(RELEASE))?;
    make(packages, hook, &tar, &sources)?;
    Ok(tar)
}

/// What is done to the root when its packages are installed; `$1` is its folder.
pub fn hook(repository: &[&str], boots: bool) -> String {
    // Debian's installer writes these.
    let mut hook = String::from(
        "set -e\nprintf '127.0.0.1 localhost\\n::1 localhost\\n' > \"$1/etc/hosts\"\necho alea > \"$1/etc/hostname\"\n",
    );
    if !repository.is_empty() {
        hook.push_str(&format!(
            "mkdir \"$1/repository\"\nchroot \"$1\" sh -ec 'cd /repository; apt-get -qq download {}; \
             apt-ftparchive packages . > Packages'\n",
            repository.join(" ")
        ));
    }
    if boots {
        // A login on whatever the console is, as on a machine that has no screen.
        hook.push_str(&format!(
            "echo root:{PASSWORD} | chroot \"$1\" chpasswd\n\
             sed -i '/^[1-6]:/d' \"$1/etc/inittab\"\n\
             echo 'C0:23:respawn:/sbin/getty -L console 115200 vt100' >> \"$1/etc/inittab\"\n"
        ));
    }
    hook
}

/// The option that names `packages`; mmdebstrap takes none without a name.
fn include(packages: &[&str]) -> Option<String> {
    (!packages.is_empty()).then(|| format!("--include={}", packages.join(",")))
}

fn make(packages: &[&str], hook: &str, tar: &Path, sources: &Path) -> Result<()> {
    // Whatever stops mmdebstrap leaves no half root behind.
    let half = tar.with_extension("half");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--variant=minbase", "--format=tar"]);
    mmdebstrap.args(include(packages));
    mmdebstrap.arg(format!("--customize-hook={hook}")).arg(RELEASE).arg(&half).arg(sources);
    let what = format!("making a root of Debian with {} packages more", packages.len());
    process::run(&what, &mut mmdebstrap)?;
    fs::rename(half, tar).context("cannot keep Debian's root")
}

#[cfg(test)]
mod tests {
    use super::include;

    #[test]
    fn a_root_of_no_packages_names_none() {
        assert_eq!(include(&[]), None);
        assert_eq!(include(&["gcc", "gdb"]).unwrap(), "--include=gcc,gdb");
    }
}
