//! `cargo xtask`: the command line.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    xtask::main(std::env::args_os().skip(1))
}
