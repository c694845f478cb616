//! A small Debian: dynamic glibc, Python with its own tests, bash, perl and coreutils.
//!
//! The packages are downloaded and unpacked below `target/`, and never installed.

use std::fs;

use anyhow::Result;

use xtask_guest::initramfs::Tree;
use xtask_host::paths;
use xtask_setup::apt::Apt;

/// The test modules that are run.
pub const MODULES: [&str; 8] = [
    "test_threading",
    "test_subprocess",
    "test_socket",
    "test_os",
    "test_signal",
    "test_select",
    "test_mmap",
    "test_random",
];

/// Scripts of `tests/runtimes`.
pub const SCRIPTS: [&str; 4] = ["threads.py", "webserver.py", "processes.bash", "processes.pl"];

const RELEASE: &str = "bookworm";

const PACKAGES: [&str; 24] = [
    "libc6",
    "libgcc-s1",
    "zlib1g",
    "libexpat1",
    "libssl3",
    "libffi8",
    "libbz2-1.0",
    "liblzma5",
    "libcrypt1",
    "libuuid1",
    "libtinfo6",
    "libselinux1",
    "libpcre2-8-0",
    "libacl1",
    "libattr1",
    "libgmp10",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "python3.11-minimal",
    "libpython3.11-testsuite",
    "bash",
    "coreutils",
    "perl-base",
    "media-types",
];

/// Adds the small Debian.
pub fn add(tree: &mut Tree) -> Result<()> {
    let root = paths::alea().join("runtimes").join(RELEASE);
    let done = root.join(".complete");
    if !done.exists() {
        fs::create_dir_all(&root)?;
        let apt = Apt::of_release(RELEASE)?;
        for package in PACKAGES {
            apt.extract(package, &root)?;
        }
        for useless in ["usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info"] {
            let dir = root.join(useless);
            if dir.exists() {
                fs::remove_dir_all(dir)?;
            }
        }
        fs::write(done, "")?;
    }
    tree.overlay(&root)?;
    tree.symlink("usr/bin/python3", "python3.11");
    tree.symlink("usr/bin/env", "/bin/busybox");
    for script in SCRIPTS {
        let from = paths::source(&format!("tests/runtimes/{script}"));
        tree.host_file(&format!("usr/lib/alea/scripts/{script}"), 0o755, &from)?;
    }
    Ok(())
}
