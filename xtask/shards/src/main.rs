//! The program of these commands, which `cargo xtask` starts.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    xtask_host::commands::main(xtask_shards::commands::Command::run)
}
