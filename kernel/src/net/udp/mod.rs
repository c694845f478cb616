//! UDP and UDP-Lite: the socket (`udp`), and the way of a datagram (`transfer`).
#![forbid(unsafe_code)]

mod transfer;
mod udp;

pub(super) use udp::{Udp, create};
