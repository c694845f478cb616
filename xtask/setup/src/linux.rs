//! The Linux that Alea is compared with, and the BusyBox that both run: Debian's own packages,
//! extracted below `target/alea` and never installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::Apt;
use xtask_host::paths;

/// The oldest Linux with the vDSO's getrandom and everything else that is compared.
const OLDEST: (u32, u32) = (6, 12);

/// Meta packages whose dependency is a kernel image; the first that exists is taken.
const META: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-virtual"];

/// Extracts a Linux to [`paths::vmlinuz`] (`$ALEA_LINUX` is copied there instead, when set).
pub fn provide_linux(apt: &mut dyn FnMut() -> Result<Apt>) -> Result<()> {
    if let Some(named) = std::env::var_os("ALEA_LINUX") {
        return place(Path::new(&named), &paths::vmlinuz());
    }
    let apt = apt()?;
    let image = META.iter().find_map(|meta| newest_image(&apt.show(meta)));
    let image = image.context(
        "apt knows no Linux to compare with: set ALEA_LINUX=FILE to a bzImage, 6.12 or newer",
    )?;
    let dir = tempfile::tempdir_in(paths::alea())?;
    apt.extract(&image, dir.path())?;
    let boot = fs::read_dir(dir.path().join("boot")).context("the package has no /boot")?;
    let is_kernel = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    };
    let kernel = boot.flatten().map(|entry| entry.path()).find(is_kernel);
    place(&kernel.context("the package has no kernel")?, &paths::vmlinuz())?;
    fs::write(paths::alea().join("linux/package"), image + "\n")?;
    Ok(())
}

/// Extracts a static BusyBox to [`paths::busybox`] (or copies `$ALEA_BUSYBOX` there).
pub fn provide_busybox(apt: &mut dyn FnMut() -> Result<Apt>) -> Result<()> {
    if let Some(named) = std::env::var_os("ALEA_BUSYBOX") {
        return place(Path::new(&named), &paths::busybox());
    }
    let dir = tempfile::tempdir_in(paths::alea())?;
    apt()?.extract("busybox-static", dir.path())?;
    let places = ["bin/busybox", "usr/bin/busybox"].map(|place| dir.path().join(place));
    let found = places.iter().find(|place| place.exists());
    place(found.context("the package busybox-static has no busybox")?, &paths::busybox())
}

/// Copies `from` to `to`, whole or not at all.
fn place(from: &Path, to: &Path) -> Result<()> {
    let dir = to.parent().context("a file has a folder")?;
    fs::create_dir_all(dir)?;
    let half = to.with_extension("new");
    fs::copy(from, &half).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::set_permissions(&half, fs::Permissions::from_mode(0o755))?;
    fs::rename(&half, to)?;
    Ok(())
}

/// The image package that the newest stanza of a meta package depends on, if it is new enough.
fn newest_image(stanzas: &str) -> Option<String> {
    let image = |stanza: &str| {
        let depends = stanza.lines().find_map(|line| line.strip_prefix("Depends: "))?;
        let mut names = depends.split([',', '|']).filter_map(|one| one.split_whitespace().next());
        let name = names.find(|name| name.starts_with("linux-image-"))?;
        let mut numbers =
            name.trim_start_matches(|c: char| !c.is_ascii_digit()).split(['.', '-', '+']);
        let version: (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let patch: u32 = numbers.next().and_then(|patch| patch.parse().ok()).unwrap_or(0);
        Some((version, patch, name.to_owned()))
    };
    let newest = stanzas.split("\n\n").filter_map(image).max()?;
    (newest.0 >= OLDEST).then_some(newest.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backported_image_is_chosen() {
        let show = "Package: linux-image-cloud-amd64\nVersion: 6.1.176-1\n\
            Depends: linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)\n\n\
            Package: linux-image-cloud-amd64\nVersion: 6.12.95-1~bpo12+1\n\
            Depends: linux-image-6.12.95+deb12-cloud-amd64 (= 6.12.95-1~bpo12+1)\n\n";
        assert_eq!(newest_image(show).as_deref(), Some("linux-image-6.12.95+deb12-cloud-amd64"));
    }

    #[test]
    fn an_old_image_is_no_baseline() {
        let show = "Depends: linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)\n";
        assert_eq!(newest_image(show), None);
        assert_eq!(newest_image(""), None);
        let ubuntu = "Depends: linux-firmware, linux-image-6.14.0-15-generic\n";
        assert_eq!(newest_image(ubuntu).as_deref(), Some("linux-image-6.14.0-15-generic"));
    }
}
