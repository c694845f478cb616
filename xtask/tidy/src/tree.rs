//! The files that git knows or would add, read once for all rules.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::scan::code_only;
use xtask_host::process;

pub struct File {
    /// From the root of the repository, with `/`.
    pub name: String,
    /// Empty for a binary file.
    pub text: String,
    /// Of Rust source, `text` with comments, strings and characters blanked; of others, empty.
    pub code: String,
    /// Length of a binary file.
    pub binary: Option<usize>,
}

#[derive(Default)]
pub struct Tree {
    /// In the order of their names.
    pub files: Vec<File>,
}

impl Tree {
    pub fn read(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let names = process::output(&mut git)?;
        let mut tree = Self::default();
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            let path = root.join(name);
            // A link is its target's name, and a deleted file is not there any more.
            if fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
                tree.push(name, fs::read(&path).with_context(|| name.to_owned())?);
            }
        }
        tree.files.sort_by(|a, b| a.name.cmp(&b.name));
        tree.files.dedup_by(|a, b| a.name == b.name);
        Ok(tree)
    }

    pub fn file(&self, name: &str) -> Option<&File> {
        self.files
            .binary_search_by(|file| file.name.as_str().cmp(name))
            .ok()
            .map(|at| &self.files[at])
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.name.ends_with(".rs"))
    }

    fn push(&mut self, name: &str, bytes: Vec<u8>) {
        let name = name.to_owned();
        self.files.push(match String::from_utf8(bytes) {
            Ok(text) => {
                let code = if name.ends_with(".rs") { code_only(&text) } else { String::default() };
                File { name, text, code, binary: None }
            }
            Err(error) => File {
                name,
                text: String::new(),
                code: String::new(),
                binary: Some(error.into_bytes().len()),
            },
        });
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (name, text) in files {
            tree.push(name, text.as_bytes().to_vec());
        }
        tree.files.sort_by(|a, b| a.name.cmp(&b.name));
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_name() {
        let tree = Tree::of(&[("b.rs", "//! B\n"), ("a.txt", "x"), ("c/d.rs", "")]);
        assert_eq!(tree.file("b.rs").unwrap().code, "     \n");
        assert_eq!(tree.file("a.txt").unwrap().code, "");
        assert!(tree.file("d.rs").is_none());
        assert_eq!(tree.rust().count(), 2);
    }
}
