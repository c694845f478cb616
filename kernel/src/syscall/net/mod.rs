//! Calls about sockets, whatever the family.

mod message;
pub(super) mod sendrecv;
pub(super) mod socket;
pub(super) mod sockopt;
