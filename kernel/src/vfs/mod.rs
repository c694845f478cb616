//! Open files and the tree of names, whatever file system is behind them.
//!
//! `object` has the types that need each other: inode, dentry, mount, path, file. `namei` walks path names, `ops` changes
//! the tree, `context` has what a process brings to a lookup (root, working directory, descriptors), `cred` its
//! credentials; `notify` sends inotify events. File systems register in `registry`, device drivers in `chardev`; `anon`
//! has files that are in no directory. Nothing here depends on a particular file system. Lock order:
//! `MountTable`, `Dentry`, `Inode`, `FdTable`, `FileLocks`, `Marks`, `Leaf`; sleeping mutexes (directory changes, file
//! positions, inode writes) come before all of them.
#![deny(unsafe_code)]

pub mod admission;
pub mod anon;
mod atime;
pub mod chardev;
pub mod context;
pub mod cred;
pub mod directory;
pub mod file_caps;
pub mod grow;
pub mod namei;
pub mod notify;
pub mod object;
pub mod open;
pub mod ops;
pub mod per_user;
pub mod poll;
pub mod registry;

pub use atime::{touch_atime, touch_file};
pub use context::context::FsContext;
pub use context::fdtable::{Fd, FdTable, OpenFiles};
pub use context::files::{FileBorrow, Files, Reserved};
pub use cred::{CapSet, Capability, Cred};
pub use object::abilities::Abilities;
pub use object::dentry::Dentry;
pub use object::file::{DenyWrite, FileOps, MapRange, MapTarget, OpenFile};
pub use object::filesystem::{FileSystem, Super};
pub use object::inode::{Inode, InodeAttr, Owner, SpecialSlot};
pub use object::mapping::FileMapping;
pub use object::mode::Position;
pub use object::mount::{Mount, MountFlags};
pub use object::name_hash::NameHash;
pub use object::path::Path;
pub use object::seek::Whence;
pub use object::types::{DevId, DirEntry, FileType, Metadata, Rights, SetAttr, Timestamp};
pub use poll::PollEvents;
