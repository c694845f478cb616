//! procfs: the generic machinery, and the files that are about no process.
//!
//! Fixed files (`fixed`) are registered by path, at boot or later, mostly by the subsystem that they are about. Process
//! directories (`node`, `pid`) are dynamic: what is in them comes through the trait `ProcessTable`, which the layer of
//! processes, above this one, implements. A text is made when a reader starts at the beginning and kept for the open file,
//! so that all reads see the same moment; texts that may be long (`maps`, sockets) are made piece by piece as they are read.
#![forbid(unsafe_code)]

mod file;
pub(super) mod fixed;
mod fs_files;
pub mod kmsg;
mod list;
mod locks;
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

pub use file::{Fixed, Made, Pieces, ProcFile, Text};
pub use fixed::{register_file, register_line, register_numbers, register_stream};
pub use node::process_of;
pub use process::{
    CpuTotals, PidFile, ProcessTable, SomeTasks, Totals, is_capable, register_process_table,
};
pub use row::Row;
pub(super) use start::init;
pub use sysctl::{
    Kept, Several, by_prefix, next_word, number, register_kept, register_setting,
    register_settings, register_wide,
};
pub use text::TextBuf;
