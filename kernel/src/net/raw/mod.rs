//! Raw sockets: the socket (`raw`), its messages (`packet`), their way (`transfer`); and those that only send echo requests (`ping`).
#![forbid(unsafe_code)]

mod ident;
mod packet;
mod ping;
mod raw;
mod transfer;

pub(super) use ping::create as create_ping;
pub(super) use raw::create;
pub(super) use transfer::{count, tell_unreachable};
