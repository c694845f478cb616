//! `cargo xtask build`: the kernel, the guest's programs, and the initramfs, into `target/alea/`.
//!
//! The artefacts are replaced whole, by rename: a guest that is being started never sees half a
//! file, and one whose inputs did not change keeps its time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::setup::{self, Need, TARGET, UEFI_TARGET};
use xtask_guest::initramfs::Tree;
use xtask_guest::{kallsyms, relocs};
use xtask_host::{paths, process, term};

/// The flags that every guest program is compiled with.
const CFLAGS: [&str; 6] = ["-std=gnu17", "-O2", "-g0", "-pthread", "-Wall", "-Wextra"];

/// What a program asks for whose symbols a debugger looks up; others lose theirs.
const KEEP_SYMBOLS: &str = "-Wl,--strip-debug";

/// Builds the kernel and the initramfs.
#[derive(Args, Default)]
pub struct Build {
    #[command(flatten)]
    pub options: Options,
}

/// How to build, for every command that builds first.
#[derive(Args, Default, Clone, Copy)]
pub struct Options {
    /// Build a slower kernel that checks lock order and invariants
    #[arg(long)]
    pub debug_assertions: bool,
    /// Build the kernel that is measured and shipped: faster, but slow to build
    #[arg(long, conflicts_with = "debug_assertions")]
    pub lto: bool,
}

impl Options {
    /// The kernel that is measured and shipped.
    pub const SHIPPED: Self = Self { debug_assertions: false, lto: true };

    /// The options that ask for it.
    pub fn words(self) -> Vec<String> {
        let all = [("--debug-assertions", self.debug_assertions), ("--lto", self.lto)];
        all.into_iter().filter(|(_, is_asked)| *is_asked).map(|(word, _)| word.into()).collect()
    }
}

impl Build {
    pub fn run(self) -> Result<ExitCode> {
        build(self.options)?;
        let archives = [paths::initramfs(), paths::programs_initramfs(), paths::tests_initramfs()];
        for file in [paths::kernel()].into_iter().chain(archives) {
            let size = fs::metadata(&file)?.len();
            println!("{:>9} KiB  {}", size.div_ceil(1024), paths::shown(&file));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Sets up what building needs, then builds everything that is not up to date.
pub fn build(options: Options) -> Result<()> {
    setup::ensure(&[Need::RustTarget])?;
    kernel(options, &paths::kernel(), &[])?;
    initramfs()
}

/// The same without the programs that tests and benchmarks run: what boots to a shell.
pub fn build_own(options: Options) -> Result<()> {
    setup::ensure(&[Need::RustTarget])?;
    kernel(options, &paths::kernel(), &[])?;
    own_initramfs()
}

/// The kernel that checks lock order and invariants, beside the one that is built already.
pub fn checking_kernel() -> Result<()> {
    kernel(Options { debug_assertions: true, lto: false }, &paths::checking_kernel(), &[])
}

/// The kernel that is measured and shipped, beside the one that is built already.
pub fn shipped_kernel() -> Result<()> {
    kernel(Options::SHIPPED, &paths::shipped_kernel(), &[])
}

/// The kernel with all that a debugger knows of types and variables, beside the one that is built already.
pub fn debugger_kernel() -> Result<()> {
    setup::ensure(&[Need::RustTarget])?;
    build_kernel("kernel-gdb", &paths::debugger_kernel(), &[])
}

/// The kernel alone, for what needs no programs in the guest.
pub fn kernel_alone() -> Result<()> {
    setup::ensure(&[Need::RustTarget])?;
    kernel(Options::default(), &paths::kernel(), &[])
}

/// The kernel that is shipped, with its symbols, and with no path of this machine: `/alea` stands for the repository in its debug
/// information, and `/cargo` for where cargo keeps what it downloads.
pub fn distributed_kernel(into: &Path) -> Result<()> {
    let home = std::env::home_dir().context("no home folder")?.join(".cargo");
    let home = std::env::var_os("CARGO_HOME").map_or(home, PathBuf::from);
    let remap = |from: &Path, to: &str| format!("'--remap-path-prefix={}={to}'", from.display());
    let flags = [remap(paths::root(), "/alea"), remap(&home, "/cargo")].join(",");
    let target = paths::root().join("target/dist");
    kernel(
        Options::SHIPPED,
        into,
        &[
            "--locked".to_owned(),
            format!("--target-dir={}", target.display()),
            format!("--config=target.{TARGET}.rustflags=[{flags}]"),
        ],
    )
}

/// The kernel's package and program.
const KERNEL: &str = "alea-kernel";

/// One kernel.
fn kernel(options: Options, into: &Path, more: &[String]) -> Result<()> {
    let profile = match options {
        Options { debug_assertions: true, .. } => "kernel-debug",
        Options { lto: true, .. } => "kernel-lto",
        _ => "kernel",
    };
    let mut more = more.to_vec();
    if options.lto && !options.debug_assertions {
        more.push(format!("--config=target.{TARGET}.rustflags=['-Cllvm-args={INLINING}']"));
    }
    build_kernel(profile, into, &more)
}

/// How readily the kernel that is measured and shipped is inlined. LLVM's own threshold, 250, costs fork_exit and exec_true 2 %
/// more instructions; twice this one saves exec_true 2 % more, and fork_exit nothing, for 300 KiB.
const INLINING: &str = "-inline-threshold=400";

fn build_kernel(profile: &str, into: &Path, more: &[String]) -> Result<()> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--package", KERNEL, "--target", TARGET, "--profile", profile]);
    cargo.args(MESSAGES).args(more);
    built(cargo, KERNEL, into)
}

/// Process 1 of a guest that runs one command, with glibc in it.
fn init() -> Result<()> {
    let mut cargo = process::cargo();
    cargo.args(["rustc", "--package", "alea-init", "--bin", "alea-init", "--profile", "guest"]);
    // What is shipped is made in its own clone, wherever the tools are (`CARGO_TARGET_DIR`).
    cargo.arg("--target-dir").arg(paths::root().join("target"));
    cargo.args(MESSAGES).args(["--", "-C", "target-feature=+crt-static"]);
    built(cargo, "alea-init", &paths::init())
}

/// The boot loader of the tests of UEFI machines.
pub fn uefi_loader() -> Result<()> {
    setup::provide_target(UEFI_TARGET)?;
    let mut cargo = process::cargo();
    cargo.args(["build", "--package", UEFI_LOADER, "--target", UEFI_TARGET, "--profile", "guest"]);
    cargo.args(MESSAGES);
    built(cargo, UEFI_LOADER, &paths::uefi_loader())
}

pub const UEFI_LOADER: &str = "alea-uefi-loader";

/// Cargo says what it made, and of its progress only what is wrong.
const MESSAGES: [&str; 3] = ["--quiet", "--message-format", "json-render-diagnostics"];

/// Runs a cargo that builds the program `name`, and puts that into `into`.
fn built(mut cargo: Command, name: &str, into: &Path) -> Result<()> {
    let bar = term::silent_spinner(&format!("building {name}"));
    let out = cargo.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    bar.finish_and_clear();
    if !out.status.success() {
        bail!("{name} does not build");
    }
    let file = executable(&String::from_utf8_lossy(&out.stdout), name)
        .with_context(|| format!("cargo built {name} and did not say where it is"))?;
    let mut bytes = fs::read(&file).with_context(|| file.display().to_string())?;
    if name == KERNEL {
        kallsyms::put_into(&mut bytes)?;
        relocs::put_into(&mut bytes)?;
        bytes = without_relocations(&bytes)?;
    }
    replace(into, &bytes)
}

/// The kernel without the linker's notes, which have served: with those of its debug information it is twice as long.
fn without_relocations(kernel: &[u8]) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(KERNEL);
    fs::write(&file, kernel)?;
    process::output(Command::new("objcopy").arg("--remove-relocations=*").arg(&file))?;
    fs::read(&file).context("objcopy left no kernel")
}

/// The path of the executable `name` in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let parsed = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut found = parsed.filter_map(|message: serde_json::Value| {
        let named = message["target"]["name"] == name;
        named.then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    found.next_back()
}

/// The programs that are in the initramfs of users: what measures, and what shows. All others would only take their memory.
const FOR_USERS: [&str; 2] = ["userland/bench", TOOLS];

/// Those of them that users call by name.
const TOOLS: &str = "userland/tools";

/// The guest's programs and the three archives, each of which holds the one before, without the kernel.
pub fn initramfs() -> Result<()> {
    let (mut tree, own) = own_tree()?;
    let steps = [
        ("userland", paths::alea().join("userland"), "usr/lib/alea", paths::programs_initramfs()),
        (
            "tests/abi",
            paths::alea().join("userland/abi"),
            "usr/lib/alea/abi",
            paths::tests_initramfs(),
        ),
    ];
    for (from, into, folder, archive) in steps {
        for (name, file) in compile_all(&paths::source(from), &into)? {
            if !own.contains(&name) {
                tree.host_file(&format!("{folder}/{name}"), 0o755, &file)?;
            }
        }
        replace(&archive, &tree.archive())?;
    }
    Ok(())
}

/// The first of them alone: what boots to a shell.
pub fn own_initramfs() -> Result<()> {
    own_tree().map(drop)
}

/// What is in the first archive, which is written, and the names of its compiled programs.
fn own_tree() -> Result<(Tree, Vec<String>)> {
    setup::ensure(&[Need::Compiler, Need::Busybox])?;
    init()?;
    let mut tree = Tree::with_busybox()?;
    let overlay = paths::source("userland/root");
    if overlay.exists() {
        tree.overlay(&overlay)?;
    }
    for tool in files_below(&paths::source(TOOLS), "c")? {
        let name = program_of(&tool).context("an odd file name")?;
        tree.symlink(&format!("usr/bin/{name}"), &format!("/usr/lib/alea/{name}"));
    }
    let mut names = Vec::new();
    for folder in FOR_USERS {
        for (name, file) in compile_all(&paths::source(folder), &paths::alea().join("userland"))? {
            tree.host_file(&format!("usr/lib/alea/{name}"), 0o755, &file)?;
            names.push(name);
        }
    }
    replace(&paths::initramfs(), &tree.archive())?;
    Ok((tree, names))
}

/// What the program of a source is called.
fn program_of(source: &Path) -> Option<&str> {
    source.file_stem()?.to_str()
}

/// Folders with headers that guest programs share; what only one program includes lies beside it.
const HEADERS: [&str; 2] = ["userland", "tests/abi"];

/// What is written in assembly belongs to the programs of its folder.
const ASSEMBLY: &str = "S";

/// Compiles every C file below `from` that is newer than its program in `into`.
fn compile_all(from: &Path, into: &Path) -> Result<Vec<(String, PathBuf)>> {
    let sources = files_below(from, "c")?;
    fs::create_dir_all(into)?;
    let mut newest_header = None;
    for folder in HEADERS {
        for shared in ["h", ASSEMBLY] {
            let files = files_below(&paths::source(folder), shared)?;
            newest_header = newest_header.max(files.iter().filter_map(|file| modified(file)).max());
        }
    }
    let mut programs = Vec::new();
    let mut stale = Vec::new();
    for source in sources {
        let name = program_of(&source).context("an odd file name")?;
        let program = into.join(name);
        let inputs = [modified(&source), newest_header];
        let newest = inputs.into_iter().flatten().max();
        if modified(&program).is_none_or(|built| newest.is_some_and(|newest| newest >= built)) {
            stale.push((source.clone(), program.clone()));
        }
        programs.push((name.to_owned(), program));
    }
    compile(&stale)?;
    Ok(programs)
}

/// Compiles in as many threads as there are CPUs, behind a bar.
fn compile(stale: &[(PathBuf, PathBuf)]) -> Result<()> {
    if stale.is_empty() {
        return Ok(());
    }
    let bar = term::bar(stale.len() as u64, "compiling guest programs");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = stale.len().div_ceil(threads);
    let result = std::thread::scope(|scope| {
        let compile_share = |share: &'_ [(PathBuf, PathBuf)]| {
            share.iter().try_for_each(|(source, program)| {
                let result = compile_one(source, program);
                bar.inc(1);
                result
            })
        };
        let shares: Vec<_> =
            stale.chunks(share).map(|share| scope.spawn(move || compile_share(share))).collect();
        shares.into_iter().try_for_each(|thread| thread.join().expect("a compiler thread panicked"))
    });
    bar.finish_and_clear();
    result
}

fn compile_one(source: &Path, program: &Path) -> Result<()> {
    let text = fs::read_to_string(source)?;
    let own = own_flags(&text);
    let mut gcc = Command::new("gcc");
    for folder in HEADERS {
        gcc.arg("-I").arg(paths::source(folder));
    }
    // A failed assertion tells the file, and the same bytes come of it in every folder.
    gcc.arg(format!("-ffile-prefix-map={}/=", paths::root().display()));
    gcc.args(CFLAGS).arg("-o").arg(program).arg(source);
    gcc.args(files_below(source.parent().context("a source has a folder")?, ASSEMBLY)?).args(&own);
    if !own.iter().any(|flag| flag.contains("static") || flag == "-dynamic") {
        gcc.arg("-static");
    }
    if !own.iter().any(|flag| flag == KEEP_SYMBOLS) {
        gcc.arg("-s");
    }
    process::output(&mut gcc).map(drop)
}

/// Flags that a source asks for in a line `cflags: ...` of its opening comment. `-static-pie` or
/// `-no-static` there replace `-static`.
fn own_flags(text: &str) -> Vec<String> {
    let line = text.lines().take(20).find_map(|line| line.split("cflags:").nth(1));
    let words = line.unwrap_or("").split_whitespace().take_while(|word| *word != "*/");
    words.map(str::to_owned).collect()
}

/// The files of `dir` and of the folders in it, sorted.
pub fn files_below(dir: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|e| e == extension) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|data| data.modified()).ok()
}

/// Writes `bytes` to `file` unless it already holds them.
fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let dir = file.parent().context("an artefact has a folder")?;
    fs::create_dir_all(dir)?;
    let half = tempfile::NamedTempFile::new_in(dir)?;
    fs::write(half.path(), bytes)?;
    let temporary = half.into_temp_path();
    temporary.persist(file).with_context(|| format!("cannot write {}", file.display()))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(file, mode)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_found_in_cargos_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"alea-random\"},\
            \"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"alea-kernel\"},\
            \"executable\":\"/t/alea-kernel\"}\n{\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages, "alea-kernel"), Some(PathBuf::from("/t/alea-kernel")));
        assert_eq!(executable("not json\n", "alea-kernel"), None);
    }

    #[test]
    fn a_program_may_ask_for_flags() {
        assert_eq!(
            own_flags("/* Checks x.\n * cflags: -static-pie -lm */\nint main;"),
            ["-static-pie", "-lm"]
        );
        assert!(own_flags("int main(void) { return 0; }").is_empty());
    }

    #[test]
    fn equal_bytes_leave_the_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sub/artefact");
        replace(&file, b"one").unwrap();
        let before = modified(&file);
        replace(&file, b"one").unwrap();
        assert_eq!(modified(&file), before);
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing left over");
    }
}
