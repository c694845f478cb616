//! The objects that need each other: an inode is opened as a file, found as a dentry, on a mount of a file system.
//!
//! These modules import each other in a cycle, on purpose: `inode`, `file`, `dentry`, `mount`, `path`, and
//! `filesystem`. No other module here is part of it.

pub mod abilities;
pub mod dentry;
pub mod file;
pub mod file_pos;
pub mod filesystem;
pub mod inode;
pub mod locks;
pub(super) mod mapping;
pub mod mode;
pub mod mount;
pub(super) mod name_hash;
pub mod owner;
pub(super) mod path;
pub mod permit;
pub mod seals;
pub mod seek;
pub(super) mod types;
pub mod usage;
