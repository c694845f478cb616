//! Who has which port: bindings, their conflicts, free ports, and the ports that wait after a connection.
//!
//! `table` has an entry for each bound socket, a [`Port`] is the socket's hold on it, `claim` gives out ports, and `find`
//! looks up who gets what is sent to one, and lists them all.

mod claim;
mod cover;
mod find;
mod port;
mod table;

pub use claim::{claim, claim_for};
pub use cover::Cover;
pub use find::{Seen, for_each, listener, receiver, window};
pub use port::{Port, listen, stop_listening};
pub use table::{Claim, Holder, Place, forget_waited, forget_waiting};
