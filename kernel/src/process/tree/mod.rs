//! Who belongs to whom: numbers (`table`), groups and sessions, birth (`clone`), end (`exit`, `wait`), handles (`pidfd`).

pub mod clone;
pub mod exit;
pub(super) mod family;
pub(super) mod group;
pub mod pidfd;
pub(super) mod table;
pub(super) mod terminal;
pub mod wait;
