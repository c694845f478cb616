//! Linux's self tests, `tools/testing/selftests`: their source out of Debian's package, and compiling one.
//!
//! The source (150 MB) and the headers that its tests are written for are unpacked below `target/alea/selftests`, and never kept in git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask_host::{paths, process};
use xtask_setup::apt::Apt;

/// The source package and what of it is needed.
const PACKAGE: &str = "linux-source-6.12";
const PARTS: [&str; 3] = ["tools/testing/selftests", "tools/include", "include/uapi"];

/// Headers of that Linux and of libcap, and the libraries.
const HEADERS: [&str; 2] = ["linux-libc-dev", "libcap-dev"];

/// One test: its folder, its name, and what else gcc is given: further sources of the folder, and libraries.
pub struct SelfTest {
    pub folder: &'static str,
    pub name: &'static str,
    pub more: &'static [&'static str],
}

/// Which headers a test is written for: those of the source itself, or those that Linux installs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    Source,
    Installed,
}

/// What is unpacked, complete.
pub struct SelfTests {
    folder: PathBuf,
}

impl SelfTests {
    /// Fetches what is not there yet.
    pub fn open() -> Result<Self> {
        let folder = paths::alea().join("selftests");
        let done = folder.join(".complete");
        if !done.exists() {
            fs::create_dir_all(&folder)?;
            let scratch = tempfile::tempdir_in(&folder)?;
            let apt = Apt::open()?;
            apt.extract(PACKAGE, scratch.path())?;
            let tar = scratch.path().join(format!("usr/src/{PACKAGE}.tar.xz"));
            let mut unpack = Command::new("tar");
            unpack.arg("-xJf").arg(tar).arg("-C").arg(&folder);
            unpack.args(PARTS.map(|part| format!("{PACKAGE}/{part}")));
            process::run("unpacking the Linux source", &mut unpack)?;
            for package in HEADERS {
                apt.extract(package, &folder.join("headers"))?;
            }
            fs::write(done, "")?;
        }
        Ok(Self { folder })
    }

    /// Compiles a test, static, and gives the program.
    pub fn compile(&self, test: &SelfTest, headers: Headers) -> Result<PathBuf> {
        let source = self.folder.join(PACKAGE);
        let folder = source.join("tools/testing/selftests").join(test.folder);
        let program = self.folder.join(test.name);
        let mut gcc = Command::new("gcc");
        gcc.args(["-static", "-std=gnu99", "-O2", "-w", "-pthread", "-D_GNU_SOURCE="]);
        match headers {
            Headers::Source => gcc
                .arg("-D__EXPORTED_HEADERS__")
                .arg("-isystem")
                .arg(source.join("tools/include"))
                .arg("-isystem")
                .arg(source.join("include/uapi")),
            Headers::Installed => self.installed(&mut gcc),
        };
        gcc.arg("-o").arg(&program).arg(folder.join(format!("{}.c", test.name)));
        for more in test.more {
            if more.starts_with('-') {
                gcc.arg(more);
            } else {
                gcc.arg(folder.join(more));
            }
        }
        gcc.arg("-ldl");
        process::output(&mut gcc).with_context(|| format!("{} does not compile", test.name))?;
        Ok(program)
    }

    fn installed<'a>(&self, gcc: &'a mut Command) -> &'a mut Command {
        let usr = self.folder.join("headers/usr");
        let machine = Path::new("x86_64-linux-gnu");
        gcc.arg("-isystem").arg(usr.join("include"));
        gcc.arg("-isystem").arg(usr.join("include").join(machine));
        gcc.arg("-L").arg(usr.join("lib").join(machine))
    }
}
