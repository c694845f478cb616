//! How many objects of each kind there are: a [`Counted`] in an object counts it from its making to its end.
//!
//! Owns a counter per kind and CPU; only the sum over all CPUs means something, since an object may end on another CPU
//! than made it. /proc/alea/objects shows the sums, and the tests compare them from program to program: what does not
//! come back is a leak. Never allocates. No locks.

use crate::base::percpu::{self, MAX_CPUS};
use core::sync::atomic::{AtomicI64, Ordering};

macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident = $name:literal,)+) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug)]
        pub enum Kind {
            $($(#[$meta])* $kind,)+
        }

        /// The kinds and the names that they are shown by.
        pub const KINDS: &[(Kind, &str)] = &[$((Kind::$kind, $name)),+];
    };
}

kinds! {
    Task = "tasks",
    Process = "processes",
    KernelStack = "kernel_stacks",
    AddressSpace = "address_spaces",
    /// Open file descriptions.
    OpenFile = "open_files",
    Dentry = "dentries",
    TmpfsInode = "tmpfs_inodes",
    Mount = "mounts",
    Pipe = "pipes",
    /// Of all families.
    Socket = "sockets",
    UnixSocket = "unix_sockets",
    /// What polls have left in the queues of files, one for each poll.
    Registrations = "registrations",
    EpollItem = "epoll_items",
    /// Inotify's watches.
    Mark = "marks",
    /// Process groups.
    Group = "groups",
    Session = "sessions",
    PosixTimer = "posix_timers",
    /// System V's.
    ShmSegment = "shm_segments",
    SemSet = "sem_sets",
    MessageQueue = "msg_queues",
    /// Of mq_open(2).
    PosixQueue = "posix_queues",
    /// Of perf_event_open(2), inherited ones too.
    PerfEvent = "perf_events",
}

crate::per_cpu! {
    static COUNTS: [AtomicI64; KINDS.len()] = [const { AtomicI64::new(0) }; KINDS.len()];
}

/// Counts the object that it is a field of.
#[derive(Debug)]
pub struct Counted(Kind);

impl Counted {
    #[inline]
    pub fn new(kind: Kind) -> Self {
        add(kind, 1);
        Self(kind)
    }
}

impl Drop for Counted {
    #[inline]
    fn drop(&mut self) {
        add(self.0, -1);
    }
}

#[inline]
fn add(kind: Kind, number: i64) {
    // Relaxed: a statistic. Atomic, since an interrupt handler may drop an object.
    COUNTS.with(|counts| counts[kind as usize].fetch_add(number, Ordering::Relaxed));
}

/// How many objects there are of a kind; exact if none is made or ends meanwhile.
pub fn live(kind: Kind) -> i64 {
    (0..MAX_CPUS.min(percpu::cpus_online()))
        .filter_map(|cpu| COUNTS.of(cpu))
        // Relaxed: a statistic of other CPUs.
        .map(|counts| counts[kind as usize].load(Ordering::Relaxed))
        .sum()
}
