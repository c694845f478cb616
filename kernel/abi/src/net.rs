//! Networks: families, protocols, options and the structures of AF_INET, AF_INET6 and AF_NETLINK.
//!
//! Plain numbers and layouts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const AF_INET: u16 = 2;
pub const AF_INET6: u16 = 10;
pub const AF_NETLINK: u16 = 16;
pub const AF_PACKET: u16 = 17;

pub const IPPROTO_IP: i32 = 0;
pub const IPPROTO_ICMP: i32 = 1;
pub const IPPROTO_TCP: i32 = 6;
pub const IPPROTO_UDP: i32 = 17;
/// At the level of UDP: what is sent is put together until this is switched off.
pub const UDP_CORK: i32 = 1;
pub const IPPROTO_IPV6: i32 = 41;
pub const IPPROTO_ICMPV6: i32 = 58;
pub const IPPROTO_UDPLITE: i32 = 136;
pub const IPPROTO_RAW: i32 = 255;
/// The level of options of IPv4 raw sockets.
pub const SOL_RAW: i32 = 255;
/// Protocols of AF_INET are numbers below this.
pub const IPPROTO_MAX: i32 = 263;

/// `sizeof(struct sockaddr_in)` and of `struct sockaddr_in6`.
pub const SOCKADDR_IN: usize = 16;
pub const SOCKADDR_IN6: usize = 28;
/// Without the scope: as much of it as a call must give.
pub const SOCKADDR_IN6_MIN: usize = 24;

/// Options at `IPPROTO_IP`.
pub mod ip {
    pub const TOS: i32 = 1;
    pub const TTL: i32 = 2;
    pub const HDRINCL: i32 = 3;
    pub const OPTIONS: i32 = 4;
    pub const RECVOPTS: i32 = 6;
    pub const RETOPTS: i32 = 7;
    pub const PKTINFO: i32 = 8;
    pub const MTU_DISCOVER: i32 = 10;
    pub const RECVERR: i32 = 11;
    pub const RECVTTL: i32 = 12;
    pub const RECVTOS: i32 = 13;
    pub const MTU: i32 = 14;
    pub const FREEBIND: i32 = 15;
    pub const TRANSPARENT: i32 = 19;
    pub const RECVORIGDSTADDR: i32 = 20;
    pub const MINTTL: i32 = 21;
    pub const BIND_ADDRESS_NO_PORT: i32 = 24;
    pub const MULTICAST_IF: i32 = 32;
    pub const MULTICAST_TTL: i32 = 33;
    pub const MULTICAST_LOOP: i32 = 34;
    pub const ADD_MEMBERSHIP: i32 = 35;
    pub const DROP_MEMBERSHIP: i32 = 36;
    pub const MULTICAST_ALL: i32 = 49;
}

/// Options at `IPPROTO_IPV6`.
pub mod ipv6 {
    /// The names of RFC 2292, which some programs still use for the two below.
    pub const OLD_PKTINFO: i32 = 2;
    pub const OLD_HOPLIMIT: i32 = 8;
    pub const UNICAST_HOPS: i32 = 16;
    pub const MULTICAST_IF: i32 = 17;
    pub const MULTICAST_HOPS: i32 = 18;
    pub const MULTICAST_LOOP: i32 = 19;
    pub const JOIN_GROUP: i32 = 20;
    pub const LEAVE_GROUP: i32 = 21;
    pub const MTU_DISCOVER: i32 = 23;
    pub const MTU: i32 = 24;
    pub const RECVERR: i32 = 25;
    pub const V6ONLY: i32 = 26;
    pub const RECVPKTINFO: i32 = 49;
    pub const PKTINFO: i32 = 50;
    pub const RECVHOPLIMIT: i32 = 51;
    pub const HOPLIMIT: i32 = 52;
    pub const RECVRTHDR: i32 = 56;
    pub const RECVDSTOPTS: i32 = 58;
    pub const RECVPATHMTU: i32 = 60;
    pub const DONTFRAG: i32 = 62;
    pub const RECVTCLASS: i32 = 66;
    pub const TCLASS: i32 = 67;
    pub const RECVORIGDSTADDR: i32 = 74;
}

/// Requests about interfaces, addresses and routes.
pub const NETLINK_ROUTE: i32 = 0;
pub const SOL_NETLINK: i32 = 270;

/// Options at `SOL_NETLINK`.
pub mod netlink {
    pub const ADD_MEMBERSHIP: i32 = 1;
    pub const DROP_MEMBERSHIP: i32 = 2;
    pub const PKTINFO: i32 = 3;
    pub const NO_ENOBUFS: i32 = 5;
    pub const LIST_MEMBERSHIPS: i32 = 9;
    pub const CAP_ACK: i32 = 10;
    pub const EXT_ACK: i32 = 11;
    pub const GET_STRICT_CHK: i32 = 12;
}

/// Options at `IPPROTO_TCP`.
pub mod tcp {
    pub const NODELAY: i32 = 1;
    pub const MAXSEG: i32 = 2;
    pub const CORK: i32 = 3;
    pub const KEEPIDLE: i32 = 4;
    pub const KEEPINTVL: i32 = 5;
    pub const KEEPCNT: i32 = 6;
    pub const SYNCNT: i32 = 7;
    pub const LINGER2: i32 = 8;
    pub const DEFER_ACCEPT: i32 = 9;
    pub const WINDOW_CLAMP: i32 = 10;
    pub const INFO: i32 = 11;
    pub const QUICKACK: i32 = 12;
    pub const CONGESTION: i32 = 13;
    pub const USER_TIMEOUT: i32 = 18;
    pub const FASTOPEN: i32 = 23;
    pub const NOTSENT_LOWAT: i32 = 25;
    pub const FASTOPEN_CONNECT: i32 = 30;
}

/// States of a TCP socket, as `/proc/net/tcp` and TCP_INFO number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TcpState {
    Established = 1,
    SynSent = 2,
    FinWait2 = 5,
    TimeWait = 6,
    Close = 7,
    CloseWait = 8,
    Listen = 10,
}

/// Flags of a network interface.
pub mod iff {
    pub const UP: u32 = 0x1;
    pub const LOOPBACK: u32 = 0x8;
    pub const RUNNING: u32 = 0x40;
    pub const LOWER_UP: u32 = 0x1_0000;
}

/// Requests of `ioctl` on any socket of the internet.
pub mod siocs {
    pub const ATMARK: u32 = 0x8905;
    pub const GSTAMP: u32 = 0x8906;
    pub const GSTAMPNS: u32 = 0x8907;
    /// The same with a name of their own.
    pub const GSTAMP_NEW: u32 = 0x8010_8906;
    pub const GSTAMPNS_NEW: u32 = 0x8010_8907;
    pub const ADDRT: u32 = 0x890b;
    pub const DELRT: u32 = 0x890c;
    pub const GIFNAME: u32 = 0x8910;
    pub const GIFCONF: u32 = 0x8912;
    pub const GIFFLAGS: u32 = 0x8913;
    pub const SIFFLAGS: u32 = 0x8914;
    pub const GIFADDR: u32 = 0x8915;
    pub const SIFADDR: u32 = 0x8916;
    pub const GIFDSTADDR: u32 = 0x8917;
    pub const GIFBRDADDR: u32 = 0x8919;
    pub const GIFNETMASK: u32 = 0x891b;
    pub const SIFNETMASK: u32 = 0x891c;
    pub const GIFMETRIC: u32 = 0x891d;
    pub const GIFMEM: u32 = 0x891f;
    pub const GIFMTU: u32 = 0x8921;
    pub const SIFMTU: u32 = 0x8922;
    pub const GIFENCAP: u32 = 0x8925;
    pub const GIFHWADDR: u32 = 0x8927;
    pub const GIFSLAVE: u32 = 0x8929;
    pub const GIFINDEX: u32 = 0x8933;
    pub const GIFPFLAGS: u32 = 0x8935;
    pub const GIFBR: u32 = 0x8940;
    pub const GIFTXQLEN: u32 = 0x8942;
    pub const DARP: u32 = 0x8953;
    pub const GARP: u32 = 0x8954;
    pub const SARP: u32 = 0x8955;
    pub const GIFMAP: u32 = 0x8970;
    /// What a driver makes of its own.
    pub const PRIVATE: u32 = 0x89f0;
    /// Everything of the family.
    pub const FIRST: u32 = 0x8900;
    pub const LAST: u32 = 0x89ff;
}

/// `struct nlmsghdr`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NlMsgHdr {
    pub len: u32,
    pub kind: u16,
    pub flags: u16,
    pub seq: u32,
    pub pid: u32,
}

/// `struct sockaddr_nl`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SockaddrNl {
    pub family: u16,
    pub pad: u16,
    pub pid: u32,
    pub groups: u32,
}
