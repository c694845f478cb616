//! Where everything lies. The paths under `target/alea/` are stable: people type them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The repository's root folder.
pub fn root() -> &'static Path {
    let host = Path::new(env!("CARGO_MANIFEST_DIR"));
    host.ancestors().nth(2).unwrap_or(host)
}

/// A file or folder of the repository.
pub fn source(relative: &str) -> PathBuf {
    root().join(relative)
}

/// `target/alea`, the folder of all artefacts (whatever `CARGO_TARGET_DIR` says).
pub fn alea() -> PathBuf {
    root().join("target/alea")
}

/// The kernel, an ELF file with a PVH entry note.
pub fn kernel() -> PathBuf {
    alea().join("kernel.elf")
}

/// The kernel that checks lock order and invariants, as `ci` builds it beside the other.
pub fn checking_kernel() -> PathBuf {
    alea().join("kernel-checking.elf")
}

/// The kernel that is measured and shipped, where tests want it beside the other.
pub fn shipped_kernel() -> PathBuf {
    alea().join("kernel-shipped.elf")
}

/// The kernel with all that a debugger knows of types and variables.
pub fn debugger_kernel() -> PathBuf {
    alea().join("kernel-gdb.elf")
}

/// The boot loader of the tests of UEFI machines.
pub fn uefi_loader() -> PathBuf {
    alea().join("uefi-loader.efi")
}

/// The initramfs that users boot: BusyBox, and what measures.
pub fn initramfs() -> PathBuf {
    alea().join("initramfs.cpio")
}

/// The same with all programs of `userland` added.
pub fn programs_initramfs() -> PathBuf {
    alea().join("programs.cpio")
}

/// The same again with the ABI test programs of `tests/abi` added.
pub fn tests_initramfs() -> PathBuf {
    alea().join("tests.cpio")
}

/// Process 1 of a guest that runs one command.
pub fn init() -> PathBuf {
    alea().join("init")
}

/// A program of `userland`, as the archives have it.
pub fn program(name: &str) -> PathBuf {
    alea().join("userland").join(name)
}

/// Debian's Linux, extracted from its package and never installed.
pub fn vmlinuz() -> PathBuf {
    alea().join("linux/vmlinuz")
}

/// Debian's static BusyBox, extracted from its package and never installed.
pub fn busybox() -> PathBuf {
    alea().join("busybox/busybox")
}

/// The path relative to the current directory when it lies below it: shorter in messages.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}

/// Fails with advice unless every one of `files` exists.
pub fn require(files: &[PathBuf]) -> Result<()> {
    for file in files {
        if !file.exists() {
            bail!("{} is missing: run `cargo xtask setup` and `cargo xtask build`", shown(file));
        }
    }
    Ok(())
}
