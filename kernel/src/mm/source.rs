//! What can stand behind a mapping.
//!
//! [`MapSource`] is the slot through which open files (floor 5) lend their page cache to address spaces.
//! A mapping keeps its source alive, and with it the file.

use super::PageCache;
use alloc::string::String;
use alloc::sync::Arc;

/// A mappable object: an open file, a memfd, a shared anonymous area.
pub trait MapSource: Send + Sync {
    /// The pages behind the mapping.
    fn cache(&self) -> &Arc<PageCache>;
    /// The path that /proc/PID/maps shows.
    fn name(&self) -> String;
    /// Device and inode numbers that /proc/PID/maps shows.
    fn dev_ino(&self) -> (u64, u64);
    /// Whether it was opened for writing: a shared mapping may become writable only then.
    fn writable(&self) -> bool;
    /// Whether mprotect may make a mapping of it executable (not on a noexec mount).
    fn executable(&self) -> bool {
        true
    }
    /// Whether the mapping is one of memory rather than of a file: what usage counts as shmem.
    fn is_shmem(&self) -> bool {
        false
    }
}
