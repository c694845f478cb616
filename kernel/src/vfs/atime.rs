//! Access times, kept as Linux's default `relatime` does: brought up to date only when they are older than
//! the last change or than a day, so that most reads write nothing.
#![forbid(unsafe_code)]

use super::object::file::OpenFile;
use super::object::inode::Inode;
use super::object::mount::{Mount, MountFlags};
use super::object::types::{FileType, Times, Timestamp};
use abi::fs::OpenFlags;

const DAY: i64 = 24 * 60 * 60;

/// Notes an access through `mount`.
#[inline]
pub fn touch_atime(mount: &Mount, inode: &dyn Inode) {
    let flags = mount.flags();
    if flags.intersects(MountFlags::NOATIME | MountFlags::RDONLY) {
        return;
    }
    let attr = inode.attr();
    if flags.contains(MountFlags::NODIRATIME) && attr.kind() == FileType::Dir {
        return;
    }
    let strict = !flags.contains(MountFlags::RELATIME);
    let now = Timestamp::now();
    attr.update_times(|times| {
        if strict || is_stale(times, now) {
            times.atime = now;
        }
    });
}

/// Notes that `file` was read.
#[inline]
pub fn touch_file(file: &OpenFile) {
    if !file.flags().contains(OpenFlags::NOATIME) {
        touch_atime(&file.path().mount, &**file.inode());
    }
}

fn is_stale(times: &Times, now: Timestamp) -> bool {
    times.atime <= times.mtime
        || times.atime <= times.ctime
        || now.secs.saturating_sub(times.atime.secs) >= DAY
}
