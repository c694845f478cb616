//! procfs: the generic machinery, and the files that are about no process.
//!
//! Fixed files (`fixed`) are registered by path, at boot or later, by the subsystem that they are about (its `proc.rs`).
//! Process directories (`node`, `pid`) are dynamic: what is in them comes through `process::ProcessTable`, which the
//! process floor fills. Texts are made when a reader starts at the beginning and kept for the open file, so that a file
//! read in pieces is of one moment.
#![forbid(unsafe_code)]

mod file;
pub(super) mod fixed;
mod fs_files;
pub mod kmsg;
mod list;
mod mounts;
mod node;
pub mod ns;
mod pid;
mod process;
mod row;
mod slabs;
mod start;
mod sysctl;
mod system;
mod text;

pub use file::ProcFile;
pub use fixed::{register_file, register_stream};
pub use node::process_of;
pub use process::{CpuTotals, PidFile, ProcessTable, Totals, is_capable, register_process_table};
pub use row::Row;
pub(super) use start::init;
pub use sysctl::{
    Kept, Pinned, Several, by_prefix, number, register_kept, register_pinned, register_setting,
    register_settings,
};
pub use text::TextBuf;
