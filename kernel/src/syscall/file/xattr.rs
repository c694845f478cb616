//! Extended attributes: `getxattr`, `setxattr`, `listxattr`, `removexattr` and their kin.

use super::path::find;
use crate::mm::{Source, user};
use crate::syscall::caller::{file, with_ctx};
use crate::vfs::namei::LookupFlags;
use crate::vfs::object::inode::XattrFlags;
use crate::vfs::{Path, ops};
use abi::fs::AT_FDCWD;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// Longest name and its NUL.
const NAME_ROOM: usize = 256;
/// Largest value, and longest list of names.
const MAX_SIZE: usize = 65_536;

/// What a call names; a call that changes looks for it only when its other arguments are right.
enum Place {
    Path(u64),
    Link(u64),
    Fd(i32),
}

impl Place {
    fn find(self) -> Result<Path> {
        match self {
            Self::Path(path) => find(AT_FDCWD, path, LookupFlags::FOLLOW),
            Self::Link(path) => find(AT_FDCWD, path, LookupFlags::empty()),
            Self::Fd(fd) => file(fd).map(|file| file.path().clone()),
        }
    }

    fn find_writable(self) -> Result<Path> {
        let path = self.find()?;
        path.mount.check_writable()?;
        Ok(path)
    }
}

fn read_name(addr: u64) -> Result<Vec<u8>> {
    match user::read_cstr(addr, NAME_ROOM) {
        Ok(name) if name.is_empty() => Err(Errno::ERANGE),
        Err(Errno::ENAMETOOLONG) => Err(Errno::ERANGE),
        name => name,
    }
}

/// Copies out as the calls do: the size if there is no room asked for, ERANGE if there is too little.
fn copy_out(bytes: &[u8], addr: u64, size: usize) -> Result<usize> {
    if size != 0 {
        if bytes.len() > size {
            return Err(Errno::ERANGE);
        }
        user::write_bytes(addr, bytes)?;
    }
    Ok(bytes.len())
}

fn get(place: Place, name: u64, value: u64, size: usize) -> Result<usize> {
    let path = place.find()?;
    let name = read_name(name)?;
    let found = with_ctx(|ctx| ops::get_xattr(&path, &name, ctx.cred))?;
    copy_out(&found, value, size)
}

fn set(place: Place, name: u64, value: u64, size: usize, flags: u32) -> Result<()> {
    let flags = XattrFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
    let name = read_name(name)?;
    if size > MAX_SIZE {
        return Err(Errno::E2BIG);
    }
    let value = Source::user(value, size).take_vec(size)?;
    let path = place.find_writable()?;
    with_ctx(|ctx| ops::set_xattr(&path, &name, value, flags, ctx.cred))
}

fn remove(place: Place, name: u64) -> Result<()> {
    let name = read_name(name)?;
    let path = place.find_writable()?;
    with_ctx(|ctx| ops::remove_xattr(&path, &name, ctx.cred))
}

fn list(place: Place, list: u64, size: usize) -> Result<usize> {
    let most = if size == 0 { MAX_SIZE } else { size.min(MAX_SIZE) };
    let path = place.find()?;
    let names = with_ctx(|ctx| ops::list_xattr(&path, most, ctx.cred))?;
    copy_out(&names, list, size)
}

pub fn getxattr(path: u64, name: u64, value: u64, size: usize) -> Result<usize> {
    get(Place::Path(path), name, value, size)
}

pub fn lgetxattr(path: u64, name: u64, value: u64, size: usize) -> Result<usize> {
    get(Place::Link(path), name, value, size)
}

pub fn fgetxattr(fd: i32, name: u64, value: u64, size: usize) -> Result<usize> {
    get(Place::Fd(fd), name, value, size)
}

pub fn setxattr(path: u64, name: u64, value: u64, size: usize, flags: u32) -> Result<()> {
    set(Place::Path(path), name, value, size, flags)
}

pub fn lsetxattr(path: u64, name: u64, value: u64, size: usize, flags: u32) -> Result<()> {
    set(Place::Link(path), name, value, size, flags)
}

pub fn fsetxattr(fd: i32, name: u64, value: u64, size: usize, flags: u32) -> Result<()> {
    set(Place::Fd(fd), name, value, size, flags)
}

pub fn removexattr(path: u64, name: u64) -> Result<()> {
    remove(Place::Path(path), name)
}

pub fn lremovexattr(path: u64, name: u64) -> Result<()> {
    remove(Place::Link(path), name)
}

pub fn fremovexattr(fd: i32, name: u64) -> Result<()> {
    remove(Place::Fd(fd), name)
}

pub fn listxattr(path: u64, names: u64, size: usize) -> Result<usize> {
    list(Place::Path(path), names, size)
}

pub fn llistxattr(path: u64, names: u64, size: usize) -> Result<usize> {
    list(Place::Link(path), names, size)
}

pub fn flistxattr(fd: i32, names: u64, size: usize) -> Result<usize> {
    list(Place::Fd(fd), names, size)
}
