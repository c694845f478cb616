//! The workspace: every folder with a `Cargo.toml` is a member, and a default member unless it is the kernel, which is
//! built for another target. What is in neither list is never compiled, linted or tested by anything.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::faults::Faults;
use crate::tree::Tree;

/// The member that the host cannot build.
const KERNEL: &str = "kernel";

/// What a stranger looks for at the root.
const PAGES: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];
/// The licences of every package, whose texts are at the root.
const LICENSE: &str = "MIT OR Apache-2.0";

#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Workspace {
    members: BTreeSet<String>,
    default_members: BTreeSet<String>,
    package: Package,
}

/// What all packages share.
#[derive(Deserialize)]
struct Package {
    version: String,
    license: String,
}

pub fn check(tree: &Tree, faults: &mut Faults) {
    let Some(root) = tree.file("Cargo.toml") else {
        return faults.add("Cargo.toml: there is none at the root".into());
    };
    let workspace = match toml::from_str::<Manifest>(&root.text) {
        Ok(manifest) => manifest.workspace,
        Err(error) => return faults.add(format!("Cargo.toml: {error}")),
    };
    let folders: BTreeSet<String> = tree
        .files
        .iter()
        .filter_map(|file| Some(file.name.strip_suffix("/Cargo.toml")?.to_owned()))
        .collect();
    pages(tree, &workspace.package, faults);
    compare("members", &workspace.members, &folders, faults);
    let host = folders.into_iter().filter(|folder| folder != KERNEL).collect();
    compare("default-members", &workspace.default_members, &host, faults);
}

/// The pages at the root are there and agree with the packages: one version, the same licences everywhere.
fn pages(tree: &Tree, package: &Package, faults: &mut Faults) {
    for name in PAGES.iter().filter(|name| tree.file(name).is_none()) {
        faults.add(format!("{name}: there is none at the root"));
    }
    if package.license != LICENSE {
        faults.add(format!("Cargo.toml: the licences at the root are {LICENSE}"));
    }
    let log = tree.file("CHANGELOG.md").map_or("", |page| &page.text);
    let newest = log.lines().find_map(|line| line.strip_prefix("## [")?.split_once(']'));
    if newest.is_none_or(|(version, _)| version != package.version) {
        faults.add(format!("CHANGELOG.md: the newest version is not {}", package.version));
    }
    for file in &tree.files {
        let (folder, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
        if name == "Cargo.toml"
            && !folder.is_empty()
            && !file.text.contains("license.workspace = true")
        {
            faults.add(format!("{}: no `license.workspace = true`", file.name));
        }
        let root = tree.file(name).filter(|_| name.starts_with("LICENSE-") && !folder.is_empty());
        if root.is_some_and(|root| root.text != file.text) {
            faults.add(format!("{}: not the text at the root", file.name));
        }
    }
}

fn compare(list: &str, listed: &BTreeSet<String>, wanted: &BTreeSet<String>, faults: &mut Faults) {
    for folder in wanted.difference(listed) {
        faults.add(format!("Cargo.toml: {folder} is missing in {list}"));
    }
    for folder in listed.difference(wanted) {
        faults.add(format!("Cargo.toml: {folder} does not belong in {list}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str =
        "[workspace.package]\nversion = \"0.1.0\"\nlicense = \"MIT OR Apache-2.0\"\n";

    fn faults(manifest: &str) -> Vec<String> {
        of(&format!("{manifest}{PACKAGE}"), "## [0.1.0] - soon\n## [0.0.1]\n", "MIT\n")
    }

    fn of(manifest: &str, log: &str, mit: &str) -> Vec<String> {
        let mut files = vec![
            ("Cargo.toml", manifest),
            ("kernel/Cargo.toml", "license.workspace = true\n"),
            ("kernel/cpio/Cargo.toml", "license.workspace = true\n"),
            ("kernel/cpio/LICENSE-MIT", mit),
        ];
        let text = |name| if name == "CHANGELOG.md" { log } else { "MIT\n" };
        files.extend(PAGES.map(|name| (name, text(name))));
        let mut faults = Faults::default();
        check(&Tree::of(&files), &mut faults);
        faults.all()
    }

    #[test]
    fn members_are_the_folders() {
        assert!(faults(WHOLE).is_empty());
    }

    const WHOLE: &str = "[workspace]\nmembers = [\"kernel\", \"kernel/cpio\"]\n\
                         default-members = [\"kernel/cpio\"]\n";

    #[test]
    fn version_and_licences_agree() {
        let manifest = format!("{WHOLE}{PACKAGE}");
        let log = "## [0.1.0]\n";
        assert!(of(&manifest, log, "MIT\n").is_empty());
        assert_eq!(
            of(&manifest, "## [0.0.9]\n", "MIT\n"),
            ["CHANGELOG.md: the newest version is not 0.1.0"]
        );
        assert_eq!(
            of(&manifest, log, "BSD\n"),
            ["kernel/cpio/LICENSE-MIT: not the text at the root"]
        );
        assert_eq!(of(&manifest.replace("MIT OR", "GPL OR"), log, "MIT\n").len(), 1);
    }

    #[test]
    fn a_crate_that_nothing_builds_is_a_fault() {
        let text = "[workspace]\nmembers = [\"kernel\", \"old\"]\ndefault-members = [\"kernel\"]\n";
        assert_eq!(
            faults(text),
            [
                "Cargo.toml: kernel/cpio is missing in members",
                "Cargo.toml: old does not belong in members",
                "Cargo.toml: kernel/cpio is missing in default-members",
                "Cargo.toml: kernel does not belong in default-members",
            ]
        );
    }
}
