//! File systems and open files.
//!
//! `inode`/`file` are the two traits that everything implements; `dentry`, `mount`, `path` are the tree;
//! `namei` walks it; `fdtable` and `context` are what a process has of it. Owns no memory of its own: file
//! contents live in `mm`'s page caches. Lock order: `MountTable`, `Dentry`, `Inode`, `FdTable`, `FileLocks`,
//! `Marks`, `Leaf`; sleeping mutexes (directory changes, file positions, inode writes) come before all of them.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]
#![allow(dead_code, unused_imports)]

pub mod anon;
mod atime;
mod children;
pub mod context;
pub mod cred;
pub mod dentry;
pub mod devfs;
pub mod directory;
pub mod epoll;
pub mod eventfd;
pub mod fdtable;
pub mod file;
pub mod filesystem;
mod grow;
pub mod initramfs;
pub mod inode;
pub mod locks;
pub mod mapping;
pub mod mount;
pub mod namei;
pub mod notify;
pub mod ops;
pub mod path;
pub mod permit;
pub mod pipe;
pub mod poll;
pub mod procfs;
pub mod registry;
pub mod socket;
pub mod sysfs;
pub mod timerfd;
pub mod tmpfs;
pub mod types;
pub mod usage;

pub use atime::{touch_atime, touch_file};
pub use context::FsContext;
pub use cred::{CapSet, Capability, Cred};
pub use dentry::Dentry;
pub use fdtable::{Fd, FdTable, OpenFiles};
pub use file::{DenyWrite, FileOps, MapTarget, OpenFile, Whence};
pub use filesystem::{FileSystem, Super};
pub use inode::{Inode, InodeAttr, Owner, SpecialSlot};
pub use mapping::FileMapping;
pub use mount::{Mount, MountFlags};
pub use path::Path;
pub use poll::PollEvents;
pub use types::{DevId, DirEntry, FileType, Metadata, SetAttr, Times, Timestamp};

/// Mounts the root file system and unpacks `initramfs` into it. An error is for the boot log: what was
/// unpacked before it stays, as on Linux.
pub fn init(initramfs: &[u8]) -> core::result::Result<usize, initramfs::Error> {
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    let failed = |errno| initramfs::Error::File(errno, b"/".to_vec());
    devfs::init();
    register_file_systems();
    procfs::init().and_then(|()| sysfs::init()).map_err(failed)?;
    notify::register().map_err(failed)?;
    // Half of all memory, as on Linux: what the archive takes now is free when it has been unpacked.
    let half =
        (crate::mm::frames::stats().total + (initramfs.len() / crate::mm::PAGE_SIZE) as u64) / 2;
    let options =
        tmpfs::Options { pages: Some(half), inodes: Some(half), ..tmpfs::Options::default() };
    let sb = tmpfs::Tmpfs::new_super("rootfs", &options, true).map_err(failed)?;
    let root = sb.root().clone();
    let mount = Mount::new(sb, root, b"rootfs", MountFlags::RELATIME).map_err(failed)?;
    mount::attach_root(mount.clone());
    let root = Path::root_of(mount);
    initramfs::unpack_built_in(&root)?;
    initramfs::unpack(initramfs, &root)
}

fn register_file_systems() {
    registry::register("tmpfs", |options| {
        tmpfs::Tmpfs::new_super("tmpfs", &tmpfs::Options::parse(options)?, false)
    });
    registry::register("ramfs", |options| {
        let parsed = tmpfs::Options::parse(options)?;
        let mode = parsed.mode.or(Some(0o755));
        let unlimited = tmpfs::Options { mode, pages: Some(0), inodes: Some(0), ..parsed };
        tmpfs::Tmpfs::new_super("ramfs", &unlimited, false)
    });
    registry::register("devtmpfs", |_| devfs::super_block());
}
