//! Passes the kernel's linker script to the linker, for the bare-metal target only.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=linker.ld");
    if env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-none") {
        let script = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
        println!("cargo::rustc-link-arg-bins=-T{}", script.join("linker.ld").display());
        println!("cargo::rustc-link-arg-bins=--gc-sections");
        println!("cargo::rustc-link-arg-bins=--emit-relocs");
        println!("cargo::rustc-link-arg-bins=-zmax-page-size=4096");
    }
}
