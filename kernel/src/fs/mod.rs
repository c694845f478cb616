//! File systems and open files.
//!
//! `inode`/`file` are the two traits that everything implements; `dentry`, `mount`, `path` are the tree;
//! `namei` walks it; `fdtable` and `context` are what a process has of it. Owns no memory of its own: file
//! contents live in `mm`'s page caches. Lock order: `MountTable`, `Dentry`, `Inode`, `FdTable`, `FileLocks`,
//! `Leaf`; sleeping mutexes (directory changes, file positions, inode writes) come before all of them.

#![allow(dead_code, unused_imports)]

pub mod anon;
mod children;
pub mod context;
pub mod cred;
pub mod dentry;
pub mod devfs;
pub mod epoll;
pub mod eventfd;
pub mod fdtable;
pub mod file;
pub mod filesystem;
pub mod inode;
pub mod mount;
pub mod path;
pub mod pipe;
pub mod poll;
pub mod procfs;
pub mod types;
pub mod usage;

pub use context::FsContext;
pub use cred::{CapSet, Capability, Cred};
pub use dentry::Dentry;
pub use fdtable::{Fd, FdTable};
pub use file::{FileOps, MapTarget, OpenFile, Whence};
pub use filesystem::{FileSystem, Super};
pub use inode::{Inode, InodeAttr, Owner, SpecialSlot};
pub use mount::{Mount, MountFlags};
pub use path::Path;
pub use poll::PollEvents;
pub use types::{DevId, DirEntry, FileType, Metadata, SetAttr, Times, Timestamp};
