//! Sockets: families, types, flags and the structures of AF_UNIX.

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const AF_UNSPEC: u16 = 0;
pub const AF_UNIX: u16 = 1;

pub const SOCK_STREAM: u32 = 1;
pub const SOCK_DGRAM: u32 = 2;
pub const SOCK_RAW: u32 = 3;
pub const SOCK_SEQPACKET: u32 = 5;
/// Bits of `type` that hold the type itself.
pub const SOCK_TYPE_MASK: u32 = 0xf;

pub const SOL_SOCKET: i32 = 1;
pub const SCM_RIGHTS: i32 = 1;
pub const SCM_CREDENTIALS: i32 = 2;

/// Longest `sun_path`.
pub const UNIX_PATH_MAX: usize = 108;
/// Most descriptors in one message.
pub const SCM_MAX_FD: usize = 253;

/// Options at `SOL_SOCKET`.
pub mod so {
    pub const REUSEADDR: i32 = 2;
    pub const TYPE: i32 = 3;
    pub const ERROR: i32 = 4;
    pub const BROADCAST: i32 = 6;
    pub const SNDBUF: i32 = 7;
    pub const RCVBUF: i32 = 8;
    pub const KEEPALIVE: i32 = 9;
    pub const LINGER: i32 = 13;
    pub const REUSEPORT: i32 = 15;
    pub const PEEK_OFF: i32 = 42;
    pub const PASSCRED: i32 = 16;
    pub const PEERCRED: i32 = 17;
    pub const RCVLOWAT: i32 = 18;
    pub const SNDLOWAT: i32 = 19;
    pub const RCVTIMEO: i32 = 20;
    pub const SNDTIMEO: i32 = 21;
    pub const ATTACH_FILTER: i32 = 26;
    /// Of `getsockopt`, where it has the number of [`ATTACH_FILTER`].
    pub const GET_FILTER: i32 = ATTACH_FILTER;
    pub const DETACH_FILTER: i32 = 27;
    pub const PEERNAME: i32 = 28;
    pub const ACCEPTCONN: i32 = 30;
    pub const SNDBUFFORCE: i32 = 32;
    pub const RCVBUFFORCE: i32 = 33;
    pub const PROTOCOL: i32 = 38;
    pub const DOMAIN: i32 = 39;
    pub const LOCK_FILTER: i32 = 44;
    pub const ATTACH_BPF: i32 = 50;
}

bitflags! {
    /// Flags of send and recv.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct MsgFlags: u32 {
        const OOB = 0x1;
        const PEEK = 0x2;
        const DONTROUTE = 0x4;
        const CTRUNC = 0x8;
        const TRUNC = 0x20;
        const DONTWAIT = 0x40;
        const EOR = 0x80;
        const WAITALL = 0x100;
        const ERRQUEUE = 0x2000;
        const NOSIGNAL = 0x4000;
        const MORE = 0x8000;
        const WAITFORONE = 0x1_0000;
        const ZEROCOPY = 0x400_0000;
        const CMSG_CLOEXEC = 0x4000_0000;
    }
}

/// `struct ucred`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Ucred {
    pub pid: i32,
    pub uid: u32,
    pub gid: u32,
}

/// `struct msghdr`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MsgHdr {
    pub name: u64,
    pub namelen: u32,
    pub pad0: u32,
    pub iov: u64,
    pub iovlen: u64,
    pub control: u64,
    pub controllen: u64,
    pub flags: u32,
    pub pad1: u32,
}

/// `struct mmsghdr`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MmsgHdr {
    pub hdr: MsgHdr,
    pub len: u32,
    pub pad: u32,
}

/// `struct cmsghdr`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CmsgHdr {
    pub len: u64,
    pub level: i32,
    pub kind: i32,
}

/// `struct linger`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Linger {
    pub onoff: i32,
    pub linger: i32,
}
