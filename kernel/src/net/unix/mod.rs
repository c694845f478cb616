//! AF_UNIX: the socket (`unix`), names, connections and messages; files in flight and their collector (`flight`, `garbage`).
#![forbid(unsafe_code)]

pub mod address;
pub mod connect;
mod file;
pub mod flight;
mod garbage;
mod option;
mod queue;
mod receive;
mod registry;
mod room;
pub mod sender;
mod transfer;
mod unix;

pub use address::Address;
pub use garbage::{collect_all, kept_pages};
pub use queue::Ancillary;
pub use receive::How;
pub(super) use registry::table;
pub use transfer::Outgoing;
pub use unix::{Kind, Socket, accept, create, of_file, open, pair};
