//! Raw sockets: the socket (`raw`), its messages (`packet`, `part`), sending and receiving (`transfer`); and ping sockets, which only send
//! echo requests (`ping`), with the identifiers of those (`ident`).
#![forbid(unsafe_code)]

mod ident;
mod packet;
mod part;
mod ping;
mod raw;
mod transfer;

pub(super) use ping::create as create_ping;
pub(super) use raw::{Style, create};
pub(super) use transfer::{Shown, count, shown, tell_unreachable};
