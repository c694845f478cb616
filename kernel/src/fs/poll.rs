//! What a file reports to poll, select and epoll.

pub use abi::fs::PollEvents;
