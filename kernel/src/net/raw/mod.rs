//! Raw sockets: the socket (`raw`), its messages (`packet`), their way (`transfer`).
#![forbid(unsafe_code)]

mod packet;
mod raw;
mod transfer;

pub(super) use raw::create;
pub(super) use transfer::{count, tell_unreachable};
