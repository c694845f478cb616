//! UDP and UDP-Lite: the socket (`udp`), and the way of a datagram (`transfer`, `ways`).
#![forbid(unsafe_code)]

mod transfer;
mod udp;
mod ways;

pub(super) use udp::{Udp, create};
