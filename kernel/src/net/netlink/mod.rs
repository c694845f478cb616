//! AF_NETLINK: the sockets (`netlink`), and how they answer about interfaces, addresses and routes (`route`).

mod netlink;
mod route;

pub(super) use netlink::create;
