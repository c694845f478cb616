//! A copy of the entropy core alone, in which it is changed: small, so that it is built quickly, and nothing else's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use xtask_host::paths;

/// Where the crate lies, here and there.
const CRATE: &str = "kernel/random";

pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The copy of that number, made anew; what was built stays.
    pub fn new(number: usize) -> Result<Self> {
        let root = paths::alea().join(format!("mutants/{number}"));
        let to = root.join(CRATE);
        if to.exists() {
            std::fs::remove_dir_all(&to)?;
        }
        copy(&paths::source(CRATE), &to)?;
        std::fs::copy(paths::source("Cargo.lock"), root.join("Cargo.lock"))?;
        let whole = manifest(&paths::source("Cargo.toml"))?;
        std::fs::write(root.join("Cargo.toml"), workspace(&whole)?.to_string())?;
        let mut part = manifest(&to.join("Cargo.toml"))?;
        package(&mut part);
        std::fs::write(to.join("Cargo.toml"), part.to_string())?;
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn source(&self, file: &str) -> PathBuf {
        self.root.join(CRATE).join("src").join(file)
    }
}

/// The files of `src`, as they are named below it; tests are not changed.
pub fn sources() -> Result<Vec<String>> {
    let top = paths::source(CRATE).join("src");
    let (mut files, mut folders) = (Vec::new(), vec![top.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !is_test {
                files.push(path.strip_prefix(&top)?.display().to_string());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The names of the crate's tests; loom's needs another build.
pub fn tests() -> Result<Vec<String>> {
    let entries = std::fs::read_dir(paths::source(CRATE).join("tests"))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut names: Vec<String> = files
        .filter(|file| file.extension().is_some_and(|e| e == "rs") || file.join("main.rs").exists())
        .filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "loom")
        .collect();
    names.sort();
    Ok(names)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&path, &to)?;
        } else {
            std::fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

fn manifest(path: &Path) -> Result<toml::Table> {
    let text = std::fs::read_to_string(path)?;
    text.parse().with_context(|| path.display().to_string())
}

/// One member, what it inherits, and no debug information. No lints: a mutant that only warns is one.
fn workspace(whole: &toml::Table) -> Result<toml::Table> {
    let inherited = whole.get("workspace").and_then(|workspace| workspace.get("package"));
    let mut workspace = toml::Table::new();
    workspace.insert("resolver".into(), "3".into());
    workspace.insert("members".into(), vec![CRATE].into());
    workspace.insert("package".into(), inherited.context("no [workspace.package]")?.clone());
    // BLAKE2s as the workspace has it: a test measures the stack.
    let dev: toml::Table =
        "[profile.dev]\ndebug = false\n[profile.dev.package.blake2]\nopt-level = 1".parse()?;
    let mut root = dev;
    root.insert("workspace".into(), workspace.into());
    Ok(root)
}

/// No benchmarks and what they need.
fn package(part: &mut toml::Table) {
    part.remove("lints");
    part.remove("bench");
    for value in part.iter_mut().map(|(_, value)| value) {
        without_divan(value);
    }
}

fn without_divan(value: &mut toml::Value) {
    let Some(table) = value.as_table_mut() else { return };
    if let Some(dependencies) = table.get_mut("dev-dependencies").and_then(|d| d.as_table_mut()) {
        dependencies.remove("divan");
    }
    table.remove("divan");
    table.iter_mut().for_each(|(_, value)| without_divan(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_what_it_inherits_and_no_benchmarks() {
        let whole = manifest(&paths::source("Cargo.toml")).unwrap();
        let root = workspace(&whole).unwrap().to_string();
        assert!(root.contains("rust-version") && root.contains(r#"members = ["kernel/random"]"#));
        let mut part = manifest(&paths::source("kernel/random/Cargo.toml")).unwrap();
        package(&mut part);
        let part = part.to_string();
        assert!(!part.contains("divan") && !part.contains("[[bench]]"), "{part}");
        assert!(part.contains("proptest") && part.contains("blake2"));
    }

    #[test]
    fn what_is_changed_is_code_and_what_is_run_is_tests() {
        let sources = sources().unwrap();
        assert!(sources.contains(&"crng/base.rs".to_owned()), "{sources:?}");
        assert!(!sources.iter().any(|file| file.contains("tests")), "{sources:?}");
        let tests = tests().unwrap();
        for (test, is_one) in [("crng", true), ("service", true), ("loom", false)] {
            assert_eq!(tests.contains(&test.to_owned()), is_one, "{test}");
        }
    }
}
