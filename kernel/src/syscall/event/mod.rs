//! Calls that wait for something, and the descriptors that are waited for.

pub(super) mod epoll;
pub(super) mod futex;
pub(super) mod pipe;
pub(super) mod poll;
