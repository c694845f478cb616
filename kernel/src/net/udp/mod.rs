//! UDP and UDP-Lite: the socket (`udp`), the way of a datagram (`transfer`), and one that several calls put together (`cork`).
#![forbid(unsafe_code)]

mod cork;
mod transfer;
mod udp;

pub(super) use udp::{Udp, create};
