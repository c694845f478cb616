//! Committed memory: what programs were promised, whether or not it is in use yet.
//!
//! A private mapping that may be written is a promise of all its pages, and so is shared memory that is no file; a file in memory is one of
//! the pages that it has. Mode 2 of `vm.overcommit_memory` refuses what goes beyond the limit, the other modes only count.
//!
//! Owns the count and the settings of the limit. A promise is counted before it is compared with the limit, so that two who ask at
//! once never both get what is there for one. Never allocates. Locks: none.

use super::frames;
use crate::base::percpu::cpus_online;
use crate::base::setting::{Bounded, Setting, WideBounded, WideSetting};
use crate::{per_cpu, setting};
use abi::{Errno, Result};
use core::sync::atomic::{AtomicI64, Ordering};

setting! {
    /// `vm.overcommit_memory`: 0 refuses a promise of more than the machine has, 1 none, 2 what goes beyond the limit.
    pub static OVERCOMMIT_MEMORY = 0, 0..=2;
}

setting! {
    wide:
    /// `vm.admin_reserve_kbytes`: what of the limit is for administrators, in KiB.
    pub static ADMIN_RESERVE_KBYTES = 8192, 0..=u64::MAX;
    /// `vm.user_reserve_kbytes`: what one process leaves of the limit, in KiB, if a 32nd of its size is not less.
    pub static USER_RESERVE_KBYTES = 131_072, 0..=u64::MAX;
}

/// The mode without promises beyond the limit.
const STRICT: i32 = 2;
const KIB_PER_PAGE: u64 = 4;

/// `vm.overcommit_ratio`: percent of memory.
static RATIO: Bounded = Bounded::new(50, 0..=i32::MAX);
/// `vm.overcommit_kbytes`: KiB; counts instead of the ratio if it is not 0.
static KBYTES: WideBounded = WideBounded::new(0, 0..=u64::MAX);

/// The two forms of the limit: setting one makes the other 0.
pub struct OvercommitRatio;
pub struct OvercommitKbytes;

impl Setting for OvercommitRatio {
    fn shown(&self) -> i32 {
        RATIO.load()
    }
    fn set(&self, value: i32) -> bool {
        RATIO.store(value) && KBYTES.store(0)
    }
}

impl WideSetting for OvercommitKbytes {
    fn shown(&self) -> u64 {
        KBYTES.load()
    }
    fn set(&self, value: u64) -> bool {
        KBYTES.store(value) && RATIO.store(0)
    }
}

/// Reserves of a small machine are a 32nd of its memory.
pub(super) fn init() {
    let most = frames::frames::total() * KIB_PER_PAGE / 32;
    for (reserve, shown) in [
        (&ADMIN_RESERVE_KBYTES as &dyn WideSetting, ADMIN_RESERVE_KBYTES.shown()),
        (&USER_RESERVE_KBYTES, USER_RESERVE_KBYTES.shown()),
    ] {
        assert!(reserve.set(shown.min(most)), "a reserve may be any number");
    }
}

per_cpu! {
    /// Pages promised on this CPU, less those given back on it.
    static PROMISED: AtomicI64 = AtomicI64::new(0);
}

/// Counts a promise of so many pages, or one that ends.
#[inline]
pub(super) fn count(pages: i64) {
    // Relaxed: a count; who compares it with the limit has counted his own first.
    PROMISED.with(|promised| promised.fetch_add(pages, Ordering::Relaxed));
}

/// Pages promised at this moment.
pub fn promised() -> u64 {
    let of_cpu = |cpu| PROMISED.of(cpu).map_or(0, |promised| promised.load(Ordering::Relaxed));
    let sum = (0..cpus_online()).map(of_cpu).fold(0i64, i64::wrapping_add);
    u64::try_from(sum).unwrap_or(0)
}

/// Pages that mode 2 promises at most, the reserves among them.
pub fn limit() -> u64 {
    match KBYTES.load() {
        0 => {
            let percent = u64::try_from(RATIO.load()).unwrap_or(0);
            frames::frames::total().saturating_mul(percent) / 100
        }
        kbytes => kbytes / KIB_PER_PAGE,
    }
}

/// Whether promises are refused beyond the limit: then MAP_NORESERVE means nothing.
#[inline]
pub fn is_strict() -> bool {
    OVERCOMMIT_MEMORY.get() == STRICT
}

/// Whether mode 0 refuses a promise of so many pages: the machine has fewer.
#[inline]
pub(super) fn is_hopeless(pages: u64) -> bool {
    pages > frames::frames::total() && OVERCOMMIT_MEMORY.get() == 0
}

/// Whether promises that have just been counted may stand, for a program of `size` pages.
#[inline]
pub(super) fn holds(size: u64) -> bool {
    !is_strict() || is_below_limit(size)
}

#[cold]
fn is_below_limit(size: u64) -> bool {
    let pages = |kbytes: u64| kbytes / KIB_PER_PAGE;
    let mut allowed = limit();
    if !frames::is_trusted() {
        allowed = allowed.saturating_sub(pages(ADMIN_RESERVE_KBYTES.get()));
    }
    allowed = allowed.saturating_sub(pages(USER_RESERVE_KBYTES.get()).min(size / 32));
    promised() < allowed
}

/// A promise that is counted as long as it lives.
#[must_use]
pub struct Promise {
    pages: u64,
}

impl Promise {
    /// A promise of no pages.
    pub const NONE: Self = Self { pages: 0 };

    /// Promises so many pages to a program of `size` pages: `ENOMEM` for more than the machine has (mode 0) or the limit allows (mode 2).
    #[inline]
    pub fn new(pages: u64, size: u64) -> Result<Self> {
        if is_hopeless(pages) {
            return Err(Errno::ENOMEM);
        }
        count(i64::try_from(pages).map_err(|_| Errno::ENOMEM)?);
        let promise = Self { pages };
        if holds(size) { Ok(promise) } else { Err(Errno::ENOMEM) }
    }
}

impl Drop for Promise {
    #[inline]
    fn drop(&mut self) {
        if self.pages != 0 {
            // It was counted, so it fits.
            count(-self.pages.cast_signed());
        }
    }
}
