//! The workspace: every folder with a `Cargo.toml` is a member, and a default member unless it is the kernel, which is
//! built for another target. What is in neither list is never compiled, linted or tested by anything.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::faults::Faults;
use crate::tree::Tree;

/// The member that the host cannot build.
const KERNEL: &str = "kernel";

#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Workspace {
    members: BTreeSet<String>,
    default_members: BTreeSet<String>,
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
    compare("members", &workspace.members, &folders, faults);
    let host = folders.into_iter().filter(|folder| folder != KERNEL).collect();
    compare("default-members", &workspace.default_members, &host, faults);
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

    fn faults(manifest: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("Cargo.toml", manifest),
            ("kernel/Cargo.toml", ""),
            ("kernel/cpio/Cargo.toml", ""),
        ]);
        let mut faults = Faults::default();
        check(&tree, &mut faults);
        faults.all()
    }

    #[test]
    fn members_are_the_folders() {
        let whole = "[workspace]\nmembers = [\"kernel\", \"kernel/cpio\"]\n\
                     default-members = [\"kernel/cpio\"]\n";
        assert!(faults(whole).is_empty());
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
