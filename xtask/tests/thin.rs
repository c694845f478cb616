//! `cargo xtask --help` answers within seconds of a fresh clone, because it compiles one small package.
#![forbid(unsafe_code)]

use std::process::Command;

#[test]
fn the_command_line_is_compiled_alone() {
    let cargo = std::env::var_os("CARGO").expect("cargo test sets CARGO");
    let tree = Command::new(cargo)
        .args(["tree", "--offline", "--package", "xtask", "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&tree.stdout);
    let crates: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(crates, ["xtask"], "{}", String::from_utf8_lossy(&tree.stderr));
}

#[test]
fn the_alias_starts_it() {
    let config = include_str!("../../.cargo/config.toml");
    assert!(config.contains("xtask = \"run --quiet --package xtask --\""), "{config}");
}

/// What the program prints and with which status it ends, for those arguments.
fn program(args: &[&str]) -> (String, Option<i32>) {
    let out = Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), out.status.code())
}

#[test]
fn help_needs_no_other_program() {
    let (text, status) = program(&["--help"]);
    assert!(text.contains("Usage: cargo xtask <COMMAND>") && text.contains("  run "), "{text}");
    assert_eq!(status, Some(0));
    let (text, status) = program(&["runn"]);
    assert!(text.contains("no command runn"), "{text}");
    assert_eq!(status, Some(2));
}
