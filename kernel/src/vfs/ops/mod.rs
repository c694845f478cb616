//! Changes to the tree and to attributes, with Linux's checks in Linux's order.
//!
//! Every change of names holds the `change` mutexes of the directories concerned; which ones and in which
//! order is said in `dentry`.
#![forbid(unsafe_code)]

mod attr;
mod create;
mod mounting;
mod remove;
mod rename;
mod xattr;

pub(super) use attr::truncate_opened;
pub use attr::{Change, chmod, chown, set_id_lost_by_change, set_times, truncate};
pub(super) use create::create_locked;
pub use create::{create_with, link, mkdir, mknod, symlink};
pub use mounting::{Unmount, bind, move_mount, new_mount, remount, remount_flags, unmount};
pub use remove::{rmdir, unlink, unlink_in};
pub use rename::{RenameFlags, rename};
pub use xattr::{get_xattr, list_xattr, remove_xattr, set_xattr};
