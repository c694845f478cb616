//! Calls about sockets, whatever the family.

mod filter;
pub(super) mod message;
pub(super) mod sendrecv;
pub(super) mod socket;
pub(super) mod sockopt;
