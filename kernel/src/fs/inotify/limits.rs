//! How much a user may watch (/proc/sys/fs/inotify), and how much each user does watch.
//!
//! Owns the settings and the counts. Locks: `Leaf`, for the counts; never taken with another lock of that level.
#![forbid(unsafe_code)]

use crate::base::setting::Setting;
use crate::fs::procfs::register_setting;
use crate::mm::fallible::TryMap;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;

crate::setting! {
    static MAX_QUEUED = 16384, 0..=i32::MAX;
    static MAX_INSTANCES = 128, 0..=i32::MAX;
    static MAX_WATCHES = 8192, 0..=i32::MAX;
}

/// Instances and watches of a user.
type Counts = BTreeMap<u32, (usize, usize)>;

static COUNTS: SpinLock<Counts, level::Leaf> = SpinLock::new(BTreeMap::new());

/// How many events a new inotify may hold.
pub fn max_queued_events() -> usize {
    MAX_QUEUED.get() as usize
}

/// One of a user's instances, which counts while this lives.
pub struct Instance {
    uid: u32,
}

impl Instance {
    /// Counts one more: EMFILE beyond the limit.
    pub fn new(uid: u32) -> Result<Self> {
        let mut counts = COUNTS.lock();
        let (instances, _) = counts.try_entry(uid, Default::default)?;
        if *instances >= MAX_INSTANCES.get() as usize {
            return Err(Errno::EMFILE);
        }
        *instances += 1;
        Ok(Self { uid })
    }

    /// The user.
    pub fn uid(&self) -> u32 {
        self.uid
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        change(self.uid, |(instances, _)| *instances = instances.saturating_sub(1));
    }
}

/// Counts a watch: ENOSPC beyond the limit.
pub fn charge_watch(uid: u32) -> Result<()> {
    let mut counts = COUNTS.lock();
    let (_, watches) = counts.try_entry(uid, Default::default)?;
    if *watches >= MAX_WATCHES.get() as usize {
        return Err(Errno::ENOSPC);
    }
    *watches += 1;
    Ok(())
}

/// A watch is gone.
pub fn uncharge_watch(uid: u32) {
    change(uid, |(_, watches)| *watches = watches.saturating_sub(1));
}

fn change(uid: u32, act: impl FnOnce(&mut (usize, usize))) {
    let mut counts = COUNTS.lock();
    if let Some(count) = counts.get_mut(&uid) {
        act(count);
        if *count == (0, 0) {
            counts.remove(&uid);
        }
    }
}

/// Adds the settings to /proc. As on Linux, all watches of a user may take a hundredth of the memory.
pub fn register() -> Result<()> {
    /// What a watch and the inode that it pins take on Linux, in bytes.
    const WATCH_COST: u64 = 1280;
    let bytes =
        crate::mm::frames::stats().total.saturating_mul(crate::base::PAGE_SIZE as u64) / 100;
    let watches = (bytes / WATCH_COST).clamp(8192, 1 << 20);
    MAX_WATCHES.set(watches as i32);
    let files: [(&str, &'static dyn Setting); 3] = [
        ("fs/inotify/max_queued_events", &MAX_QUEUED),
        ("fs/inotify/max_user_instances", &MAX_INSTANCES),
        ("fs/inotify/max_user_watches", &MAX_WATCHES),
    ];
    files.into_iter().try_for_each(|(path, file)| register_setting(path, file))
}
