//! tmpfs: files whose pages live in the page cache and nowhere else. Also the root file system, devtmpfs and memfd.
#![forbid(unsafe_code)]

mod file;
mod inode;
mod instance;
mod options;
mod regular;
mod tmpfs;
mod xattr;

pub use inode::TmpfsInode;
pub use instance::{init_memfds, new_memfd};
pub(super) use options::Options;
pub(super) use tmpfs::Tmpfs;
