//! AF_NETLINK: the sockets (`netlink`), and how they answer about interfaces, addresses and routes (`route`).
#![forbid(unsafe_code)]

mod message;
mod netlink;
mod route;

pub(super) use netlink::{carry, create};
