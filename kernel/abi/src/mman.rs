//! Numbers of the memory-mapping calls.

/// mmap's flags.
pub mod map {
    pub const SHARED: u32 = 0x1;
    pub const PRIVATE: u32 = 0x2;
    pub const SHARED_VALIDATE: u32 = 0x3;
    pub const DROPPABLE: u32 = 0x8;
    /// The bits that hold the four above.
    pub const TYPE: u32 = 0xf;
    pub const FIXED: u32 = 0x10;
    pub const ANONYMOUS: u32 = 0x20;
    pub const BIT32: u32 = 0x40;
    pub const GROWSDOWN: u32 = 0x100;
    pub const DENYWRITE: u32 = 0x800;
    pub const EXECUTABLE: u32 = 0x1000;
    pub const LOCKED: u32 = 0x2000;
    pub const NORESERVE: u32 = 0x4000;
    pub const POPULATE: u32 = 0x8000;
    pub const NONBLOCK: u32 = 0x1_0000;
    pub const STACK: u32 = 0x2_0000;
    pub const HUGETLB: u32 = 0x4_0000;
    pub const SYNC: u32 = 0x8_0000;
    pub const FIXED_NOREPLACE: u32 = 0x10_0000;
    pub const UNINITIALIZED: u32 = 0x400_0000;
    /// Bits that select a huge page size.
    pub const HUGE_MASK: u32 = 0x3f << 26;
    /// What `SHARED_VALIDATE` accepts without asking the file.
    pub const LEGACY: u32 = SHARED
        | PRIVATE
        | FIXED
        | ANONYMOUS
        | DENYWRITE
        | EXECUTABLE
        | UNINITIALIZED
        | GROWSDOWN
        | LOCKED
        | NORESERVE
        | POPULATE
        | NONBLOCK
        | STACK
        | HUGETLB
        | BIT32
        | HUGE_MASK;
}

/// Bits of a protection beyond read, write and execute.
pub mod prot {
    pub const ACCESS: u32 = 7;
    pub const SEM: u32 = 8;
    pub const GROWSDOWN: u32 = 0x0100_0000;
    pub const GROWSUP: u32 = 0x0200_0000;
}

/// msync's flags.
pub mod ms {
    pub const ASYNC: u32 = 1;
    pub const INVALIDATE: u32 = 2;
    pub const SYNC: u32 = 4;
}

/// mlockall's flags, and mlock2's.
pub mod mcl {
    pub const CURRENT: u32 = 1;
    pub const FUTURE: u32 = 2;
    pub const ONFAULT: u32 = 4;
    /// mlock2's only flag.
    pub const MLOCK_ONFAULT: u32 = 1;
}

/// madvise's advice.
pub mod madv {
    pub const NORMAL: i32 = 0;
    pub const RANDOM: i32 = 1;
    pub const SEQUENTIAL: i32 = 2;
    pub const WILLNEED: i32 = 3;
    pub const DONTNEED: i32 = 4;
    pub const FREE: i32 = 8;
    pub const REMOVE: i32 = 9;
    pub const DONTFORK: i32 = 10;
    pub const DOFORK: i32 = 11;
    pub const HUGEPAGE: i32 = 14;
    pub const NOHUGEPAGE: i32 = 15;
    pub const COLLAPSE: i32 = 25;
    pub const DONTDUMP: i32 = 16;
    pub const DODUMP: i32 = 17;
    pub const WIPEONFORK: i32 = 18;
    pub const KEEPONFORK: i32 = 19;
    pub const COLD: i32 = 20;
    pub const PAGEOUT: i32 = 21;
    pub const POPULATE_READ: i32 = 22;
    pub const POPULATE_WRITE: i32 = 23;
    pub const DONTNEED_LOCKED: i32 = 24;
}

/// membarrier's commands.
pub mod membarrier {
    pub const QUERY: i32 = 0;
    pub const GLOBAL: i32 = 1;
    pub const GLOBAL_EXPEDITED: i32 = 2;
    pub const REGISTER_GLOBAL_EXPEDITED: i32 = 4;
    pub const PRIVATE_EXPEDITED: i32 = 8;
    pub const REGISTER_PRIVATE_EXPEDITED: i32 = 16;
    pub const PRIVATE_EXPEDITED_SYNC_CORE: i32 = 32;
    pub const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: i32 = 64;
    pub const PRIVATE_EXPEDITED_RSEQ: i32 = 128;
    pub const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 256;
    pub const GET_REGISTRATIONS: i32 = 512;
    /// Only the CPU that is named.
    pub const FLAG_CPU: u32 = 1;
}
