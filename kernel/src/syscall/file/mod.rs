//! Calls about files: descriptors, names, contents.

pub(super) mod dir;
pub(super) mod exec;
pub(super) mod fd;
pub(super) mod file;
pub(super) mod inotify;
pub(super) mod install;
pub(super) mod memfd;
pub(super) mod mount;
mod passing;
pub(super) mod path;
pub(super) mod splice;
pub(super) mod xattr;
