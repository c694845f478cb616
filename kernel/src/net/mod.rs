//! Sockets: AF_INET, AF_INET6 and AF_NETLINK over a loopback, the only interface; and AF_UNIX (`unix`).
//!
//! There are no packets: what one socket sends goes straight into the queue of the other, and what a
//! protocol would find out by asking the other end is looked up (docs/decisions/0004). [`NetSocket`] is what
//! the system calls see of all but AF_UNIX. Locks: each socket's state is a `Stream`; a listener's is taken
//! before that of a connection, that of the socket which connects before that of the new connection, and no
//! other two together; the table of ports is a `Leaf`. No spinlock is held while user memory is copied; a TCP
//! reader holds a mutex then, which gives readers their turns.
#![deny(unsafe_code)]

mod addr;
mod bind;
mod congestion;
mod control;
mod cork;
mod count;
mod create;
pub mod device;
mod file;
pub mod filter;
mod inbox;
mod limit;
mod list;
mod name;
mod netlink;
pub mod option;
mod options;
mod peek;
mod ports;
mod prepared;
mod proc;
mod raw;
mod snmp;
mod socket;
mod stamps;
mod sysctl;
mod tcp;
mod udp;
pub mod unix;

pub use control::stamp;
pub use create::{accept, create, init, open};
pub use file::of_file;
pub use limit::Timeouts;
pub use name::SockName;
pub use netlink::Note;
pub use peek::PeekOffset;
pub use ports::forget_waiting;
pub use socket::{Control, NetSocket, Outgoing, Who};
pub use stamps::shows as stamp_shows;
pub use sysctl::control_limit;
pub use sysctl::groups::may_ping;
