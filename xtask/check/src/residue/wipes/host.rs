//! Wipes that a test on the host shows, outside of the entropy core: each is left out in a copy of the sources, and the test that
//! the list names has to fail. (`cargo xtask mutants` leaves out the core's.)
//!
//! The copy has what the tests compile and nothing else, so that it is built in seconds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, bail, ensure};

use super::list::{Wipe, tracked};
use xtask_host::tally::Tally;
use xtask_host::{paths, process};

/// Where the tests of the core are, which are run on its mutants.
const CORE: &str = "kernel/random/";
const TESTS: &str = "tests/Cargo.toml";
/// What is copied. The crate of the kernel's own tests has no library there, which would need all of xtask.
const COPIED: [&str; 7] = [
    CORE,
    "kernel/vdso/",
    "kernel/src/virtio/",
    "kernel/src/machine/tpm/",
    "kernel/src/arch/x86_64/copy/",
    "tests/tests/",
    TESTS,
];
const MEMBERS: [&str; 3] = ["kernel/random", "kernel/vdso", "tests"];
/// What of the tests' own dependencies remains.
const NEEDED: [&str; 6] =
    ["alea-random", "bitflags", "libc", "proptest", "virtio-drivers", "zerocopy"];

/// Leaves out those whose place or line contains `only`.
pub fn check(tally: &mut Tally, wipes: &[Wipe], only: Option<&str>) -> Result<()> {
    let is_ours = |wipe: &&Wipe| wipe.test.is_some() && !wipe.file.starts_with(CORE);
    let wanted = |wipe: &&Wipe| only.is_none_or(|only| wipe.name().contains(only));
    let wipes: Vec<&Wipe> = wipes.iter().filter(is_ours).filter(wanted).collect();
    if wipes.is_empty() {
        return Ok(());
    }
    let tree = copy()?;
    for test in wipes.iter().filter_map(|wipe| wipe.test.as_deref()).collect::<BTreeSet<_>>() {
        let (passes, output) = passes(&tree, test)?;
        ensure!(passes, "{test} fails with every wipe in its place:\n{output}");
    }
    for wipe in wipes {
        tally.count(left_out(&tree, wipe)?);
    }
    Ok(())
}

/// Whether the test fails without the wipe.
fn left_out(tree: &Path, wipe: &Wipe) -> Result<bool> {
    let test = wipe.test.as_deref().context("no test shows it")?;
    let file = tree.join(&wipe.file);
    let whole = fs::read_to_string(&file)?;
    let mut lines: Vec<&str> = whole.lines().collect();
    let instead = without(wipe);
    lines[wipe.at] = &instead;
    fs::write(&file, lines.join("\n") + "\n")?;
    let result = passes(tree, test);
    fs::write(&file, whole)?;
    let (passes, _) = result.with_context(|| wipe.name())?;
    match passes {
        false => println!("ok      without {}\n        {test} fails", wipe.name()),
        true => println!("FAILED  {test} passes without {}", wipe.name()),
    }
    Ok(!passes)
}

/// What stands in the place of the line.
fn without(wipe: &Wipe) -> String {
    let is_instruction = wipe.file.ends_with(".s") || wipe.line.starts_with('"');
    match &wipe.instead {
        Some(instead) => instead.clone(),
        None if is_instruction => String::new(),
        // Whatever it names stays in use.
        None => format!("if false {{ {} }}", wipe.line),
    }
}

/// Runs one test, which has to compile and to be there; whether it passes, and what it says.
fn passes(tree: &Path, test: &str) -> Result<(bool, String)> {
    let (file, name) = test.split_once(' ').context("a test is FILE NAME")?;
    let (package, target) = file.split_once("tests/").context("no test of its own")?;
    let (package, target) = match package {
        "" => ("alea-tests", target.trim_start_matches("tests/")),
        "kernel/vdso/" => ("alea-vdso", target),
        _ => bail!("{file}: no package is known that has it"),
    };
    let target = target.split('/').next().unwrap_or(target).trim_end_matches(".rs");
    let run = |words: &[&str]| -> Result<Output> {
        let mut cargo = process::cargo();
        cargo.current_dir(tree).args(["test", "--quiet", "--package", package, "--test", target]);
        cargo.arg("--target-dir").arg(tree.with_file_name("host-build")).args(words);
        cargo.output().context("cannot start cargo")
    };
    let built = run(&["--no-run"])?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "{target} does not compile:\n{said}");
    let ran = run(&[name])?;
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let output = said.concat();
    ensure!(
        output.contains("running 1 test\n"),
        "{file} has no test {name}, or several:\n{output}"
    );
    Ok((ran.status.success(), output))
}

/// Copies the sources anew; what was built of them stays.
fn copy() -> Result<PathBuf> {
    let tree = paths::alea().join("residue/host");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    for file in tracked()?.iter().filter(|file| COPIED.iter().any(|place| file.starts_with(place)))
    {
        let to = tree.join(file);
        fs::create_dir_all(to.parent().context("a file without a folder")?)?;
        fs::copy(paths::source(file), to)?;
    }
    fs::copy(paths::source("Cargo.lock"), tree.join("Cargo.lock"))?;
    let whole: toml::Table = fs::read_to_string(paths::source("Cargo.toml"))?.parse()?;
    fs::write(tree.join("Cargo.toml"), workspace(whole)?.to_string())?;
    let tests: toml::Table = fs::read_to_string(paths::source(TESTS))?.parse()?;
    fs::create_dir_all(tree.join("tests/src"))?;
    fs::write(tree.join("tests/src/lib.rs"), "")?;
    fs::write(tree.join(TESTS), package(tests).to_string())?;
    Ok(tree)
}

/// The workspace of the copy. What its packages inherit stays.
fn workspace(mut whole: toml::Table) -> Result<toml::Table> {
    let workspace = whole.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("no [workspace]")?;
    workspace.insert("members".into(), MEMBERS.to_vec().into());
    workspace.remove("default-members");
    if let Some(packages) =
        whole["profile"]["dev"].get_mut("package").and_then(|p| p.as_table_mut())
    {
        packages.retain(|name, _| !name.starts_with("xtask"));
    }
    Ok(whole)
}

/// The package of the tests, without what its other tests need.
fn package(mut tests: toml::Table) -> toml::Table {
    for gone in ["dependencies", "bench", "test", "lints"] {
        tests.remove(gone);
    }
    if let Some(needed) = tests.get_mut("dev-dependencies").and_then(|table| table.as_table_mut()) {
        needed.retain(|name, _| NEEDED.contains(&name));
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_left_out_as_its_language_wants_it() {
        let wipe = |file: &str, line: &str| {
            toml::from_str::<Wipe>(&format!("file = {file:?}\nline = {line:?}")).unwrap()
        };
        assert_eq!(without(&wipe("a.s", "movdqa [rsp], xmm0")), "");
        assert_eq!(without(&wipe("a.rs", "\"movups [rdi], xmm0\",")), "");
        assert_eq!(without(&wipe("a.rs", "wipe(out, len);")), "if false { wipe(out, len); }");
    }

    #[test]
    fn the_copy_needs_nothing_of_xtask() {
        let read = |file: &str| fs::read_to_string(paths::source(file)).unwrap().parse().unwrap();
        let tests = package(read(TESTS)).to_string();
        assert!(tests.contains("proptest") && !tests.contains("xtask"), "{tests}");
        let whole = workspace(read("Cargo.toml")).unwrap();
        assert_eq!(whole["workspace"]["members"].as_array().unwrap().len(), MEMBERS.len());
    }
}
