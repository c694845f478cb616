//! inotify: an open file from which events are read, and how many a user may have.

pub(super) mod inotify;
pub(super) mod limits;
