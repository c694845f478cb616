//! tmpfs: files whose pages live in the page cache and nowhere else. Also the root file system, devtmpfs and memfd.
#![forbid(unsafe_code)]

mod inode;
mod options;
mod tmpfs;
mod xattr;

pub use inode::TmpfsInode;
pub(super) use options::Options;
pub(super) use tmpfs::Tmpfs;
pub use tmpfs::new_memfd;
