//! [`Part`]: a message that several calls put together (MSG_MORE).
//!
//! Owns its bytes. Never has the addresses: those of the last call count. Locks: none.

use alloc::vec::Vec;
use core::net::IpAddr;

/// Where a message comes from, and where it goes to.
pub(super) type Ends = (IpAddr, IpAddr);

/// What there is of the message.
pub(super) struct Part {
    /// Hops and class, of the first call.
    pub marks: (u8, u8),
    pub body: Vec<u8>,
}
