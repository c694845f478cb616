//! The plain types of the address-space interface: what is asked of a space, and what it answers.
//!
//! Owns nothing. Never checks anything: who is asked does (`map`, `advise`, `fault`). Locks: none.

use crate::mm::page_cache::source::MapSource;
use alloc::string::String;
use alloc::sync::Arc;
use bitflags::bitflags;
use core::ops::Range;
use x86_64::VirtAddr;

bitflags! {
    /// What a mapping allows. Equal to Linux's PROT_* bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Prot: u32 {
        const READ = 1;
        const WRITE = 2;
        const EXEC = 4;
    }
}

bitflags! {
    /// Properties of a mapping, beyond protection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct VmFlags: u32 {
        const READ = 1 << 0;
        const WRITE = 1 << 1;
        const EXEC = 1 << 2;
        const SHARED = 1 << 3;
        /// mprotect may add the right.
        const MAY_READ = 1 << 4;
        const MAY_WRITE = 1 << 5;
        const MAY_EXEC = 1 << 6;
        const GROWSDOWN = 1 << 7;
        const LOCKED = 1 << 8;
        const NORESERVE = 1 << 9;
        /// Not copied by fork.
        const DONTFORK = 1 << 10;
        /// Empty in the child after fork.
        const WIPEONFORK = 1 << 11;
        const DONTDUMP = 1 << 12;
        /// Contents vanish when memory runs out; fork wipes it.
        const DROPPABLE = 1 << 13;
        /// Pages of a shared memory object rather than of a file.
        const SHMEM = 1 << 14;
        /// Of the vDSO: the same frames in every space.
        const SPECIAL = 1 << 17;
        /// In a request only: MAP_32BIT, a place in the second GiB.
        const LOW = 1 << 16;
        /// Its pages were promised: they count as committed memory.
        const PROMISED = 1 << 18;
        /// It goes whole or not at all, and does not grow.
        const WHOLE = 1 << 19;
        /// Large pages are wanted, where they are not for all.
        const HUGE = 1 << 20;
        /// Of pages that only mappings show: nobody reaches them by another way.
        const SECRET = 1 << 22;
        /// No more pages than those that are touched.
        const NOHUGE = 1 << 21;
        /// A page was written privately: what a merge may ignore.
        const HAS_ANON = 1 << 15;
    }
}

impl VmFlags {
    /// The three rights.
    pub const ACCESS: Self = Self::READ.union(Self::WRITE).union(Self::EXEC);
    /// What mprotect may grant in an ordinary mapping.
    pub const MAY_ALL: Self = Self::MAY_READ.union(Self::MAY_WRITE).union(Self::MAY_EXEC);

    /// The rights that `prot` asks for.
    pub const fn from_prot(prot: Prot) -> Self {
        Self::from_bits_truncate(prot.bits()).intersection(Self::ACCESS)
    }

    /// Whether a mapping of this kind is a promise of its pages.
    pub const fn is_promise(self) -> bool {
        self.is_private_writable() && !self.intersects(Self::NORESERVE.union(Self::DROPPABLE))
    }

    /// Private and writable: what counts as data.
    pub const fn is_private_writable(self) -> bool {
        self.contains(Self::WRITE) && !self.contains(Self::SHARED)
    }
}

/// How binding the requested address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFixed {
    /// A hint.
    No,
    /// Exactly there; what was there is unmapped.
    Replace,
    /// Exactly there, or `EEXIST`.
    NoReplace,
}

/// What stands behind a mapping.
#[derive(Clone)]
pub enum Backing {
    /// Zero-filled memory, with the rights (`MAY_*`) that mprotect may grant.
    Anon { may: VmFlags },
    /// Pages of `source` from byte `offset` (page-aligned).
    File { source: Arc<dyn MapSource>, offset: u64 },
}

impl Backing {
    /// Memory of the program's own.
    pub const ANON: Self = Self::Anon { may: VmFlags::MAY_ALL };
}

/// One call of `AddressSpace::map`.
pub struct MapRequest {
    /// Wanted address; a hint unless `fixed` says otherwise.
    pub addr: Option<VirtAddr>,
    pub fixed: MapFixed,
    /// Bytes; rounded up to pages.
    pub len: u64,
    pub prot: Prot,
    /// MAP_SHARED.
    pub shared: bool,
    pub backing: Backing,
    /// GROWSDOWN, NORESERVE, LOCKED, DROPPABLE, DONTFORK ...; protection and MAY_* bits are derived.
    pub flags: VmFlags,
    /// MAP_POPULATE: fault all pages in before returning.
    pub populate: bool,
}

/// What an access wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAccess {
    Read,
    Write,
    Exec,
}

/// Why a fault could not be mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is mapped there: SIGSEGV, SEGV_MAPERR.
    SegvMap,
    /// The mapping does not allow it: SIGSEGV, SEGV_ACCERR.
    SegvAcc,
    /// Beyond the end of the file: SIGBUS, BUS_ADRERR.
    Bus,
    /// No memory is left.
    Oom,
    /// No memory is left for a page that may be dropped at any time: nobody has to die for it.
    OomDroppable,
}

/// madvise's advice that does something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// NORMAL, RANDOM, SEQUENTIAL: checked, then nothing to do.
    Nothing,
    /// COLD, PAGEOUT: refused for locked memory.
    PageOut,
    WillNeed,
    DontNeed,
    /// As DontNeed, for locked mappings too.
    DontNeedLocked,
    Free,
    Remove,
    DontFork,
    DoFork,
    WipeOnFork,
    KeepOnFork,
    DontDump,
    DoDump,
    Huge,
    NoHuge,
    Collapse,
    PopulateRead,
    PopulateWrite,
}

/// One line of /proc/PID/maps.
pub struct VmaInfo {
    pub range: Range<u64>,
    pub flags: VmFlags,
    /// Byte offset in the source.
    pub offset: u64,
    /// (device, inode) of the source.
    pub dev_ino: (u64, u64),
    /// Path, `[heap]`, `[stack]`, `[vdso]` or empty.
    pub name: String,
    /// Resident pages: (borrowed from a file, private).
    pub resident: (u64, u64),
    /// Those of them that large pages map.
    pub large: u64,
    /// Whether a fault in it may make a large page.
    pub can_be_large: bool,
}

/// Memory use of an address space, in pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct VmUsage {
    pub size: u64,
    pub peak: u64,
    pub rss_anon: u64,
    pub rss_file: u64,
    pub rss_shmem: u64,
    pub rss_peak: u64,
    pub data: u64,
    pub stack: u64,
    pub text: u64,
    pub locked: u64,
    pub page_tables: u64,
    /// Whether the program lets its memory have large pages.
    pub allows_large: bool,
}

/// Resource limits that mappings obey, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct MmLimits {
    pub address_space: u64,
    pub data: u64,
    pub stack: u64,
}

impl Default for MmLimits {
    fn default() -> Self {
        Self { address_space: u64::MAX, data: u64::MAX, stack: 8 << 20 }
    }
}
