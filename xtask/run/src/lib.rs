//! Runs one command on a root of the user's own: packs a folder, a tar or an OCI image (`image` and the sources of it) into an
//! initramfs that is kept (`cache`), boots it, and carries the command's input, output and exit status (`session`), and files out
//! of the guest (`out`).
#![forbid(unsafe_code)]

mod cache;
mod compression;
mod folder;
mod image;
mod oci;
pub mod options;
mod out;
mod session;
mod streams;
mod tarball;

/// Exit status when the kernel or the machine failed, or the root cannot be used.
pub const FAILED: u8 = 125;

/// Exit status when the time was up.
pub const TIMED_OUT: u8 = 124;

/// Exit status when the user left by Ctrl-A x: 128 + SIGINT.
pub const LEFT: u8 = 130;

/// The initramfs of a root, packed if need be, with process 1 of [`options::RunOptions`] in it.
pub fn packed(root: &std::path::Path) -> anyhow::Result<std::path::PathBuf> {
    Ok(cache::packed(root, &[])?.archive)
}
