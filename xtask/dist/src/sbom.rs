//! The bill of materials, in CycloneDX's JSON: every crate in the kernel, and what others made in the initramfs and on the ISO.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use cyclonedx_bom::external_models::date_time::DateTime;
use cyclonedx_bom::models::component::Classification;
use cyclonedx_bom::models::license::{LicenseChoice, Licenses};
use cyclonedx_bom::models::metadata::Metadata;
use cyclonedx_bom::prelude::*;
use xtask_check::image;
use xtask_host::{paths, process};
use xtask_setup::setup::TARGET;

/// The bill of this commit's release.
pub fn of_release() -> Result<Vec<u8>> {
    let mut cargo = process::cargo();
    cargo.args(["tree", "--locked", "--package", "alea-kernel", "--target", TARGET]);
    cargo.args(["--edges", "normal", "--prefix", "none", "--format", "{p}|{l}"]);
    let mut parts = crates(&process::output(&mut cargo)?)?;
    let mut kernel = parts.remove(0);
    kernel.component_type = Classification::OperatingSystem;
    parts.push(part("limine", image::TAG, "BSD-2-Clause", "github/limine-bootloader/limine")?);
    let told = process::output(&mut Command::new(paths::busybox()))?;
    parts.push(part("busybox", version_of_busybox(&told)?, "GPL-2.0-only", "deb/debian/busybox")?);
    let libc = process::output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let version = libc.split_whitespace().last().context("getconf tells no version")?;
    parts.push(part("glibc", version, "LGPL-2.1-or-later", "generic/glibc")?);
    written(kernel, parts)
}

fn written(kernel: Component, parts: Vec<Component>) -> Result<Vec<u8>> {
    let date = process::output(process::git().args(["log", "-1", "--format=%cI"]))?;
    let bom = Bom {
        // A number of its own would differ each time.
        serial_number: None,
        metadata: Some(Metadata {
            timestamp: Some(DateTime::try_from(date.trim().to_owned())?),
            component: Some(kernel),
            ..Metadata::default()
        }),
        components: Some(Components(parts)),
        ..Bom::default()
    };
    let result = bom.validate();
    ensure!(result.passed(), "the bill of materials is not valid: {result:?}");
    let mut json = Vec::new();
    bom.output_as_json_v1_5(&mut json).context("the bill of materials")?;
    json.push(b'\n');
    Ok(json)
}

/// The crates that `cargo tree` lists, each once; the first is the kernel.
fn crates(tree: &str) -> Result<Vec<Component>> {
    let mut lines: Vec<&str> = Vec::new();
    for line in tree.lines().map(|line| line.trim_end_matches(" (*)")) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let of = |line: &str| {
        let (package, license) = line.split_once('|')?;
        let mut words = package.split_whitespace();
        Some((
            words.next()?.to_owned(),
            words.next()?.strip_prefix('v')?.to_owned(),
            license.to_owned(),
        ))
    };
    let one = |line: &&str| {
        let (name, version, license) = of(line).with_context(|| format!("cargo tree: {line}"))?;
        part(&name, &version, &license, &format!("cargo/{name}"))
    };
    lines.iter().map(one).collect()
}

/// One part, with its licence in SPDX's terms, and the place of a package URL.
fn part(name: &str, version: &str, license: &str, place: &str) -> Result<Component> {
    let url = format!("pkg:{place}@{version}");
    let mut part = Component::new(Classification::Library, name, version, Some(url.clone()));
    // Without a licence nobody may use it: said by leaving it out.
    if !license.is_empty() {
        let license = SpdxExpression::parse_lax(license.to_owned())
            .with_context(|| format!("the licence of {name}: {license}"))?;
        part.licenses = Some(Licenses(vec![LicenseChoice::Expression(license)]));
    }
    let Ok(purl) = url.parse() else { bail!("{url} is no package URL") };
    part.purl = Some(purl);
    Ok(part)
}

/// `BusyBox v1.35.0 (Debian 1:1.35.0-4+b3) multi-call binary.`
fn version_of_busybox(told: &str) -> Result<&str> {
    let rest = told.split_once("BusyBox v").context("BusyBox tells no version")?.1;
    rest.split_whitespace().next().context("BusyBox tells no version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crate_is_a_part() {
        let tree = "alea-kernel v0.1.0 (/a b)|MIT OR Apache-2.0\nsha2 v0.11.1|MIT/Apache-2.0\n\
                    x86_64 v0.15.2|MIT\nsha2 v0.11.1|MIT/Apache-2.0 (*)\n";
        let mut parts = crates(tree).unwrap();
        let names: Vec<String> = parts.iter().map(|part| part.name.to_string()).collect();
        assert_eq!(names, ["alea-kernel", "sha2", "x86_64"]);
        let kernel = parts.remove(0);
        let json = String::from_utf8(written(kernel, parts).unwrap()).unwrap();
        assert!(json.contains("pkg:cargo/sha2@0.11.1"), "{json}");
        assert!(json.contains("MIT OR Apache-2.0"), "{json}");
        assert!(!json.contains("serialNumber"), "{json}");
    }

    #[test]
    fn busybox_tells_its_version() {
        let told = "BusyBox v1.35.0 (Debian 1:1.35.0-4+b3) multi-call binary.\n";
        assert_eq!(version_of_busybox(told).unwrap(), "1.35.0");
        assert!(version_of_busybox("toybox").is_err());
    }
}
