//! memfd_secret: memory that nobody sees but who has mapped it, not even the kernel: its pages are not in the direct map.
//!
//! Owns nothing: the page cache of each file hides its pages. Never reads or writes a page: who maps one does. So the file has no read, no
//! write, and no length but the first that it is given. Locks: none.
#![forbid(unsafe_code)]

use crate::mm::fallible::{try_arc, try_string};
use crate::mm::space::request::{Prot, VmFlags};
use crate::mm::{MapSource, PageCache};
use crate::vfs::anon::{self, AnonFs};
use crate::vfs::object::file::MapTarget;
use crate::vfs::{DevId, FileOps, Inode, InodeAttr, OpenFile, Owner, Position, Timestamp};
use crate::vfs::{Metadata, SetAttr, admission};
use abi::fs::{OpenFlags, S_IFREG};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;

/// As /proc shows it.
const NAME: &str = "/secretmem (deleted)";

struct SecretInode {
    attr: InodeAttr,
    cache: Arc<PageCache>,
}

impl Inode for SecretInode {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }

    fn meta(&self) -> Metadata {
        Metadata { size: self.cache.size(), ..self.attr.metadata() }
    }

    fn size(&self) -> u64 {
        self.cache.size()
    }

    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        if change.size.is_some_and(|size| !self.cache.set_first_size(size)) {
            return Err(Errno::EINVAL);
        }
        Ok(self.attr.apply(change))
    }
}

/// The open file, and what is mapped of it.
struct Secret(Arc<SecretInode>);

impl FileOps for Secret {
    fn position(&self) -> Position {
        Position::None
    }

    fn mmap(&self, _f: &Arc<OpenFile>) -> Result<MapTarget> {
        Ok(MapTarget::File(try_arc(Self(self.0.clone()))?))
    }

    fn is_mapped_locked(&self) -> bool {
        true
    }
}

impl MapSource for Secret {
    fn cache(&self) -> &Arc<PageCache> {
        &self.0.cache
    }

    fn name(&self) -> Result<String> {
        try_string(NAME)
    }

    fn dev_ino(&self) -> (u64, u64) {
        (self.0.attr.dev().0, self.0.attr.ino())
    }

    fn punch(&self, _: Range<u64>) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn rights(&self, shared: bool, prot: Prot) -> Result<VmFlags> {
        if prot.contains(Prot::EXEC) {
            // As on a mount with noexec.
            return Err(Errno::EPERM);
        }
        if !shared {
            return Err(Errno::EINVAL);
        }
        let kept = VmFlags::SECRET | VmFlags::LOCKED | VmFlags::DONTDUMP;
        Ok(VmFlags::MAY_READ | VmFlags::MAY_WRITE | kept)
    }
}

/// A new file of this kind, empty.
pub fn open(owner: Owner) -> Result<Arc<OpenFile>> {
    let admission = admission::admit()?;
    let dev = anon::kernel_device(AnonFs::Anon)?;
    let attr = InodeAttr::new(
        dev,
        anon::next_number(),
        S_IFREG | 0o600,
        owner,
        DevId::NONE,
        Timestamp::now(),
    );
    let cache = try_arc(PageCache::secret())?;
    let inode = try_arc(SecretInode { attr, cache })?;
    let place = anon::path_of(AnonFs::Anon, inode.clone(), NAME.as_bytes())?;
    let ops = try_arc(Secret(inode))?;
    try_arc(OpenFile::new(admission, ops, place, OpenFlags::RDWR | OpenFlags::LARGEFILE))
}
