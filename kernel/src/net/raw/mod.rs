//! Raw sockets: the socket (`raw`), its messages (`packet`), their way (`transfer`).

mod packet;
mod raw;
mod transfer;

pub(super) use raw::create;
pub(super) use transfer::tell_unreachable;
