//! Carrying one request out: [`mod@perform`] by the functions that the system calls use, [`mod@transfer`] what moves bytes or connections,
//! [`mod@plain`] the most usual of those, [`mod@message`] RECVMSG into provided buffers.
//!
//! Owns nothing itself. Locks: none.

pub mod message;
pub mod perform;
pub mod plain;
pub mod transfer;
