//! epoll: the set (`epoll`) and what is watched (`item`).
#![forbid(unsafe_code)]

mod epoll;
mod item;

pub use epoll::{Change, Epoll, Event, check_target, new, register};
