//! [`Ways`]: where a datagram goes, and how.
//!
//! Owns nothing. Never has the bytes. Locks: none.

use crate::net::count::Flow;
use core::net::SocketAddr;

/// Where a datagram goes, and how.
pub(super) struct Ways {
    pub to: SocketAddr,
    pub from: SocketAddr,
    pub hops: u8,
    pub class: u8,
    pub flow: Flow,
    /// How many calls with MSG_ZEROCOPY are to be told of once it is sent.
    pub uncopied: u32,
}
