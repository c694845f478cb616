//! Access times. On a mount with `relatime`, Linux's default, they are updated only if they are no later than the last
//! change or a day old, so that most reads write nothing.
#![forbid(unsafe_code)]

use super::object::file::OpenFile;
use super::object::inode::Inode;
use super::object::mount::{Mount, MountFlags};
use super::object::types::{FileType, Times, Timestamp};
use abi::fs::OpenFlags;

const DAY: i64 = 24 * 60 * 60;

/// Updates the access time after an access through `mount`.
#[inline]
pub fn touch_atime(mount: &Mount, inode: &dyn Inode) {
    let flags = mount.flags();
    if flags.intersects(MountFlags::NOATIME | MountFlags::RDONLY) || mount.super_block().read_only()
    {
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

/// Updates the access time after a read of `file`.
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
