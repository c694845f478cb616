//! [`Admission`]: a file may be opened, since there are fewer than `fs.file-max`, or it is an administrator who opens it. It counts as
//! open from then on, however long the open waits, as on Linux.
//!
//! Open files are counted by CPU, and the sum of the counts is not for every open: after each look at it a CPU lets some files in
//! without looking, a share of those that are left. So the limit is exact on one CPU. On more, two that look at once may both find the
//! last place, and each of the others may have [`UNSEEN_MOST`] left when one finds none: there may be `UNSEEN_MOST + 1` files too many
//! for each CPU but one. Linux looks before it counts, too, and adds what a CPU has counted to its sum when that is 32 or more (twice
//! the number of CPUs), so it may be as far beyond its limit; when it seems reached, it sums up exactly.
//!
//! Owns the limit, and how many files each CPU may still let in without looking. Never refuses an administrator. Locks: none.

use super::cred::{Capability, running_cred};
use crate::base::percpu::{MAX_CPUS, cpus_online};
use crate::base::setting::{WideBounded, WideSetting};
use crate::per_cpu;
use crate::sync::counted::{self, Counted, Kind};
use abi::{Errno, Result};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `fs.file-max`.
static FILE_MAX: WideBounded = WideBounded::new(LEAST_AT_FIRST, 0..=i64::MAX as u64);

/// What the limit begins with on a small machine.
const LEAST_AT_FIRST: u64 = 8192;

/// What a CPU lets in without looking at most.
const UNSEEN_MOST: u64 = 31;

per_cpu! {
    /// How many it still lets in. Relaxed: its CPU's own, but for a new limit; if that comes between the load and the store of
    /// `admit`, it is heeded after at most `UNSEEN_MOST` files.
    static UNSEEN: AtomicU64 = AtomicU64::new(0);
}

/// Whether somebody was refused under this limit: the log says it once. Relaxed: a hint.
static TOLD: AtomicBool = AtomicBool::new(false);

/// That one file may be opened, or is: it is counted.
#[must_use]
pub struct Admission {
    _counted: Counted,
}

impl Admission {
    #[inline]
    fn new() -> Self {
        Self { _counted: Counted::new(Kind::OpenFile) }
    }
}

/// Lets one file in: `ENFILE`.
#[inline]
pub fn admit() -> Result<Admission> {
    let seen = UNSEEN.with(|unseen| {
        let left = unseen.load(Ordering::Relaxed);
        unseen.store(left.saturating_sub(1), Ordering::Relaxed);
        left == 0
    });
    if seen { look() } else { Ok(Admission::new()) }
}

#[cold]
fn look() -> Result<Admission> {
    let (most, open) = (FILE_MAX.load(), open_files());
    if let Some(left) = most.checked_sub(open + 1) {
        let cpus = u64::try_from(cpus_online()).unwrap_or(1).max(1);
        UNSEEN.with(|unseen| unseen.store((left / cpus).min(UNSEEN_MOST), Ordering::Relaxed));
        return Ok(Admission::new());
    }
    if running_cred().is_none_or(|cred| cred.capable(Capability::SYS_ADMIN)) {
        return Ok(Admission::new());
    }
    if !TOLD.swap(true, Ordering::Relaxed) {
        log::info!("file-max limit {most} reached");
    }
    Err(Errno::ENFILE)
}

/// How many files are open.
pub fn open_files() -> u64 {
    u64::try_from(counted::live(Kind::OpenFile)).unwrap_or(0)
}

/// The limit begins with one file for 10 KiB of memory, of which there are `kbytes`.
pub fn init(kbytes: u64) {
    FileMax.set((kbytes / 10).max(LEAST_AT_FIRST));
}

/// The file of `fs.file-max`.
pub struct FileMax;

impl WideSetting for FileMax {
    fn shown(&self) -> u64 {
        FILE_MAX.load()
    }

    fn set(&self, value: u64) -> bool {
        let may_be = FILE_MAX.store(value);
        for unseen in (0..MAX_CPUS.min(cpus_online())).filter_map(|cpu| UNSEEN.of(cpu)) {
            unseen.store(0, Ordering::Relaxed);
        }
        TOLD.store(false, Ordering::Relaxed);
        may_be
    }
}
