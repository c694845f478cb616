//! What a release consists of: kernel, symbols, initramfs, ISO, checksums and a bill of materials, the same bytes from the same commit.
#![forbid(unsafe_code)]

pub mod commands;
pub mod dist;
mod sbom;
