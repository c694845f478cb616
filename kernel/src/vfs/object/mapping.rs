//! [`FileMapping`]: an open file that is mapped into memory.
//!
//! Keeps the file open. [`permit`] decides what the mapping may be used for.
#![forbid(unsafe_code)]

use super::file::{MapTarget, OpenFile};
use super::permit;
use crate::mm::fallible::{TryString, try_arc};
use crate::mm::space::request::{Prot, VmFlags};
use crate::mm::{MapSource, PageCache};
use crate::vfs::notify;
use crate::vfs::notify::event;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;

/// The open file of a mapping: keeps it open.
pub struct FileMapping {
    file: Arc<OpenFile>,
    cache: Arc<PageCache>,
}

impl FileMapping {
    /// The page cache of `file`; ENODEV if it has none.
    pub fn target(file: &Arc<OpenFile>) -> Result<MapTarget> {
        let cache = file.inode().page_cache().ok_or(Errno::ENODEV)?.clone();
        Ok(MapTarget::File(try_arc(Self { file: file.clone(), cache })?))
    }
}

impl MapSource for FileMapping {
    fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }
    fn name(&self) -> Result<String> {
        let Some(root) = super::mount::root() else { return Ok(String::new()) };
        let path = self.file.path().to_absolute(&root)?;
        let mut name = String::new();
        for part in path.utf8_chunks() {
            name.try_push_str(part.valid())?;
            if !part.invalid().is_empty() {
                name.try_push_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(name)
    }
    fn dev_ino(&self) -> (u64, u64) {
        let attr = self.file.inode().attr();
        (attr.dev().0, attr.ino())
    }
    fn rights(&self, shared: bool, prot: Prot) -> Result<VmFlags> {
        permit::mapping(&self.file, shared, prot)
    }
    fn is_unlinked(&self) -> bool {
        self.file.inode().attr().nlink() == 0
    }
    fn is_executable(&self) -> bool {
        self.file.inode().attr().mode() & 0o111 != 0
    }
    fn punch(&self, bytes: Range<u64>) -> Result<()> {
        const PUNCH_HOLE_KEEP_SIZE: u32 = 3;
        let len = bytes.end - bytes.start;
        self.file.ops().fallocate(&self.file, PUNCH_HOLE_KEEP_SIZE, bytes.start, len)?;
        notify::file(&self.file, event::MODIFY);
        Ok(())
    }
}
