//! /proc/sys/net.
//!
//! Owns the defaults of sockets and the limits of what they may ask for. Never changes the buffers that a socket has nor an option
//! that it has set; an option that it has not set follows its setting. Locks: none.

pub mod groups;
pub mod ipv6;
pub mod range;
pub mod tcp;

use super::limit::SOMAXCONN;
use crate::base::setting::{Bounded, Setting};
use crate::fs::procfs::{Kept, register_kept, register_setting};
use abi::Result;

/// Least values of SO_SNDBUF and SO_RCVBUF, in bytes.
pub const MIN_SEND: usize = 4608;
pub const MIN_RECEIVE: usize = 2304;

crate::setting! {
    /// What a program may ask for as SO_RCVBUF and SO_SNDBUF (before it is doubled), and what a new socket has, but for TCP; in bytes.
    static RMEM_MAX = 212_992, MIN_RECEIVE as i32..=i32::MAX;
    static WMEM_MAX = 212_992, MIN_SEND as i32..=i32::MAX;
    static RMEM_DEFAULT = 212_992, MIN_RECEIVE as i32..=i32::MAX;
    static WMEM_DEFAULT = 212_992, MIN_SEND as i32..=i32::MAX;
    /// IP_TTL of a socket that has not set it.
    pub static TTL = 64, 1..=255;
    /// TCP_KEEPIDLE, TCP_KEEPINTVL (seconds) and TCP_KEEPCNT of a socket that has not set them.
    pub static KEEPALIVE_TIME = 7200, 1..=32767;
    pub static KEEPALIVE_INTERVAL = 75, 1..=32767;
    pub static KEEPALIVE_PROBES = 9, 1..=127;
    /// TCP_SYNCNT of a socket that has not set it.
    pub static SYN_RETRIES = 6, 1..=127;
    /// TCP_LINGER2 of a socket that has not set it, in seconds.
    pub static FIN_TIMEOUT = 60, 0..=i32::MAX;
    /// Control data of this length, in bytes, are too long already.
    static OPTMEM_MAX = 131_072, 0..=i32::MAX;
    /// IPV6_V6ONLY of a new socket: the lowest bit, as on Linux.
    static BINDV6ONLY = 0, 0..=255;
    /// How many datagrams may wait at a new AF_UNIX socket before its senders wait; a negative number is no limit.
    static MAX_DGRAM_QLEN = 10, i32::MIN..=i32::MAX;
}

/// The sizes of a new socket's buffers, in bytes: to send, to receive.
pub fn new_buffers() -> (usize, usize) {
    (WMEM_DEFAULT.get() as usize, RMEM_DEFAULT.get() as usize)
}

/// Whether a new socket of IPv6 is for IPv6 alone.
pub fn new_is_v6_only() -> bool {
    BINDV6ONLY.get() & 1 != 0
}

/// How many datagrams may wait at a new AF_UNIX socket.
pub fn new_queue_length() -> u32 {
    MAX_DGRAM_QLEN.get().cast_unsigned()
}

/// Control data of so many bytes are too long, whatever `optmem_max` says: Linux allocates them in one piece.
const LONGEST_CONTROL: usize = 4 << 20;

/// Control data of so many bytes are too long.
pub fn control_limit() -> usize {
    (OPTMEM_MAX.get() as usize).min(LONGEST_CONTROL)
}

/// As many bytes may what is set on one socket come to.
pub fn most_options() -> usize {
    OPTMEM_MAX.get() as usize
}

/// What SO_SNDBUF makes of `asked`: Linux doubles it.
pub fn send_buffer(asked: usize) -> usize {
    asked.min(WMEM_MAX.get() as usize).saturating_mul(2).max(MIN_SEND)
}

/// What SO_RCVBUF makes of `asked`.
pub fn receive_buffer(asked: usize) -> usize {
    asked.min(RMEM_MAX.get() as usize).saturating_mul(2).max(MIN_RECEIVE)
}

static SETTINGS: [(&str, &dyn Setting); 14] = [
    ("net/core/somaxconn", &SOMAXCONN),
    ("net/core/rmem_max", &RMEM_MAX),
    ("net/core/wmem_max", &WMEM_MAX),
    ("net/core/rmem_default", &RMEM_DEFAULT),
    ("net/core/wmem_default", &WMEM_DEFAULT),
    ("net/ipv4/ip_default_ttl", &TTL),
    ("net/ipv4/tcp_keepalive_time", &KEEPALIVE_TIME),
    ("net/ipv4/tcp_keepalive_intvl", &KEEPALIVE_INTERVAL),
    ("net/ipv4/tcp_keepalive_probes", &KEEPALIVE_PROBES),
    ("net/ipv4/tcp_syn_retries", &SYN_RETRIES),
    ("net/ipv4/tcp_fin_timeout", &FIN_TIMEOUT),
    ("net/core/optmem_max", &OPTMEM_MAX),
    ("net/ipv6/bindv6only", &BINDV6ONLY),
    ("net/unix/max_dgram_qlen", &MAX_DGRAM_QLEN),
];

const ONLY_LO: &str = "there is no way but the loopback";

static KEPT: [Kept; 1] =
    [Kept::new("net/ipv4/ip_forward", Bounded::new(0, i32::MIN..=i32::MAX), ONLY_LO)];

/// Adds the files to /proc.
pub fn register() -> Result<()> {
    for (path, setting) in SETTINGS {
        register_setting(path, setting)?;
    }
    register_kept(&KEPT)?;
    groups::register()?;
    ipv6::register()?;
    tcp::register()?;
    range::register()
}
