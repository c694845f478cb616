//! What can stand behind a mapping.
//!
//! [`MapSource`] is the slot through which open files (floor 5) lend their page cache to address spaces.
//! A mapping keeps its source alive, and with it the file.

use super::page_cache::PageCache;
use crate::mm::space::request::{Prot, VmFlags};
use abi::Result;
use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;

/// Counts the mappings of its source: a mapping that is split or copied by fork counts twice. Told with the address space
/// locked.
pub trait MapObserver {
    /// There is one more.
    fn mapped(&self);
    /// There is one less.
    fn unmapped(&self);
    /// How long a mapping of the whole source is, in bytes.
    fn size(&self) -> u64;
}

/// A mappable object: an open file, a memfd, a shared anonymous area.
pub trait MapSource: Send + Sync {
    /// The pages behind the mapping.
    fn cache(&self) -> &Arc<PageCache>;
    /// The path that /proc/PID/maps shows.
    fn name(&self) -> Result<String>;
    /// Device and inode numbers that /proc/PID/maps shows.
    fn dev_ino(&self) -> (u64, u64);
    /// The rights (`MAY_*`) of a mapping that begins with those of `prot`, or why there can be none. Asked with
    /// the address space locked, which stays so until the mapping stands.
    fn rights(&self, _shared: bool, _prot: Prot) -> Result<VmFlags> {
        Ok(VmFlags::MAY_ALL)
    }
    /// MADV_REMOVE: makes a hole of the byte range, for a writable shared mapping. No address space is locked.
    fn punch(&self, bytes: Range<u64>) -> Result<()> {
        self.cache().punch(bytes)
    }
    /// Who is told of each mapping and of its end, if anybody is.
    fn observer(&self) -> Option<&dyn MapObserver> {
        None
    }
    /// Whether the mapping is one of memory rather than of a file: what usage counts as shmem.
    fn is_shmem(&self) -> bool {
        false
    }
    /// Whether it is a file that no name leads to.
    fn is_unlinked(&self) -> bool {
        self.is_shmem()
    }
    /// Whether it is a file that somebody may execute.
    fn is_executable(&self) -> bool {
        false
    }
}
