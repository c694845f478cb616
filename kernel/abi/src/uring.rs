//! io_uring(7): the entries of both rings, what set-up and waiting take, the numbers of operations (linux/io_uring.h of 6.12).
//!
//! Layouts and numbers only.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct io_uring_sqe`: one request. What the fields mean depends on the operation.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sqe {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    /// Also `addr2`.
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    /// `rw_flags`, `open_flags` and so on.
    pub op_flags: u32,
    pub user_data: u64,
    pub buf_index: u16,
    pub personality: u16,
    /// Also `splice_fd_in`.
    pub file_index: u32,
    pub addr3: u64,
    pub pad: u64,
}

/// `struct io_uring_cqe`: what became of a request.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Cqe {
    pub user_data: u64,
    pub res: i32,
    pub flags: u32,
}

/// `struct io_sqring_offsets`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub flags: u32,
    pub dropped: u32,
    pub array: u32,
    pub resv: u32,
    pub user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub overflow: u32,
    pub cqes: u32,
    pub flags: u32,
    pub resv: u32,
    pub user_addr: u64,
}

/// `struct io_uring_params`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Params {
    pub sq_entries: u32,
    pub cq_entries: u32,
    pub flags: u32,
    pub sq_thread_cpu: u32,
    pub sq_thread_idle: u32,
    pub features: u32,
    pub wq_fd: u32,
    pub resv: [u32; 3],
    pub sq_off: SqOffsets,
    pub cq_off: CqOffsets,
}

/// `struct io_uring_getevents_arg`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetEvents {
    pub sigmask: u64,
    pub sigmask_size: u32,
    pub min_wait_usec: u32,
    pub timeout: u64,
}

/// `struct io_uring_probe`; as many [`ProbeOp`] follow as were asked for.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Probe {
    pub last_op: u8,
    pub ops_len: u8,
    pub resv: u16,
    pub resv2: [u32; 3],
}

/// `struct io_uring_probe_op`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ProbeOp {
    pub op: u8,
    pub resv: u8,
    pub flags: u16,
    pub resv2: u32,
}

/// `struct io_uring_buf`: a buffer in a ring of user memory.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ProvidedBuffer {
    pub addr: u64,
    pub len: u32,
    pub id: u16,
    /// In the first buffer the ring's tail.
    pub resv: u16,
}

/// `struct io_uring_buf_reg`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BufferReg {
    pub ring_addr: u64,
    pub ring_entries: u32,
    pub bgid: u16,
    pub flags: u16,
    pub resv: [u64; 3],
}

/// `struct io_uring_buf_status`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BufferStatus {
    pub buf_group: u32,
    pub head: u32,
    pub resv: [u32; 8],
}

/// `struct io_uring_files_update`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilesUpdate {
    pub offset: u32,
    pub resv: u32,
    pub fds: u64,
}

/// `struct io_uring_recvmsg_out`: what stands before a message of many.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RecvmsgOut {
    pub namelen: u32,
    pub controllen: u32,
    pub payloadlen: u32,
    pub flags: u32,
}

/// `struct io_uring_rsrc_register`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Resources {
    pub nr: u32,
    pub flags: u32,
    pub resv2: u64,
    pub data: u64,
    pub tags: u64,
}

/// IORING_RSRC_REGISTER_SPARSE: all places are free.
pub const RSRC_SPARSE: u32 = 1;

/// `struct io_uring_rsrc_update2`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ResourceUpdate {
    pub offset: u32,
    pub resv: u32,
    pub data: u64,
    pub tags: u64,
    pub nr: u32,
    pub resv2: u32,
}

/// `struct io_uring_file_index_range`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IndexRange {
    pub off: u32,
    pub len: u32,
    pub resv: u64,
}

/// `struct io_uring_restriction`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Restriction {
    pub kind: u16,
    /// An operation of registering, one of entries, or their flags.
    pub value: u8,
    pub resv: u8,
    pub resv2: [u32; 3],
}

/// `struct io_uring_rsrc_update`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Update {
    pub offset: u32,
    pub resv: u32,
    pub data: u64,
}

/// `struct io_uring_sync_cancel_reg`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SyncCancel {
    pub addr: u64,
    pub fd: i32,
    pub flags: u32,
    pub timeout: [i64; 2],
    pub opcode: u8,
    pub pad: [u8; 7],
    pub pad2: [u64; 3],
}

const _: () = assert!(size_of::<Restriction>() == 16);
const _: () = assert!(size_of::<RecvmsgOut>() == 16);
const _: () = assert!(size_of::<Resources>() == 32);
const _: () = assert!(size_of::<ResourceUpdate>() == 32);
const _: () = assert!(size_of::<IndexRange>() == 16);
const _: () = assert!(size_of::<Update>() == 16);
const _: () = assert!(size_of::<SyncCancel>() == 64);
const _: () = assert!(size_of::<ProvidedBuffer>() == 16);
const _: () = assert!(size_of::<BufferReg>() == 40);
const _: () = assert!(size_of::<BufferStatus>() == 40);
const _: () = assert!(size_of::<FilesUpdate>() == 16);
const _: () = assert!(size_of::<Sqe>() == 64);
const _: () = assert!(size_of::<Cqe>() == 16);
const _: () = assert!(size_of::<SqOffsets>() == 40);
const _: () = assert!(size_of::<CqOffsets>() == 40);
const _: () = assert!(size_of::<Params>() == 120);
const _: () = assert!(size_of::<GetEvents>() == 24);
const _: () = assert!(size_of::<Probe>() == 16);
const _: () = assert!(size_of::<ProbeOp>() == 8);

/// IORING_SETUP_*.
pub mod setup {
    pub const IOPOLL: u32 = 1;
    pub const SQPOLL: u32 = 1 << 1;
    pub const SQ_AFF: u32 = 1 << 2;
    pub const CQSIZE: u32 = 1 << 3;
    pub const CLAMP: u32 = 1 << 4;
    pub const ATTACH_WQ: u32 = 1 << 5;
    pub const R_DISABLED: u32 = 1 << 6;
    pub const SUBMIT_ALL: u32 = 1 << 7;
    pub const COOP_TASKRUN: u32 = 1 << 8;
    pub const TASKRUN_FLAG: u32 = 1 << 9;
    pub const SINGLE_ISSUER: u32 = 1 << 12;
    pub const DEFER_TASKRUN: u32 = 1 << 13;
    pub const NO_SQARRAY: u32 = 1 << 16;
}

/// IORING_FEAT_*.
pub mod feature {
    pub const SINGLE_MMAP: u32 = 1;
    pub const NODROP: u32 = 1 << 1;
    pub const SUBMIT_STABLE: u32 = 1 << 2;
    pub const RW_CUR_POS: u32 = 1 << 3;
    pub const CUR_PERSONALITY: u32 = 1 << 4;
    pub const FAST_POLL: u32 = 1 << 5;
    pub const POLL_32BITS: u32 = 1 << 6;
    pub const SQPOLL_NONFIXED: u32 = 1 << 7;
    pub const EXT_ARG: u32 = 1 << 8;
    pub const CQE_SKIP: u32 = 1 << 11;
    pub const LINKED_FILE: u32 = 1 << 12;
    pub const REG_REG_RING: u32 = 1 << 13;
}

/// IOSQE_*.
pub mod sqe {
    pub const FIXED_FILE: u8 = 1;
    pub const IO_DRAIN: u8 = 2;
    pub const IO_LINK: u8 = 4;
    pub const IO_HARDLINK: u8 = 8;
    pub const ASYNC: u8 = 16;
    pub const BUFFER_SELECT: u8 = 32;
    pub const CQE_SKIP_SUCCESS: u8 = 64;
    pub const KNOWN: u8 = 127;
}

/// IORING_ENTER_*.
pub mod enter {
    pub const GETEVENTS: u32 = 1;
    pub const SQ_WAKEUP: u32 = 2;
    pub const SQ_WAIT: u32 = 4;
    pub const EXT_ARG: u32 = 8;
    pub const REGISTERED_RING: u32 = 16;
    pub const ABS_TIMER: u32 = 32;
    /// Those that are taken.
    pub const KNOWN: u32 = GETEVENTS | SQ_WAKEUP | SQ_WAIT | EXT_ARG | REGISTERED_RING | ABS_TIMER;
}

/// IORING_REGISTER_*.
pub mod register {
    pub const BUFFERS: u32 = 0;
    pub const UNREGISTER_BUFFERS: u32 = 1;
    pub const FILES: u32 = 2;
    pub const UNREGISTER_FILES: u32 = 3;
    pub const EVENTFD: u32 = 4;
    pub const UNREGISTER_EVENTFD: u32 = 5;
    pub const FILES_UPDATE: u32 = 6;
    pub const EVENTFD_ASYNC: u32 = 7;
    pub const PROBE: u32 = 8;
    pub const PERSONALITY: u32 = 9;
    pub const UNREGISTER_PERSONALITY: u32 = 10;
    pub const RESTRICTIONS: u32 = 11;
    pub const ENABLE_RINGS: u32 = 12;
    pub const FILES2: u32 = 13;
    pub const FILES_UPDATE2: u32 = 14;
    pub const RING_FDS: u32 = 20;
    pub const UNREGISTER_RING_FDS: u32 = 21;
    pub const PBUF_RING: u32 = 22;
    pub const UNREGISTER_PBUF_RING: u32 = 23;
    pub const SYNC_CANCEL: u32 = 24;
    pub const FILE_ALLOC_RANGE: u32 = 25;
    pub const PBUF_STATUS: u32 = 26;
    /// One more than the last that Linux 6.12 knows.
    pub const END: u32 = 31;
    /// The ring is one that the thread has registered.
    pub const USE_REGISTERED_RING: u32 = 1 << 31;
    /// IO_URING_OP_SUPPORTED.
    pub const SUPPORTED: u16 = 1;
}

/// IORING_ASYNC_CANCEL_*.
pub mod cancel {
    pub const ALL: u32 = 1;
    pub const FD: u32 = 2;
    pub const ANY: u32 = 4;
    pub const FD_FIXED: u32 = 8;
    pub const USERDATA: u32 = 16;
    pub const OP: u32 = 32;
    pub const KNOWN: u32 = 63;
}

/// Where `mmap` finds what (IORING_OFF_*).
pub mod offset {
    pub const SQ_RING: u64 = 0;
    pub const CQ_RING: u64 = 0x800_0000;
    pub const SQES: u64 = 0x1000_0000;
}

/// Bits of the flags that the kernel writes into the submission ring (IORING_SQ_*).
pub mod sq_flag {
    pub const NEED_WAKEUP: u32 = 1;
    pub const CQ_OVERFLOW: u32 = 2;
    pub const TASKRUN: u32 = 4;
}

/// IORING_CQ_EVENTFD_DISABLED, which user space writes into the completion ring.
pub const EVENTFD_DISABLED: u32 = 1;

/// IORING_CQE_F_BUFFER: the upper half says which buffer was taken.
pub const CQE_BUFFER: u32 = 1;
/// Where in the flags it says so.
pub const CQE_BUFFER_SHIFT: u32 = 16;

/// IORING_CQE_F_MORE: the request goes on.
pub const CQE_MORE: u32 = 2;
/// IORING_CQE_F_NOTIF: of SEND_ZC and SENDMSG_ZC, whose bytes may be used again.
pub const CQE_NOTIF: u32 = 8;
/// IORING_NOTIF_USAGE_ZC_COPIED: they were copied.
pub const ZC_COPIED: u32 = 1 << 31;

/// IORING_OP_*.
pub mod op {
    pub const NOP: u8 = 0;
    pub const READV: u8 = 1;
    pub const WRITEV: u8 = 2;
    pub const FSYNC: u8 = 3;
    pub const READ_FIXED: u8 = 4;
    pub const WRITE_FIXED: u8 = 5;
    pub const POLL_ADD: u8 = 6;
    pub const POLL_REMOVE: u8 = 7;
    pub const SYNC_FILE_RANGE: u8 = 8;
    pub const SENDMSG: u8 = 9;
    pub const RECVMSG: u8 = 10;
    pub const TIMEOUT: u8 = 11;
    pub const TIMEOUT_REMOVE: u8 = 12;
    pub const ACCEPT: u8 = 13;
    pub const ASYNC_CANCEL: u8 = 14;
    pub const LINK_TIMEOUT: u8 = 15;
    pub const CONNECT: u8 = 16;
    pub const FALLOCATE: u8 = 17;
    pub const OPENAT: u8 = 18;
    pub const CLOSE: u8 = 19;
    pub const FILES_UPDATE: u8 = 20;
    pub const STATX: u8 = 21;
    pub const READ: u8 = 22;
    pub const WRITE: u8 = 23;
    pub const FADVISE: u8 = 24;
    pub const MADVISE: u8 = 25;
    pub const SEND: u8 = 26;
    pub const RECV: u8 = 27;
    pub const OPENAT2: u8 = 28;
    pub const EPOLL_CTL: u8 = 29;
    pub const SPLICE: u8 = 30;
    pub const PROVIDE_BUFFERS: u8 = 31;
    pub const REMOVE_BUFFERS: u8 = 32;
    pub const TEE: u8 = 33;
    pub const SHUTDOWN: u8 = 34;
    pub const RENAMEAT: u8 = 35;
    pub const UNLINKAT: u8 = 36;
    pub const MKDIRAT: u8 = 37;
    pub const SYMLINKAT: u8 = 38;
    pub const LINKAT: u8 = 39;
    pub const MSG_RING: u8 = 40;
    pub const SOCKET: u8 = 45;
    pub const SEND_ZC: u8 = 47;
    pub const SENDMSG_ZC: u8 = 48;
    pub const WAITID: u8 = 50;
    pub const FUTEX_WAIT: u8 = 51;
    pub const FUTEX_WAKE: u8 = 52;
    pub const FIXED_FD_INSTALL: u8 = 54;
    pub const FTRUNCATE: u8 = 55;
    pub const BIND: u8 = 56;
    pub const LISTEN: u8 = 57;
    /// The last that Linux 6.12 knows.
    pub const LAST: u8 = LISTEN;
}
