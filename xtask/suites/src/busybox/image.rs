//! The initramfs that holds BusyBox's tests: upstream's files as they are, and our runner as `/init`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use super::fetch::Busybox;
use xtask_guest::initramfs::Tree;
use xtask_host::{paths, process};

/// The tests of `bc.tests` that write millions of lines through pipes; only the full form has them.
pub const SLOW: [&str; 2] = ["bc parsing of numbers", "bc printing of numbers"];

/// Helper programs of `shell/ash_test`, which its runner would compile itself if it found a compiler.
const ASH_HELPERS: [&str; 3] = ["printenv", "recho", "zecho"];

/// Names that the tests look up. Without the host's own one in `hosts`, `hostname -d` would ask a server.
const ETC: [(&str, &str); 3] = [
    (
        "passwd",
        "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
    ),
    ("group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost alea.local alea\n"),
];

/// Writes the archive for `busybox` to `file`.
pub fn write(busybox: &Busybox, file: &Path) -> Result<()> {
    let mut tree = Tree::skeleton();
    tree.char_device("dev/ptmx", 0o666, (5, 2));
    for dir in ["bb", "sbin", "usr/bin", "usr/sbin"] {
        tree.dir(dir, 0o755);
    }
    for (name, text) in ETC {
        tree.file(&format!("etc/{name}"), 0o644, text);
    }
    tree.host_file("bin/busybox", 0o755, &busybox.binary())?;
    tree.host_file("init", 0o755, &paths::alea().join("userland/suite"))?;
    tree.host_file("suite/run", 0o755, &paths::source("tests/busybox/run.sh"))?;
    tree.host_file("suite/bb/.config", 0o644, &busybox.source("debian/config/pkg/static"))?;
    tree.dir("suite/bb/testsuite", 0o755);
    tree.overlay_at(&busybox.source("testsuite"), "suite/bb/testsuite/")?;
    let bc = fs::read_to_string(busybox.source("testsuite/bc.tests"))?;
    tree.file("suite/light/bc.tests", 0o755, light(&bc)?);
    tree.dir("suite/bb/shell/ash_test", 0o755);
    tree.overlay_at(&busybox.source("shell/ash_test"), "suite/bb/shell/ash_test/")?;
    for (name, program) in ash_helpers(busybox)? {
        tree.host_file(&format!("suite/bb/shell/ash_test/{name}"), 0o755, &program)?;
    }
    // By rename: another part of a divided run may just start a guest from it.
    let mut new = NamedTempFile::new_in(paths::alea())?;
    new.write_all(&tree.archive())?;
    new.persist(file).with_context(|| paths::shown(file))?;
    Ok(())
}

/// `bc.tests` without its [`SLOW`] tests, all else as it is.
fn light(bc: &str) -> Result<String> {
    let mut text = bc.to_owned();
    for name in SLOW {
        let start = text.find(&format!("testing \"{name}\""));
        let start = start.with_context(|| format!("bc.tests has no test {name:?}"))?;
        let end = text[start..].find("\n}'\n").context("the test has no end")?;
        text.replace_range(start..start + end + "\n}'\n".len(), "");
    }
    Ok(text)
}

fn ash_helpers(busybox: &Busybox) -> Result<Vec<(&'static str, PathBuf)>> {
    let into = paths::alea().join("userland/ash_test");
    fs::create_dir_all(&into)?;
    let compile = |name: &'static str| {
        let program = into.join(name);
        let new = into.join(format!("{name}.{}", std::process::id()));
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu89", "-O2", "-s", "-w", "-static", "-o"]).arg(&new);
        process::output(gcc.arg(busybox.source(&format!("shell/ash_test/{name}.c"))))?;
        fs::rename(&new, &program)?;
        Ok((name, program))
    };
    ASH_HELPERS.into_iter().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_slow_tests_go() {
        let bc = "testing \"a\" \\\n\t\"bc\"\n\ntesting \"bc parsing of numbers\" \\\n\t\"\" '\nfor {\n}'\n\n\
            testing \"bc printing of numbers\" \\\n\t\"\" '\nfor {\n}'\n\nfor f in x; do\n";
        assert_eq!(light(bc).unwrap(), "testing \"a\" \\\n\t\"bc\"\n\n\n\nfor f in x; do\n");
        assert!(light("testing \"a\"\n").is_err());
    }
}
