//! TCP: one end (`tcp`), its bytes, and how it connects, transfers and closes.
#![forbid(unsafe_code)]

mod bytes;
mod close;
mod connect;
mod heard;
mod option;
mod tcp;
mod transfer;

pub(super) use tcp::{Tcp, create};
