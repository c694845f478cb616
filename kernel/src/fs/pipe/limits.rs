//! How large a pipe may be, and how many pages of pipes a user may have: /proc/sys/fs/pipe-max-size, pipe-user-pages-soft
//! and pipe-user-pages-hard.
//!
//! Beyond the soft limit an unprivileged user's new pipes are small, beyond the hard one none can be made, and beyond either
//! none may grow. A pipe counts with all its slots, as on Linux. Owns the settings and the counts. Never touches a pipe.
//! Locks: that of `PerUser`.
#![forbid(unsafe_code)]

use super::ring::PAGE;
use crate::base::setting::Setting;
use crate::fs::procfs::{ProcFile, number, register_numbers, register_setting};
use crate::mm::fallible::try_arc;
use crate::try_format;
use crate::vfs::per_user::{Charge, PerUser};
use crate::vfs::{Capability, Cred};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

crate::setting! {
    static SOFT = 16384, 0..=i32::MAX;
    static HARD = 0, 0..=i32::MAX;
}

/// Slots of a new pipe: 64 KiB.
const DEFAULT_SLOTS: usize = 16;
/// Slots of a new pipe whose user is beyond the soft limit.
const LEAST_SLOTS: usize = 2;

static PAGES: PerUser = PerUser::new();

/// Largest size, in bytes, that a pipe gets without CAP_SYS_RESOURCE (`fs.pipe-max-size`). Relaxed: a plain setting.
static MAX_SIZE: AtomicU32 = AtomicU32::new(1 << 20);

fn max_size() -> usize {
    MAX_SIZE.load(Ordering::Relaxed) as usize
}

/// How many slots a pipe of `bytes` has: a power of two. `EINVAL` beyond 2 GiB.
pub(super) fn slots_for(bytes: u32) -> Result<usize> {
    if bytes > 1 << 31 {
        return Err(Errno::EINVAL);
    }
    Ok((bytes as usize).div_ceil(PAGE).max(1).next_power_of_two())
}

/// A limit of 0 means no limit.
fn exceeds(pages: u64, limit: i32) -> bool {
    limit > 0 && pages > u64::from(limit.unsigned_abs())
}

/// Whether a user's limits do not apply to `cred`.
fn is_privileged(cred: &Cred) -> bool {
    cred.capable(Capability::SYS_RESOURCE) || cred.capable(Capability::SYS_ADMIN)
}

/// Charges a new pipe and returns how many slots it gets; `ENFILE` beyond the hard limit.
pub(super) fn charge_new(cred: &Cred) -> Result<(Charge, usize)> {
    let mut slots = DEFAULT_SLOTS;
    if slots * PAGE > max_size() && !cred.capable(Capability::SYS_RESOURCE) {
        slots = max_size() / PAGE;
    }
    let mut charge = Charge::new(&PAGES, cred.uid);
    let mut pages = charge.set(slots as u64)?;
    if exceeds(pages, SOFT.get()) && !is_privileged(cred) {
        slots = LEAST_SLOTS;
        pages = charge.set(slots as u64)?;
    }
    if exceeds(pages, HARD.get()) && !is_privileged(cred) {
        return Err(Errno::ENFILE);
    }
    Ok((charge, slots))
}

/// Changes the charge of a pipe from `old_slots` to `slots`; `EPERM` if it grows beyond a limit.
pub(super) fn charge_size(
    charge: &mut Charge,
    slots: usize,
    old_slots: usize,
    cred: &Cred,
) -> Result<()> {
    let grows = slots > old_slots;
    if grows && slots * PAGE > max_size() && !cred.capable(Capability::SYS_RESOURCE) {
        return Err(Errno::EPERM);
    }
    let pages = charge.set(slots as u64)?;
    let is_over = exceeds(pages, SOFT.get()) || exceeds(pages, HARD.get());
    if grows && is_over && !is_privileged(cred) {
        charge.set(old_slots as u64)?;
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// Adds the files of /proc.
pub fn register() -> Result<()> {
    let files: [(&str, &'static dyn Setting); 2] =
        [("fs/pipe-user-pages-soft", &SOFT), ("fs/pipe-user-pages-hard", &HARD)];
    files.into_iter().try_for_each(|(path, file)| register_setting(path, file))?;
    register_numbers("fs/pipe-max-size", 0o644, try_arc(PipeMaxSize)?)
}

/// `pipe-max-size`: a value is rounded up to a size that a pipe can have.
struct PipeMaxSize;

impl ProcFile for PipeMaxSize {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", max_size()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let wish = number(data).and_then(|number| u32::try_from(number).ok());
        let size = slots_for(wish.ok_or(Errno::EINVAL)?)? * PAGE;
        MAX_SIZE.store(u32::try_from(size).map_err(|_| Errno::EINVAL)?, Ordering::Relaxed);
        Ok(data.len())
    }
}
