//! Wipes that a test on the host shows: each is left out in a copy of the sources, and the test that the list names has to fail.
//!
//! The copy has what the tests compile and nothing else, so that it is built in seconds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, ensure};

use super::list::{Wipe, tracked};
use xtask_host::tally::Tally;
use xtask_host::{paths, process};

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
    let is_ours = |wipe: &&Wipe| wipe.test.is_some();
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
    let which = Which::of(file)?;
    let run = |words: &[&str]| -> Result<Output> {
        let mut cargo = process::cargo();
        cargo.current_dir(tree).args(["test", "--quiet", "--package", which.package]);
        match which.target {
            None => cargo.arg("--lib"),
            Some(target) => cargo.args(["--test", target]),
        };
        cargo.arg("--target-dir").arg(tree.with_file_name("host-build")).args(words);
        cargo.output().context("cannot start cargo")
    };
    let built = run(&["--no-run"])?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success(), "{file} does not compile:\n{said}");
    let ran = run(&[name])?;
    let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let output = said.concat();
    ensure!(
        output.contains("running 1 test\n"),
        "{file} has no test {name}, or several:\n{output}"
    );
    Ok((ran.status.success(), output))
}

/// What cargo calls the program of a test.
#[derive(Debug, PartialEq, Eq)]
struct Which<'a> {
    package: &'static str,
    /// None for those of the library itself.
    target: Option<&'a str>,
}

impl<'a> Which<'a> {
    /// Of a file of tests.
    fn of(file: &'a str) -> Result<Self> {
        const PLACES: [(&str, &str); 3] = [
            ("kernel/random/tests/", "alea-random"),
            ("kernel/vdso/tests/", "alea-vdso"),
            ("tests/tests/", "alea-tests"),
        ];
        if file.starts_with("kernel/random/src/") {
            return Ok(Self { package: "alea-random", target: None });
        }
        let of = |(place, package)| Some((file.strip_prefix(place)?, package));
        let (name, package) = PLACES.into_iter().find_map(of).context("no package has it")?;
        let target = name.split('/').next().unwrap_or(name).trim_end_matches(".rs");
        Ok(Self { package, target: Some(target) })
    }
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
    let dev = whole.get_mut("profile").and_then(|profile| profile.get_mut("dev"));
    let dev = dev.and_then(toml::Value::as_table_mut).context("no [profile.dev]")?;
    dev.insert("debug".into(), false.into());
    if let Some(packages) = dev.get_mut("package").and_then(toml::Value::as_table_mut) {
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
    fn a_test_is_found_by_its_file() {
        let of = |file| Which::of(file).map(|which| (which.package, which.target));
        assert_eq!(of("kernel/random/src/vdso/tests.rs").unwrap(), ("alea-random", None));
        assert_eq!(of("kernel/random/tests/vdso.rs").unwrap(), ("alea-random", Some("vdso")));
        assert_eq!(of("tests/tests/virtio/crb.rs").unwrap(), ("alea-tests", Some("virtio")));
        assert!(of("kernel/tty/tests/echo.rs").is_err());
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
