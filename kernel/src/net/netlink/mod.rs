//! AF_NETLINK: the sockets (`netlink`), and how they answer about interfaces, addresses and routes (`route`);
//! what the kernel tells a socket later (`note`); its options (`option`).
#![forbid(unsafe_code)]

mod message;
mod netlink;
mod note;
mod option;
mod route;

pub(super) use netlink::{carry, create};
pub use note::Note;
