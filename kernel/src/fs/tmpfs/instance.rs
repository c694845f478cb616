//! New instances of tmpfs: those that are mounted, and the one of memfds.
//!
//! Owns the instance of memfds, made at boot and kept for ever. Never keeps the contents of directories: the dentries are
//! the directory. Locks: none.
#![forbid(unsafe_code)]

use super::inode::{self, TmpfsInode};
use super::options::Options;
use super::tmpfs::Tmpfs;
use crate::sync::Once;
use crate::vfs::object::filesystem::anonymous_dev;
use crate::vfs::{Cred, Dentry, DevId, Mount, MountFlags, Owner, Path, Super};
use abi::fs::S_IFDIR;
use abi::{Errno, Result};
use alloc::sync::Arc;

impl Tmpfs {
    /// A new instance with an empty root directory.
    pub fn new_super(name: &'static str, options: &Options, for_ever: bool) -> Result<Arc<Super>> {
        Self::build(name, options, for_ever).map(|(sb, _)| sb)
    }

    fn build(
        name: &'static str,
        options: &Options,
        for_ever: bool,
    ) -> Result<(Arc<Super>, Arc<Self>)> {
        let number = anonymous_dev()?;
        let dev = number.id();
        let fs = Self::new(name, options, dev)?;
        let root = TmpfsInode::new(&fs, S_IFDIR | fs.root_mode, DevId::NONE, fs.root_owner)?;
        let root = Dentry::new_root(root, b"/")?;
        Ok((Super::new(fs.clone(), root, number, for_ever)?, fs))
    }
}

/// The instance of memfds.
static SHM: Once<(Arc<Mount>, Arc<Tmpfs>)> = Once::new();

/// Makes the instance of memfds; called once at boot.
pub fn init_memfds() -> Result<()> {
    // Without a limit of its own: it is charged like anonymous memory.
    let options = Options { pages: Some(0), inodes: Some(0), ..Options::default() };
    let (sb, fs) = Tmpfs::build("tmpfs", &options, true)?;
    let root = sb.root().clone();
    let mount = Mount::new(sb, root, b"tmpfs", MountFlags::NOATIME)?;
    SHM.call_once(|| (mount, fs));
    Ok(())
}

/// The place of a new memfd, whose name in /proc is `label`.
pub fn new_memfd(label: &[u8], cred: &Cred, sealable: bool, no_exec: bool) -> Result<Path> {
    let (mount, fs) = SHM.get().ok_or(Errno::ENODEV)?;
    let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
    let inode = inode::memfd(fs, owner, sealable, no_exec)?;
    let dentry = Dentry::new_unlinked(Some(mount.root().clone()), label, inode)?;
    Ok(Path { mount: mount.clone(), dentry })
}
