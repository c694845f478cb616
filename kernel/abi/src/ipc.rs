//! System V IPC: `<linux/ipc.h>`, `<linux/shm.h>`, `<linux/sem.h>`, `<linux/msg.h>`, in their 64-bit forms; POSIX
//! message queues: `<linux/mqueue.h>`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A key that names no object.
pub const IPC_PRIVATE: i32 = 0;

/// Flags of the get calls.
pub mod get {
    pub const CREAT: u32 = 0o1000;
    pub const EXCL: u32 = 0o2000;
    /// Of shmget.
    pub const SHM_HUGETLB: u32 = 0o4000;
    pub const SHM_NORESERVE: u32 = 0o10000;
    /// Where the logarithm of a size of huge pages stands, and how wide it is.
    pub const SHM_HUGE_SHIFT: u32 = 26;
    pub const SHM_HUGE_MASK: u32 = 0x3f;
}

/// Commands of the control calls.
pub mod cmd {
    pub const RMID: i32 = 0;
    pub const SET: i32 = 1;
    pub const STAT: i32 = 2;
    pub const INFO: i32 = 3;
    pub const SHM_LOCK: i32 = 11;
    pub const SHM_UNLOCK: i32 = 12;
    pub const SHM_STAT: i32 = 13;
    pub const SHM_INFO: i32 = 14;
    pub const SHM_STAT_ANY: i32 = 15;
    pub const MSG_STAT: i32 = 11;
    pub const MSG_INFO: i32 = 12;
    pub const MSG_STAT_ANY: i32 = 13;
    pub const GETPID: i32 = 11;
    pub const GETVAL: i32 = 12;
    pub const GETALL: i32 = 13;
    pub const GETNCNT: i32 = 14;
    pub const GETZCNT: i32 = 15;
    pub const SETVAL: i32 = 16;
    pub const SETALL: i32 = 17;
    pub const SEM_STAT: i32 = 18;
    pub const SEM_INFO: i32 = 19;
    pub const SEM_STAT_ANY: i32 = 20;
}

/// Flags of shmat.
pub mod at {
    pub const RDONLY: u32 = 0o10000;
    pub const RND: u32 = 0o20000;
    pub const REMAP: u32 = 0o40000;
    pub const EXEC: u32 = 0o100000;
}

/// Bits of a segment's mode beyond the permissions.
pub mod shm_mode {
    /// It goes when it is attached no more.
    pub const DEST: u32 = 0o1000;
    pub const LOCKED: u32 = 0o2000;
}

/// `struct ipc64_perm`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IpcPerm {
    pub key: i32,
    pub uid: u32,
    pub gid: u32,
    pub cuid: u32,
    pub cgid: u32,
    pub mode: u32,
    pub seq: u16,
    pub pad: [u16; 3],
    pub unused: [u64; 2],
}

/// `struct shmid64_ds`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ShmidDs {
    pub perm: IpcPerm,
    /// Bytes.
    pub segsz: u64,
    /// Times in seconds.
    pub atime: i64,
    pub dtime: i64,
    pub ctime: i64,
    pub cpid: i32,
    pub lpid: i32,
    pub nattch: u64,
    pub unused: [u64; 2],
}

/// `struct shminfo64`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Shminfo {
    pub shmmax: u64,
    pub shmmin: u64,
    pub shmmni: u64,
    pub shmseg: u64,
    /// Pages.
    pub shmall: u64,
    pub unused: [u64; 4],
}

/// `struct shm_info`: how many segments there are, and their pages.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ShmInfo {
    pub used_ids: i32,
    pub pad: u32,
    pub tot: u64,
    pub rss: u64,
    pub swp: u64,
    pub swap_attempts: u64,
    pub swap_successes: u64,
}

/// Flags of an operation on a semaphore.
pub mod sem_flag {
    pub const NOWAIT: i16 = 0o4000;
    pub const UNDO: i16 = 0x1000;
}

/// `struct sembuf`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sembuf {
    pub num: u16,
    pub op: i16,
    pub flg: i16,
}

/// `struct semid64_ds` of x86_64.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SemidDs {
    pub perm: IpcPerm,
    /// Times in seconds.
    pub otime: i64,
    pub unused1: u64,
    pub ctime: i64,
    pub unused2: u64,
    pub nsems: u64,
    pub unused: [u64; 2],
}

/// `struct seminfo`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Seminfo {
    pub semmap: i32,
    pub semmni: i32,
    pub semmns: i32,
    pub semmnu: i32,
    pub semmsl: i32,
    pub semopm: i32,
    pub semume: i32,
    pub semusz: i32,
    pub semvmx: i32,
    pub semaem: i32,
}

/// Flags of msgsnd and msgrcv.
pub mod msg_flag {
    pub const NOWAIT: u32 = 0o4000;
    /// What does not fit is cut off.
    pub const NOERROR: u32 = 0o10000;
    pub const EXCEPT: u32 = 0o20000;
    pub const COPY: u32 = 0o40000;
}

/// `struct msqid64_ds`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MsqidDs {
    pub perm: IpcPerm,
    /// Times in seconds.
    pub stime: i64,
    pub rtime: i64,
    pub ctime: i64,
    pub cbytes: u64,
    pub qnum: u64,
    pub qbytes: u64,
    pub lspid: i32,
    pub lrpid: i32,
    pub unused: [u64; 2],
}

/// `struct msginfo`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Msginfo {
    pub msgpool: i32,
    pub msgmap: i32,
    pub msgmax: i32,
    pub msgmnb: i32,
    pub msgmni: i32,
    pub msgssz: i32,
    pub msgtql: i32,
    pub msgseg: u16,
    pub pad: u16,
}

/// `struct mq_attr`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MqAttr {
    /// O_NONBLOCK or nothing.
    pub flags: i64,
    /// Messages that it takes, and bytes of each.
    pub maxmsg: i64,
    pub msgsize: i64,
    pub curmsgs: i64,
    pub reserved: [i64; 4],
}

const _: () = {
    assert!(size_of::<MqAttr>() == 64);
    assert!(size_of::<IpcPerm>() == 48);
    assert!(size_of::<ShmidDs>() == 112);
    assert!(size_of::<Shminfo>() == 72);
    assert!(size_of::<ShmInfo>() == 48);
    assert!(size_of::<Sembuf>() == 6);
    assert!(size_of::<SemidDs>() == 104);
    assert!(size_of::<Seminfo>() == 40);
    assert!(size_of::<MsqidDs>() == 120);
    assert!(size_of::<Msginfo>() == 32);
};
