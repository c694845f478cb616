//! The options of a run, and what they come to: an archive, a machine and a task.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alea_init::Task;
use anyhow::{Context, Result, ensure};
use clap::Args;
use tempfile::TempPath;
use xtask_guest::qemu::{Machine, MachineArgs};
use xtask_host::{paths, term};
use xtask_setup::setup;

use crate::cache;
use crate::oci::Wishes;
use crate::session::Session;

/// One command on a root of the user's own.
#[derive(Args)]
pub struct RunOptions {
    /// The root: a folder, a tar (plain, gzip, xz, zstd), or an OCI image layout (folder or tar)
    #[arg(long, value_name = "DIR|FILE", help_heading = "One command on a root of your own")]
    pub root: Option<PathBuf>,
    /// The root as a ready-made initramfs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["root", "overlay"])]
    #[arg(help_heading = "One command on a root of your own")]
    pub initrd: Option<PathBuf>,
    /// A folder whose files are laid over the root; may be given several times
    #[arg(long, value_name = "DIR", requires = "root")]
    #[arg(help_heading = "One command on a root of your own")]
    pub overlay: Vec<PathBuf>,
    /// A variable for the command (NAME alone: with its value here); may be given several times
    #[arg(long, value_name = "NAME=VALUE", help_heading = "One command on a root of your own")]
    pub env: Vec<OsString>,
    /// Where the command runs in the guest
    #[arg(long, value_name = "DIR", help_heading = "One command on a root of your own")]
    pub workdir: Option<OsString>,
    /// Who runs it, by name or number
    #[arg(long, value_name = "USER[:GROUP]", help_heading = "One command on a root of your own")]
    pub user: Option<OsString>,
    /// Bring a file or folder of the guest back when the command has ended; may be given several times
    #[arg(long, value_name = "GUESTDIR:HOSTDIR")]
    #[arg(help_heading = "One command on a root of your own")]
    pub out: Vec<String>,
    /// Boot the root's own init instead of one command: it is process 1, and the serial line is its console
    #[arg(long, value_name = "PROGRAM", requires = "root")]
    #[arg(conflicts_with_all = ["command", "env", "workdir", "user", "out", "timing"])]
    #[arg(help_heading = "One command on a root of your own")]
    pub init: Option<String>,
    /// `alea`, `linux` (Debian's), or the path of a kernel image
    #[arg(long, value_name = "alea|linux|PATH", default_value = "alea")]
    #[arg(help_heading = "One command on a root of your own")]
    pub kernel: String,
    /// Stop the guest after this many seconds, with status 124
    #[arg(long, value_name = "SECONDS", help_heading = "One command on a root of your own")]
    pub timeout: Option<u64>,
    /// Say when QEMU was started and when the command ran
    #[arg(long, help_heading = "One command on a root of your own")]
    pub timing: bool,
    /// Halt the machine before its first instruction, and say how gdb is attached
    #[arg(long)]
    pub debug: bool,
    /// The command, with its arguments; default: the image's own, or a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Words added to the kernel command line
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    pub append: String,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// What boots, and is removed afterwards if it was made for this run alone.
enum Archive {
    Kept(PathBuf),
    Own(TempPath),
}

impl Archive {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Own(path) => path,
        }
    }
}

impl RunOptions {
    /// Whether one command is to be run, or a root of the user's own.
    pub fn wanted(&self) -> bool {
        self.root.is_some() || self.initrd.is_some() || !self.command.is_empty()
    }

    /// Whether the kernel and process 1 must be built first: both by [`xtask_setup::build`].
    pub fn wants_alea(&self) -> bool {
        self.kernel == "alea"
    }

    /// Runs the command. What is built must be there. The exit status for this program.
    pub fn run(self) -> Result<u8> {
        let outs = self.outs()?;
        let (archive, wishes) = self.archive()?;
        let terminal = term::interactive();
        let task = self.task(wishes, terminal, outs.iter().map(|(guest, _)| guest.clone()))?;
        // Nobody sees the log unless something fails. Linux's takes seconds of a serial line's time.
        let quiet = if self.kernel == "linux" { " quiet" } else { "" };
        let init = format!("/{}{quiet}", alea_init::PROGRAM);
        let session = Session {
            machine: self.boots(&archive, &init, self.machine.quiet_machine()?)?,
            kernel: self.kernel_file()?,
            task,
            terminal,
            limit: self.timeout.map(Duration::from_secs),
            timing: self.timing,
            outs: outs.into_iter().map(|(_, host)| host).collect(),
        };
        session.run()
    }

    /// The machine whose process 1 is `init`, a program of the root's own.
    pub fn booting(&self, init: &str) -> Result<Machine> {
        let (archive, _) = self.archive()?;
        self.boots(&archive, init, self.machine.machine()?)
    }

    fn boots(&self, archive: &Archive, init: &str, machine: Machine) -> Result<Machine> {
        // On a busy host Linux misses ticks of the timer that it checks, and panics.
        let line = format!(
            "console=ttyS0 panic=-1 no_timer_check {} rdinit={init} {}",
            self.root_size(),
            self.append
        );
        let machine = match &self.machine.memory {
            None => machine.memory(&memory_for(archive.path())?),
            Some(_) => machine,
        };
        let kernel = self.kernel_file()?;
        Ok(machine.debugged(self.debug).direct(
            &kernel,
            Some(archive.path().to_owned()),
            line.trim_end(),
        ))
    }

    /// More than the half of memory that a root has otherwise, unless the user says how much.
    fn root_size(&self) -> &'static str {
        let is_of_root = |word: &str| {
            ["initramfs_options=", "rootflags="].iter().any(|name| word.starts_with(name))
        };
        if self.append.split_whitespace().any(is_of_root) {
            ""
        } else {
            "initramfs_options=size=75%"
        }
    }

    /// The kernel's image.
    pub fn kernel_file(&self) -> Result<PathBuf> {
        setup::kernel_image(&self.kernel)
    }

    /// The root, packed, and what it says of how it wants to be run.
    fn archive(&self) -> Result<(Archive, Wishes)> {
        paths::require(&[paths::init(), paths::initramfs()])?;
        if let Some(root) = &self.root {
            ensure!(root.exists(), "{} is not there", paths::shown(root));
            let packed = cache::packed(root, &self.overlay)?;
            return Ok((Archive::Kept(packed.archive), packed.wishes));
        }
        let own = paths::initramfs();
        let archive = with_init(self.initrd.as_ref().unwrap_or(&own))?;
        Ok((Archive::Own(archive), Wishes::default()))
    }

    /// What is brought back, and where to.
    fn outs(&self) -> Result<Vec<(Vec<u8>, PathBuf)>> {
        let one = |pair: &String| {
            let (guest, host) = pair.split_once(':').context("--out wants GUESTDIR:HOSTDIR")?;
            ensure!(guest.starts_with('/'), "--out {pair}: the guest's path must be absolute");
            ensure!(!host.is_empty(), "--out {pair}: no folder of this machine");
            Ok((guest.as_bytes().to_vec(), PathBuf::from(host)))
        };
        self.out.iter().map(one).collect()
    }

    fn task(
        &self,
        wishes: Wishes,
        terminal: bool,
        out: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Task> {
        let words = |words: &[OsString]| words.iter().cloned().map(OsString::into_vec).collect();
        let texts = |texts: Option<Vec<String>>| texts.unwrap_or_default().into_iter();
        let mut args: Vec<Vec<u8>> = words(&self.command);
        if args.is_empty() {
            let own = texts(wishes.entrypoint).chain(texts(wishes.cmd));
            args = own.map(String::into_bytes).collect();
        }
        if args.is_empty() {
            args = vec![b"/bin/sh".to_vec()];
        }
        let mut env: Vec<Vec<u8>> = texts(wishes.env).map(String::into_bytes).collect();
        if terminal && let Some(name) = std::env::var_os("TERM") {
            env.push([b"TERM=", &name.into_vec()[..]].concat());
        }
        for pair in &self.env {
            let mut bytes = pair.clone().into_vec();
            if !bytes.contains(&b'=') {
                let Some(value) = std::env::var_os(pair) else { continue };
                bytes.push(b'=');
                bytes.extend(value.into_vec());
            }
            ensure!(bytes[0] != b'=', "--env {}: no name", pair.display());
            env.push(bytes);
        }
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let own = |given: &Option<OsString>, wish: Option<String>| {
            given.clone().map(OsString::into_vec).or_else(|| filled(wish).map(String::into_bytes))
        };
        let (columns, rows) = term::size().unwrap_or((80, 24));
        Ok(Task {
            args,
            env,
            workdir: own(&self.workdir, wishes.working_dir),
            user: own(&self.user, wishes.user),
            terminal: terminal.then_some((rows, columns)),
            out: out.collect(),
        })
    }
}

/// A copy of an initramfs with process 1 behind it, as an archive of its own.
fn with_init(initramfs: &Path) -> Result<TempPath> {
    let shown = || paths::shown(initramfs);
    let mut from = File::open(initramfs).with_context(shown)?;
    let folder = paths::alea().join("roots");
    fs::create_dir_all(&folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let length = std::io::copy(&mut from, &mut file).with_context(shown)?;
    let padding = usize::try_from(length.next_multiple_of(512) - length)?;
    file.write_all(&vec![0; padding])?;
    let mut init = alea_cpio::Writer::new();
    init.dir(alea_init::FOLDER, 0o700);
    init.file(alea_init::PROGRAM, 0o700, &fs::read(paths::init())?);
    file.write_all(&init.finish())?;
    Ok(file.into_temp_path())
}

const MIB: u64 = 1 << 20;

/// Memory for a guest with that root: the archive, its contents, as much again for the root to grow, and the kernel.
/// What is compressed is taken for four times as large.
pub fn memory_for(archive: &Path) -> Result<String> {
    let mut start = [0; 5];
    let mut file = File::open(archive)?;
    let size = file.metadata()?.len();
    // A short file is no archive, which the guest says.
    let _ = std::io::Read::read(&mut file, &mut start)?;
    let contents = if start == *b"07070" { size } else { 4 * size };
    let needed = size + 2 * contents + 256 * MIB;
    Ok(format!("{}M", needed.div_ceil(64 * MIB) * 64))
}
