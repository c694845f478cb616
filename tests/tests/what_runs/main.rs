//! What README and docs/using.md say is so: the rows of `docs/runs.toml` that need nothing but BusyBox (`cargo xtask runs --debian`
//! tries the others), the way to an initramfs of one's own, and the files of /proc/alea.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use alea_tests::{alea, boot, in_turn};
use xtask_host::paths;

#[test]
fn what_readme_says_is_so() {
    assert_eq!(in_turn(xtask_suites::runs::check).unwrap(), 0, "rows of docs/runs.toml are wrong");
}

fn page() -> String {
    fs::read_to_string(paths::source("docs/using.md")).unwrap()
}

#[test]
fn proc_alea_is_as_documented() {
    let script = "mount -t proc proc /proc; cd /proc/alea; for f in $(find * -type f | sort); do \
                  echo = $f $(stat -c %a $f); done; poweroff -f";
    let line = format!("console=ttyS0 quiet rdinit=/bin/sh -- -c \"{script}\"");
    let outcome = boot(&alea().append(&line)).unwrap();
    let there: Vec<(&str, &str)> = outcome
        .output
        .lines()
        .filter_map(|line| line.trim_end().strip_prefix("= ")?.split_once(' '))
        .collect();
    let page = page();
    let (_, section) = page.split_once("\n## /proc/alea\n").unwrap();
    let documented: Vec<(&str, &str)> = section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | 0"))
        .filter_map(|(name, rest)| Some((name, rest.split_once(" |")?.0)))
        .collect();
    assert_eq!(there, documented, "{}", outcome.output);
}

#[test]
fn an_initramfs_is_made_as_documented() {
    let page = page();
    let (_, section) = page.split_once("\n## An initramfs of your own\n").unwrap();
    let command = section.lines().find_map(|line| line.strip_prefix("    ")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("my-root/bin")).unwrap();
    fs::copy(paths::busybox(), at("my-root/bin/busybox")).unwrap();
    let init = "#!/bin/busybox sh\necho my own init is $$\n/bin/busybox poweroff -f\n";
    fs::write(at("my-root/init"), init).unwrap();
    fs::set_permissions(at("my-root/init"), fs::Permissions::from_mode(0o755)).unwrap();
    // Not every host has cpio, and BusyBox has one.
    fs::create_dir(at("path")).unwrap();
    symlink(paths::busybox(), at("path/cpio")).unwrap();
    let path = format!("{}:{}", at("path").display(), std::env::var("PATH").unwrap());
    let made = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .current_dir(&folder)
        .status()
        .unwrap();
    assert!(made.success() && command.ends_with(">my.cpio"), "{command}");
    let outcome = boot(&alea().initrd(at("my.cpio"))).unwrap().powered_off().unwrap();
    assert!(outcome.output.contains("my own init is 1"), "{}", outcome.output);
}
