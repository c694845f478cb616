//! /proc/PID/ns: the namespaces that a process is in. There is one of each kind, and all processes are in it.
//!
//! Each is a file on a file system of their own (Linux's nsfs); programs identify it by device and inode number.
//!
//! Owns the list of namespaces. Never makes another one. Locks: none.

use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::try_format;
use crate::vfs::admission::admit;
use crate::vfs::anon::{AnonFs, kernel_device, path_of};
use crate::vfs::{DevId, FileOps, Inode, InodeAttr, OpenFile, Owner, Path, Timestamp};
use abi::fs::{OpenFlags, S_IFREG};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// One namespace, by the name of its link in /proc/PID/ns.
#[derive(Debug, PartialEq, Eq)]
pub struct Namespace {
    pub name: &'static str,
    /// What its link's text begins with, before the inode number.
    kind: &'static str,
    ino: u64,
    /// `CLONE_NEW*`.
    flag: i64,
}

impl Namespace {
    /// Whether a process that has ended is still in it: the one of its number and the one of its credentials.
    pub fn is_kept_by_zombies(&self) -> bool {
        matches!(self.name, "pid" | "user")
    }
}

const fn space(name: &'static str, kind: &'static str, ino: u64, flag: i64) -> Namespace {
    Namespace { name, kind, ino, flag }
}

/// The namespaces, with the inode numbers of Linux's initial ones.
pub static NAMESPACES: [Namespace; 10] = [
    space("cgroup", "cgroup", 4_026_531_835, 0x0200_0000),
    space("ipc", "ipc", 4_026_531_839, 0x0800_0000),
    space("mnt", "mnt", 4_026_531_841, 0x0002_0000),
    space("net", "net", 4_026_531_840, 0x4000_0000),
    space("pid", "pid", 4_026_531_836, 0x2000_0000),
    space("pid_for_children", "pid", 4_026_531_836, 0x2000_0000),
    space("time", "time", 4_026_531_834, 0x80),
    space("time_for_children", "time", 4_026_531_834, 0x80),
    space("user", "user", USER, 0x1000_0000),
    space("uts", "uts", 4_026_531_838, 0x0400_0000),
];

/// The inode number of the user namespace, which owns all others.
const USER: u64 = 4_026_531_837;

/// Requests of `ioctl`: the owning user namespace, the parent, the type, the owner's user ID.
pub const GET_USERNS: u32 = 0xb701;
const GET_PARENT: u32 = 0xb702;
const GET_NSTYPE: u32 = 0xb703;
const GET_OWNER_UID: u32 = 0xb704;

struct NsInode {
    attr: InodeAttr,
    space: &'static Namespace,
}

impl Inode for NsInode {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }
    fn open(self: Arc<Self>, flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        if flags.writable() {
            return Err(Errno::EPERM);
        }
        Ok(try_arc(NsFile(self.space))?)
    }
}

/// The file of a namespace.
pub fn path(space: &'static Namespace) -> Result<Path> {
    let dev = kernel_device(AnonFs::Namespace)?;
    let mode = S_IFREG | 0o444;
    let attr =
        InodeAttr::new(dev, space.ino, mode, Owner::default(), DevId::NONE, Timestamp::now());
    let name = try_format!("{}:[{}]", space.kind, space.ino)?;
    path_of(AnonFs::Namespace, try_arc(NsInode { attr, space })?, name.as_bytes())
}

struct NsFile(&'static Namespace);

impl FileOps for NsFile {
    fn ioctl(&self, _: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        match cmd {
            GET_NSTYPE => Ok(self.0.flag),
            // The initial namespaces have no parent, and only those of processes and users are nested at all.
            GET_PARENT if matches!(self.0.kind, "pid" | "user") => Err(Errno::EPERM),
            // The initial user namespace is root's; the others belong to it, and have no owner of their own.
            GET_OWNER_UID if self.0.ino == USER => UserPtr::new(arg).write(&0u32).map(|()| 0),
            GET_PARENT | GET_OWNER_UID => Err(Errno::EINVAL),
            _ => Err(Errno::ENOTTY),
        }
    }
}

/// Opens the user namespace that owns the one open as `file`: EPERM if none does, ENOTTY if `file` is no namespace.
pub fn owner(file: &OpenFile) -> Result<OpenFile> {
    let of = file.ops().downcast::<NsFile>().ok_or(Errno::ENOTTY)?;
    if of.0.ino == USER {
        return Err(Errno::EPERM);
    }
    let space = NAMESPACES.iter().find(|space| space.ino == USER).ok_or(Errno::EPERM)?;
    let admission = admit()?;
    let ops = try_arc(NsFile(space))?;
    Ok(OpenFile::new(admission, ops, path(space)?, OpenFlags::empty()))
}
