//! Resource limits: `RLIMIT_*` with Linux's defaults and rules.
//!
//! Owns the limits that everything starts with. A table never changes; setting a limit makes a new one, so that fork only
//! counts a reference, and setting one of a process's changes no other process's. No locks.

use super::current::{Current, current};
use super::process::Process;
use crate::base::setting::Setting;
use crate::mm::frames;
use crate::mm::space::request::MmLimits;
use crate::sync::Once;
use crate::vfs::Capability;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicI32, Ordering};

/// No limit.
pub const INFINITY: u64 = u64::MAX;
crate::setting! {
    /// The ceiling for RLIMIT_NOFILE (`fs.nr_open`), within Linux's bounds.
    pub static NR_OPEN = 1_048_576, 64..=0x7fff_ffc0;
}

/// One of Linux's limits, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Resource {
    Cpu,
    FileSize,
    Data,
    Stack,
    Core,
    Rss,
    Processes,
    NoFile,
    MemLock,
    AddressSpace,
    Locks,
    SignalsPending,
    MsgQueue,
    Nice,
    RtPriority,
    RtTime,
}

/// How many there are.
pub const COUNT: usize = 16;

impl Resource {
    const ALL: [Self; COUNT] = [
        Self::Cpu,
        Self::FileSize,
        Self::Data,
        Self::Stack,
        Self::Core,
        Self::Rss,
        Self::Processes,
        Self::NoFile,
        Self::MemLock,
        Self::AddressSpace,
        Self::Locks,
        Self::SignalsPending,
        Self::MsgQueue,
        Self::Nice,
        Self::RtPriority,
        Self::RtTime,
    ];

    /// By Linux's number; `EINVAL`.
    pub fn from_number(number: u32) -> Result<Self> {
        Self::ALL.get(number as usize).copied().ok_or(Errno::EINVAL)
    }

    /// Name, unit and position in /proc/PID/limits.
    pub fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu => ("Max cpu time", "seconds"),
            Self::FileSize => ("Max file size", "bytes"),
            Self::Data => ("Max data size", "bytes"),
            Self::Stack => ("Max stack size", "bytes"),
            Self::Core => ("Max core file size", "bytes"),
            Self::Rss => ("Max resident set", "bytes"),
            Self::Processes => ("Max processes", "processes"),
            Self::NoFile => ("Max open files", "files"),
            Self::MemLock => ("Max locked memory", "bytes"),
            Self::AddressSpace => ("Max address space", "bytes"),
            Self::Locks => ("Max file locks", "locks"),
            Self::SignalsPending => ("Max pending signals", "signals"),
            Self::MsgQueue => ("Max msgqueue size", "bytes"),
            Self::Nice => ("Max nice priority", ""),
            Self::RtPriority => ("Max realtime priority", ""),
            Self::RtTime => ("Max realtime timeout", "us"),
        }
    }

    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }
}

/// Soft and hard value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub soft: u64,
    pub hard: u64,
}

impl Limit {
    const fn both(value: u64) -> Self {
        Self { soft: value, hard: value }
    }
}

/// All limits of a process.
#[derive(Clone, Debug)]
pub struct Limits {
    table: [Limit; COUNT],
}

impl Limits {
    /// What the first process starts with; `max_processes` depends on memory, as on Linux.
    pub fn initial(max_processes: u64) -> Self {
        let mut table = [Limit::both(INFINITY); COUNT];
        let mut set = |which: Resource, soft, hard| table[which as usize] = Limit { soft, hard };
        set(Resource::Stack, 8 << 20, INFINITY);
        set(Resource::Core, 0, INFINITY);
        set(Resource::Processes, max_processes, max_processes);
        set(Resource::NoFile, 1024, 4096);
        set(Resource::MemLock, 8 << 20, 8 << 20);
        set(Resource::SignalsPending, max_processes, max_processes);
        set(Resource::MsgQueue, 819_200, 819_200);
        set(Resource::Nice, 0, 0);
        set(Resource::RtPriority, 0, 0);
        Self { table }
    }

    /// One limit.
    pub fn get(&self, which: Resource) -> Limit {
        self.table[which as usize]
    }

    /// One soft limit.
    #[inline]
    pub fn soft(&self, which: Resource) -> u64 {
        self.table[which as usize].soft
    }

    /// The same table but for one limit.
    pub(super) fn with(&self, which: Resource, limit: Limit) -> Self {
        let mut changed = self.clone();
        changed.table[which as usize] = limit;
        changed
    }

    /// How many real-time signals may be queued.
    pub fn signals_pending(&self) -> u64 {
        self.soft(Resource::SignalsPending)
    }

    /// Those that mappings obey.
    pub fn for_mappings(&self) -> MmLimits {
        MmLimits {
            address_space: self.soft(Resource::AddressSpace),
            data: self.soft(Resource::Data),
            stack: self.soft(Resource::Stack),
        }
    }
}

/// Reads and optionally sets one limit of a process (`prlimit64`): the old value.
///
/// # Errors
/// `EINVAL` if the soft limit exceeds the hard one, `EPERM` for what the caller may not raise.
pub fn change(
    caller: Current,
    process: &Arc<Process>,
    which: Resource,
    new: Option<Limit>,
) -> Result<Limit> {
    let Some(new) = new else { return Ok(process.limits().get(which)) };
    if new.soft > new.hard {
        return Err(Errno::EINVAL);
    }
    if which == Resource::NoFile && new.hard > NR_OPEN.get() as u64 {
        return Err(Errno::EPERM);
    }
    if which == Resource::Cpu && new.soft != INFINITY {
        crate::process::timers::cpu_limit::prepare(process)?;
    }
    let old = process.replace_limit(which, |old| {
        let raises = new.hard > old.hard;
        if raises && !caller.cred().capable(Capability::SYS_RESOURCE) {
            return Err(Errno::EPERM);
        }
        Ok(new)
    })?;
    if which == Resource::Cpu {
        crate::process::timers::cpu_limit::watch(process);
    }
    Ok(old)
}

/// What the running program may map.
pub(in crate::process) fn for_running() -> MmLimits {
    current().process().with_limits(Limits::for_mappings)
}

/// As many as Linux has numbers for at boot.
const MOST_THREADS: u64 = 32_768;

/// kernel.threads-max: so many tasks there may be, of all users and of the kernel; a fork beyond is `EAGAIN`. Zero until
/// [`initial_limits`] has set it.
struct ThreadsMax(AtomicI32);

static THREADS_MAX: ThreadsMax = ThreadsMax(AtomicI32::new(0));

/// The setting, to be shown.
pub(in crate::process) fn threads_max_setting() -> &'static dyn Setting {
    &THREADS_MAX
}

/// How many tasks there may be.
pub(in crate::process) fn threads_max() -> usize {
    THREADS_MAX.shown().unsigned_abs() as usize
}

impl Setting for ThreadsMax {
    fn shown(&self) -> i32 {
        // Relaxed: a number of its own.
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, value: i32) -> bool {
        // Relaxed: as above.
        let may_be = (1..=0x3fff_ffff).contains(&value);
        if may_be {
            self.0.store(value, Ordering::Relaxed);
        }
        may_be
    }
}

/// The limits of the first process, shared by kernel threads: as many tasks as an eighth of memory holds
/// stacks for.
pub(in crate::process) fn initial_limits() -> Arc<Limits> {
    static LIMITS: Once<Arc<Limits>> = Once::new();
    let make = || {
        let threads = (frames::stats().total / 32).clamp(64, MOST_THREADS);
        assert!(THREADS_MAX.set(threads as i32), "at most {MOST_THREADS}");
        #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
        Arc::new(Limits::initial(threads / 2))
    };
    LIMITS.call_once(make).clone()
}
