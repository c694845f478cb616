//! `mount`, `umount2`, `pivot_root`.

use crate::mm::fallible::TrySlice;
use crate::mm::user;
use crate::process;
use crate::syscall::caller::{with_ctx, with_path};
use crate::vfs::namei::{self, LookupFlags};
use crate::vfs::object::filesystem::SuperFlags;
use crate::vfs::ops::{self, Unmount};
use crate::vfs::{Capability, Fd, MountFlags, Path};
use abi::fs::{AT_FDCWD, PATH_MAX};
use abi::{Errno, Result};
use alloc::vec::Vec;

const MS_SYNCHRONOUS: u64 = 16;
const MS_REMOUNT: u64 = 32;
const MS_MANDLOCK: u64 = 64;
const MS_DIRSYNC: u64 = 128;
const MS_BIND: u64 = 4096;
const MS_MOVE: u64 = 8192;
const MS_REC: u64 = 16384;
const MS_SILENT: u64 = 32768;
const MS_UNBINDABLE: u64 = 1 << 17;
const MS_PRIVATE: u64 = 1 << 18;
const MS_SLAVE: u64 = 1 << 19;
const MS_SHARED: u64 = 1 << 20;
const MS_STRICTATIME: u64 = 1 << 24;
const MS_PROPAGATION: u64 = MS_UNBINDABLE | MS_PRIVATE | MS_SLAVE | MS_SHARED;
const MS_MAGIC: u64 = 0xc0ed_0000;
const MS_MAGIC_MASK: u64 = 0xffff_0000;

fn may_mount() -> Result<()> {
    if process::current().cred().capable(Capability::SYS_ADMIN) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

/// A string argument that may be NULL.
fn optional(addr: u64, max: usize) -> Result<Vec<u8>> {
    if addr == 0 { Ok(Vec::new()) } else { user::read_cstr(addr, max) }
}

/// The per-mount flags among `MS_*`.
fn mount_flags(flags: u64) -> MountFlags {
    // Bits above 32 mean nothing here.
    let mut out = MountFlags::from_bits_truncate(flags as u32);
    let noatime = out.contains(MountFlags::NOATIME);
    out.set(MountFlags::RELATIME, !noatime && flags & MS_STRICTATIME == 0);
    out
}

fn find(path: u64) -> Result<Path> {
    with_path(path, |path| {
        with_ctx(|ctx| namei::lookup(ctx, Fd(AT_FDCWD), path, LookupFlags::FOLLOW))
    })
}

pub fn mount(source: u64, target: u64, kind: u64, flags: u64, data: u64) -> Result<()> {
    /// Options are a page at most.
    const DATA_LIMIT: usize = 4096;
    let kind_name = optional(kind, PATH_MAX)?;
    let source_name = optional(source, PATH_MAX)?;
    let flags = if flags & MS_MAGIC_MASK == MS_MAGIC { flags & !MS_MAGIC_MASK } else { flags };
    // A full page without NUL is cut, not refused.
    let options = optional(data, DATA_LIMIT)?;
    let at = find(target)?;
    may_mount()?;
    let wanted = mount_flags(flags);
    // Bits above 32 mean nothing here.
    let mut of_instance = SuperFlags::from_bits_truncate(flags as u32);
    if options.split(|&byte| byte == b',').any(|option| option == b"ro") {
        of_instance |= SuperFlags::RDONLY;
    }
    if flags & (MS_REMOUNT | MS_BIND) == MS_REMOUNT | MS_BIND {
        return ops::remount_flags(&at, wanted);
    }
    if flags & MS_REMOUNT != 0 {
        return ops::remount(&at, &options, wanted, of_instance);
    }
    if flags & MS_BIND != 0 {
        if source_name.is_empty() {
            return Err(Errno::EINVAL);
        }
        return ops::bind(&find(source)?, &at, flags & MS_REC != 0);
    }
    if flags & MS_PROPAGATION != 0 {
        return set_propagation(&at, flags);
    }
    if flags & MS_MOVE != 0 {
        if source_name.is_empty() {
            return Err(Errno::EINVAL);
        }
        return ops::move_mount(&find(source)?, &at);
    }
    let known = MS_SYNCHRONOUS | MS_MANDLOCK | MS_DIRSYNC | MS_SILENT | MS_STRICTATIME;
    let known = known | u64::from(MountFlags::all().bits());
    if flags & !known & u64::from(u32::MAX) & !MS_REC != 0 && kind == 0 {
        return Err(Errno::EINVAL);
    }
    if kind == 0 {
        return Err(Errno::EINVAL);
    }
    let source_name = if source == 0 { b"none".try_owned()? } else { source_name };
    ops::new_mount(&at, &kind_name, &source_name, &options, wanted, of_instance)
}

/// There is one mount namespace and mounts do not propagate: private is what they all are.
fn set_propagation(at: &Path, flags: u64) -> Result<()> {
    let kinds = flags & MS_PROPAGATION;
    let is_root = alloc::sync::Arc::ptr_eq(&at.dentry, at.mount.root());
    if kinds.count_ones() != 1 || flags & !(MS_PROPAGATION | MS_REC | MS_SILENT) != 0 || !is_root {
        return Err(Errno::EINVAL);
    }
    if kinds == MS_PRIVATE || kinds == MS_SLAVE { Ok(()) } else { Err(Errno::EINVAL) }
}

pub fn umount2(path: u64, flags: u32) -> Result<()> {
    const FORCE: u32 = 1;
    const DETACH: u32 = 2;
    const EXPIRE: u32 = 4;
    const NOFOLLOW: u32 = 8;
    if flags & !(FORCE | DETACH | EXPIRE | NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut lookup = LookupFlags::FOLLOW | LookupFlags::NO_USE;
    lookup.set(LookupFlags::FOLLOW, flags & NOFOLLOW == 0);
    let at =
        with_path(path, |path| with_ctx(|ctx| namei::lookup(ctx, Fd(AT_FDCWD), path, lookup)))?;
    may_mount()?;
    if flags & EXPIRE != 0 && flags & (FORCE | DETACH) != 0 {
        return Err(Errno::EINVAL);
    }
    let how = Unmount { lazy: flags & DETACH != 0, expire: flags & EXPIRE != 0 };
    let root = process::current().fs().root();
    ops::unmount(at, how, &root)
}

/// The root of this kernel's tree is the initramfs, which has no place that another root could take: what
/// Linux says about that is EINVAL. Programs that know it (switch_root) move the new root over `/`.
pub fn pivot_root(new_root: u64, put_old: u64) -> Result<()> {
    may_mount()?;
    let new = find(new_root)?;
    let old = find(put_old)?;
    for place in [&new, &old] {
        if !place.dentry.is_dir() {
            return Err(Errno::ENOTDIR);
        }
    }
    Err(Errno::EINVAL)
}
