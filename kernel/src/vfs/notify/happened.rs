//! [`Event`]: what happened, in the bits of `struct inotify_event`.
#![forbid(unsafe_code)]

use crate::vfs::object::inode::Inode;
use crate::vfs::object::types::FileType;
use alloc::sync::Arc;

/// What happened: the bits of `struct inotify_event`.
pub mod event {
    pub const ACCESS: u32 = 0x1;
    pub const MODIFY: u32 = 0x2;
    pub const ATTRIB: u32 = 0x4;
    pub const CLOSE_WRITE: u32 = 0x8;
    pub const CLOSE_NOWRITE: u32 = 0x10;
    pub const OPEN: u32 = 0x20;
    pub const MOVED_FROM: u32 = 0x40;
    pub const MOVED_TO: u32 = 0x80;
    pub const CREATE: u32 = 0x100;
    pub const DELETE: u32 = 0x200;
    pub const DELETE_SELF: u32 = 0x400;
    pub const MOVE_SELF: u32 = 0x800;
    /// Never shown; tells an open for `execve` from other opens.
    pub const OPEN_EXEC: u32 = 0x1000;
    /// Never shown; set with `MOVED_FROM` if the new name is in the same directory.
    pub const WITHIN: u32 = 0x1_0000;
    pub const UNMOUNT: u32 = 0x2000;
    pub const Q_OVERFLOW: u32 = 0x4000;
    pub const IGNORED: u32 = 0x8000;
    pub const ISDIR: u32 = 0x4000_0000;
    /// What may be asked for.
    pub const ALL: u32 = 0xfff;
    /// What is ever reported.
    pub const SHOWN: u32 = ALL | UNMOUNT | Q_OVERFLOW | IGNORED | ISDIR;
}

/// One event on its way to the watchers of one object.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub mask: u32,
    pub cookie: u32,
    /// The name in a watched directory.
    pub name: Option<&'a [u8]>,
    /// It happened to an open file whose name is gone.
    pub(super) unlinked: bool,
}

impl Event<'_> {
    pub const fn plain(mask: u32) -> Self {
        Self { mask, cookie: 0, name: None, unlinked: false }
    }
}

pub(super) fn is_dir(inode: &Arc<dyn Inode>) -> u32 {
    if inode.attr().kind() == FileType::Dir { event::ISDIR } else { 0 }
}
