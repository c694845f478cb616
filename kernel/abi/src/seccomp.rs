//! seccomp(2): modes, operations, actions and the structures of the listener (linux/seccomp.h).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const MODE_STRICT: u64 = 1;
pub const MODE_FILTER: u64 = 2;

/// What seccomp(2) is asked for.
pub mod op {
    pub const SET_MODE_STRICT: u32 = 0;
    pub const SET_MODE_FILTER: u32 = 1;
    pub const GET_ACTION_AVAIL: u32 = 2;
    pub const GET_NOTIF_SIZES: u32 = 3;
}

/// SECCOMP_FILTER_FLAG_*.
pub mod flag {
    pub const TSYNC: u32 = 1;
    pub const LOG: u32 = 2;
    pub const SPEC_ALLOW: u32 = 4;
    pub const NEW_LISTENER: u32 = 8;
    pub const TSYNC_ESRCH: u32 = 16;
    pub const WAIT_KILLABLE_RECV: u32 = 32;
}

/// What a filter says: the action in the upper half, data in the lower.
pub mod ret {
    pub const KILL_PROCESS: u32 = 0x8000_0000;
    pub const KILL_THREAD: u32 = 0;
    pub const TRAP: u32 = 0x0003_0000;
    pub const ERRNO: u32 = 0x0005_0000;
    pub const USER_NOTIF: u32 = 0x7fc0_0000;
    pub const TRACE: u32 = 0x7ff0_0000;
    pub const LOG: u32 = 0x7ffc_0000;
    pub const ALLOW: u32 = 0x7fff_0000;
    pub const ACTION: u32 = 0xffff_0000;
    pub const DATA: u32 = 0x0000_ffff;
}

/// AUDIT_ARCH_X86_64.
pub const ARCH_X86_64: u32 = 0xc000_003e;

/// `struct sock_fprog`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterProgram {
    pub len: u16,
    pub pad: [u16; 3],
    pub filter: u64,
}

/// `struct seccomp_notif`; `data` is `struct seccomp_data`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Notification {
    pub id: u64,
    pub pid: u32,
    pub flags: u32,
    pub data: [u32; 16],
}

/// `struct seccomp_notif_resp`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Response {
    pub id: u64,
    pub val: i64,
    pub error: i32,
    pub flags: u32,
}

impl Response {
    /// The call is made after all.
    pub const CONTINUE: u32 = 1;
}

/// `struct seccomp_notif_sizes`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sizes {
    pub notif: u16,
    pub resp: u16,
    pub data: u16,
}

/// `struct seccomp_notif_addfd`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AddFd {
    pub id: u64,
    pub flags: u32,
    pub srcfd: u32,
    pub newfd: u32,
    pub newfd_flags: u32,
}

impl AddFd {
    pub const SETFD: u32 = 1;
    pub const SEND: u32 = 2;
}

/// `struct seccomp_metadata`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Metadata {
    pub filter_off: u64,
    pub flags: u64,
}

/// What the listener's ioctl takes.
pub mod ioctl {
    pub const RECV: u32 = 0xc050_2100;
    pub const SEND: u32 = 0xc018_2101;
    pub const ID_VALID: u32 = 0x4008_2102;
    /// As the first headers had it.
    pub const ID_VALID_WRONG_DIR: u32 = 0x8008_2102;
    pub const SET_FLAGS: u32 = 0x4008_2104;
    /// Without direction and size, which may grow.
    pub const ADDFD: u32 = 0x2103;
    /// The direction and the size.
    pub const EXTENSIBLE: u32 = 0xffff_0000;
}

const _: () = {
    assert!(size_of::<FilterProgram>() == 16);
    assert!(size_of::<Notification>() == 80);
    assert!(size_of::<Response>() == 24);
    assert!(size_of::<AddFd>() == 24);
};
