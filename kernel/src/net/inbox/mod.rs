//! What waits in a socket to be received: datagrams and reports of errors ([`Inbox`]), and what those say ([`report`]).

mod inbox;
pub mod report;

pub use inbox::{Datagram, Inbox, Taken};
