//! Extended attributes: who may see and change them. The file system keeps their names and values.
#![forbid(unsafe_code)]

use crate::mm::fallible::{TryGrow, TryVec};
use crate::vfs::cred::{Capability, Cred};
use crate::vfs::file_caps;
use crate::vfs::namei::perm;
use crate::vfs::notify;
use crate::vfs::object::inode::{Inode, XattrFlags, XattrValue};
use crate::vfs::object::path::Path;
use crate::vfs::object::types::FileType;
use abi::fs::S_ISVTX;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// `getxattr`, when the path has been resolved.
pub fn get_xattr(path: &Path, name: &[u8], cred: &Cred) -> Result<XattrValue> {
    check(&**path.inode(), name, cred, perm::READ)?;
    let value = path.inode().xattr(name)?;
    if name == file_caps::NAME { file_caps::shown(value) } else { Ok(value) }
}

/// `setxattr`; the caller has checked that the mount is writable.
pub fn set_xattr(
    path: &Path,
    name: &[u8],
    value: Vec<u8>,
    flags: XattrFlags,
    cred: &Cred,
) -> Result<()> {
    if name == file_caps::NAME {
        file_caps::check_set(&value, cred)?;
    }
    check(&**path.inode(), name, cred, perm::WRITE)?;
    path.inode().set_xattr(name, value, flags)?;
    notify::xattr_changed(&path.dentry);
    Ok(())
}

/// `removexattr`; the caller has checked that the mount is writable.
pub fn remove_xattr(path: &Path, name: &[u8], cred: &Cred) -> Result<()> {
    check(&**path.inode(), name, cred, perm::WRITE)?;
    if name == file_caps::NAME {
        file_caps::check_change(cred)?;
    }
    path.inode().remove_xattr(name)?;
    notify::xattr_changed(&path.dentry);
    Ok(())
}

/// `listxattr`: the names that `cred` may know, each with a NUL; ERANGE for more than `most` bytes.
pub fn list_xattr(path: &Path, most: usize, cred: &Cred) -> Result<Vec<u8>> {
    let all = cred.capable(Capability::SYS_ADMIN);
    let mut list = Vec::new();
    let mut result = Ok(());
    path.inode().xattr_names(&mut |name| {
        if result.is_err() || (!all && name.starts_with(b"trusted.")) {
            return;
        }
        if list.len() + name.len() >= most {
            result = Err(Errno::ERANGE);
        } else {
            result = list.try_extend_from_slice(name).and_then(|()| list.try_push(0));
        }
    });
    result.map(|()| list)
}

/// The rules of each namespace of attributes; where none decides, the permissions of the object itself do.
fn check(inode: &dyn Inode, name: &[u8], cred: &Cred, want: u32) -> Result<()> {
    let writes = want == perm::WRITE;
    let refused = Err(if writes { Errno::EPERM } else { Errno::ENODATA });
    if name.starts_with(b"system.") {
        return Ok(());
    }
    if name == file_caps::NAME {
        // What it takes to change it is for its own rules to say.
        return Ok(());
    }
    if name.starts_with(b"security.") {
        let may = !writes || cred.capable(Capability::SYS_ADMIN);
        return if may { Ok(()) } else { refused };
    }
    if name.starts_with(b"trusted.") {
        return if cred.capable(Capability::SYS_ADMIN) { Ok(()) } else { refused };
    }
    if name.starts_with(b"user.") {
        let attr = inode.attr();
        let kind = attr.kind();
        if !matches!(kind, FileType::Regular | FileType::Dir) {
            return refused;
        }
        let sticky = kind == FileType::Dir && attr.mode() & S_ISVTX != 0;
        if sticky && writes && !perm::owns(attr, cred) {
            return refused;
        }
    }
    perm::check(inode, cred, want)
}
