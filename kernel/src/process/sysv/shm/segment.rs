//! [`Segment`]: a shared memory segment, from shmget to its end.
//!
//! Owns the table of segments, how many pages they have together, and how many each user has locked. A segment goes
//! when it is removed and attached nowhere; its pages go with the last mapping. Never drops a segment with a lock
//! held that its end takes. Locks: `SysvTable` for the table and the counts, then `SysvSegment` for one segment.

use crate::base::PAGE_SIZE;
use crate::base::setting::Setting;
use crate::mm::commit::{self, Promise};
use crate::mm::fallible::{Room, TryMap, try_arc};
use crate::mm::{PageCache, kernel_memory_low};
use crate::process::current;
use crate::process::sysv::limits::{SHM_ALL, SHM_MAX, SHM_MNI, SHM_NEXT_ID, SHM_RMID_FORCED};
use crate::process::sysv::now;
use crate::process::sysv::perm::Perm;
use crate::process::sysv::table::{Object, Table};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{SpinGuard, SpinLock, cond_resched, level};
use crate::vfs::{Capability, Cred};
use abi::ipc::{IPC_PRIVATE, ShmidDs, get as flag, shm_mode};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// All segments.
pub(super) struct Segments {
    pub table: Table<Segment>,
    /// Pages of all of them, there or not.
    pub pages: u64,
    /// Pages that users have locked.
    locked: BTreeMap<u32, u64>,
}

static SEGMENTS: SpinLock<Segments, level::SysvTable> =
    SpinLock::new(Segments { table: Table::new(), pages: 0, locked: BTreeMap::new() });

/// A segment.
pub struct Segment {
    _counted: Counted,
    id: i32,
    /// The key that shmget was given.
    pub made_with: i32,
    /// Bytes.
    pub size: u64,
    pub cache: Arc<PageCache>,
    state: SpinLock<State, level::SysvSegment>,
}

/// What changes of a segment. Times are in seconds, since 1970.
pub struct State {
    pub perm: Perm,
    /// Mappings, and calls that are about to make one.
    pub attached: u64,
    pub atime: i64,
    pub dtime: i64,
    pub ctime: i64,
    pub cpid: i32,
    pub lpid: i32,
    /// The mark of the thread that made it; 0 once that has ended.
    maker: u64,
    /// Whose the locked pages are.
    locked_by: Option<u32>,
    /// It is out of the table or about to be: it is attached no more.
    gone: bool,
}

impl Object for Segment {
    fn id(&self) -> i32 {
        self.id
    }
}

impl Segment {
    pub fn state(&self) -> SpinGuard<'_, State, level::SysvSegment> {
        self.state.lock()
    }

    /// What it may take at most.
    pub fn pages(&self) -> u64 {
        self.size.div_ceil(PAGE_SIZE as u64)
    }

    /// Counts one that is attached; `EIDRM` if the segment is going.
    pub fn enter(&self) -> Result<()> {
        let mut state = self.state();
        if state.gone {
            return Err(Errno::EIDRM);
        }
        state.attached += 1;
        Ok(())
    }

    /// Counts one out; the segment goes if that was the last.
    pub fn leave(&self, note: impl FnOnce(&mut State)) {
        let mut state = self.state();
        note(&mut state);
        state.attached = state.attached.saturating_sub(1);
        let ends = state.ends();
        drop(state);
        if ends {
            self.end();
        }
    }

    /// It goes, if it is removed and not attached.
    pub fn end_if_unused(&self) {
        if self.state().ends() {
            self.end();
        }
    }

    /// Out of the table. `gone` was set by the caller, who is the only one.
    fn end(&self) {
        let (key, locked_by) = {
            let state = self.state();
            (state.perm.key, state.locked_by)
        };
        let mut segments = SEGMENTS.lock();
        segments.pages = segments.pages.saturating_sub(self.pages());
        if let Some(uid) = locked_by {
            segments.uncharge_locked(uid, self.pages());
        }
        let removed = segments.table.remove(key, self);
        drop(segments);
        drop(removed);
    }
}

impl State {
    /// Whether it goes now: then the caller ends it.
    fn ends(&mut self) -> bool {
        let unwanted = self.perm.mode & shm_mode::DEST != 0
            || (SHM_RMID_FORCED.get() != 0 && self.attached == 0);
        let ends = unwanted && self.attached == 0 && !self.gone;
        self.gone |= ends;
        ends
    }

    /// What shmctl tells of it.
    pub fn told(&self, segment: &Segment) -> ShmidDs {
        ShmidDs {
            perm: self.perm.to_abi(segment.id),
            segsz: segment.size,
            atime: self.atime,
            dtime: self.dtime,
            ctime: self.ctime,
            cpid: self.cpid,
            lpid: self.lpid,
            nattch: self.attached,
            unused: [0; 2],
        }
    }

    /// `EIDRM` if it is going.
    pub fn check(&self) -> Result<()> {
        if self.gone { Err(Errno::EIDRM) } else { Ok(()) }
    }
}

impl Segments {
    fn uncharge_locked(&mut self, uid: u32, pages: u64) {
        if let Some(locked) = self.locked.get_mut(&uid) {
            *locked = locked.saturating_sub(pages);
            if *locked == 0 {
                self.locked.remove(&uid);
            }
        }
    }
}

/// All segments, locked.
pub(super) fn all() -> SpinGuard<'static, Segments, level::SysvTable> {
    SEGMENTS.lock()
}

/// Visits the segments in order; nothing is locked meanwhile.
pub fn for_each(mut visit: impl FnMut(&Arc<Segment>) -> Result<()>) -> Result<()> {
    let mut from = 0;
    loop {
        cond_resched();
        let found = all().table.first_from(from);
        let Some((index, segment)) = found else { return Ok(()) };
        visit(&segment)?;
        from = index + 1;
    }
}

/// shmget: the identifier.
///
/// # Errors
/// As shmget(2); `ENOMEM` also for what the machine's memory can never hold, unless `SHM_NORESERVE` is given.
pub fn get(key: i32, size: u64, flags: u32) -> Result<i32> {
    let cred = current().cred_arc();
    if key != IPC_PRIVATE {
        let found = all().table.by_key(key);
        match found {
            Some(segment) => return found_one(&segment, size, flags, &cred),
            None if flags & flag::CREAT == 0 => return Err(Errno::ENOENT),
            None => {}
        }
    }
    let promise = check_new(size, flags, &cred)?;
    let cache = try_arc(promise.map_or_else(PageCache::new, PageCache::promised))?;
    cache.set_size(size);
    // For its end, if there is no segment after all: with nothing locked.
    let _keep = cache.clone();
    let room = Room::new()?;
    let task = current();
    let (cpid, maker) = (task.process().pid(), task.sysv.mark());
    let mut segments = all();
    if key != IPC_PRIVATE
        && let Some(segment) = segments.table.by_key(key)
    {
        drop(segments);
        return found_one(&segment, size, flags, &cred);
    }
    let pages = size.div_ceil(PAGE_SIZE as u64);
    let total = segments.pages.checked_add(pages).filter(|&total| total <= SHM_ALL.get());
    let total = total.ok_or(Errno::ENOSPC)?;
    let state = State {
        perm: Perm::new(key, flags, &cred),
        attached: 0,
        atime: 0,
        dtime: 0,
        ctime: now(),
        cpid,
        lpid: 0,
        maker,
        locked_by: None,
        gone: false,
    };
    let make = |id| Segment {
        _counted: Counted::new(Kind::ShmSegment),
        id,
        made_with: key,
        size,
        cache,
        state: SpinLock::new(state),
    };
    let wish = SHM_NEXT_ID.get();
    let segment = segments.table.add(key, SHM_MNI.get(), wish, room, make)?;
    if wish >= 0 {
        SHM_NEXT_ID.set(-1);
    }
    segments.pages = total;
    Ok(segment.id)
}

/// A segment with the key is there.
fn found_one(segment: &Segment, size: u64, flags: u32, cred: &Cred) -> Result<i32> {
    if flags & flag::CREAT != 0 && flags & flag::EXCL != 0 {
        return Err(Errno::EEXIST);
    }
    if segment.size < size {
        return Err(Errno::EINVAL);
    }
    segment.state().perm.check(cred, flags)?;
    Ok(segment.id)
}

/// Checks what may be asked for, and promises its pages unless they need not be there.
fn check_new(size: u64, flags: u32, cred: &Cred) -> Result<Option<Promise>> {
    if size == 0 || size > SHM_MAX.get() {
        return Err(Errno::EINVAL);
    }
    let pages = size.div_ceil(PAGE_SIZE as u64);
    if pages.checked_mul(PAGE_SIZE as u64).is_none() {
        return Err(Errno::ENOSPC);
    }
    let total = all().pages.checked_add(pages).filter(|&total| total <= SHM_ALL.get());
    total.ok_or(Errno::ENOSPC)?;
    if flags & flag::SHM_HUGETLB != 0 {
        return Err(refusal_of_huge(flags, cred));
    }
    if size > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    if kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    if flags & flag::SHM_NORESERVE != 0 && !commit::is_strict() {
        return Ok(None);
    }
    Promise::new(pages, 0).map(Some)
}

/// No huge pages are set aside: what Linux says then.
fn refusal_of_huge(flags: u32, cred: &Cred) -> Errno {
    /// Logarithms of 2 MiB and 1 GiB; 0 is the default, 2 MiB.
    const SIZES: [u32; 3] = [0, 21, 30];
    let size = flags >> flag::SHM_HUGE_SHIFT & flag::SHM_HUGE_MASK;
    if !SIZES.contains(&size) {
        Errno::EINVAL
    } else if !cred.capable(Capability::IPC_LOCK) && !cred.in_group(0) {
        Errno::EPERM
    } else {
        Errno::ENOMEM
    }
}

/// SHM_LOCK: the pages count as the user's, of which at most `limit` may be locked; `ENOMEM`.
pub(super) fn charge_lock(segment: &Segment, uid: u32, limit: u64) -> Result<()> {
    let pages = segment.pages();
    let mut segments = all();
    let mut state = segment.state();
    state.check()?;
    if state.perm.mode & shm_mode::LOCKED != 0 {
        return Ok(());
    }
    let locked = segments.locked.try_entry(uid, Default::default)?;
    let total = locked.saturating_add(pages);
    if total > limit {
        if *locked == 0 {
            segments.locked.remove(&uid);
        }
        return Err(Errno::ENOMEM);
    }
    *locked = total;
    state.perm.mode |= shm_mode::LOCKED;
    state.locked_by = Some(uid);
    Ok(())
}

/// SHM_UNLOCK.
pub(super) fn uncharge_lock(segment: &Segment) -> Result<()> {
    let mut segments = all();
    let mut state = segment.state();
    state.check()?;
    state.perm.mode &= !shm_mode::LOCKED;
    if let Some(uid) = state.locked_by.take() {
        segments.uncharge_locked(uid, segment.pages());
    }
    Ok(())
}

/// The thread with this mark has ended.
pub fn forget_maker(mark: u64) {
    let _never_fails = for_each(|segment| {
        let mut state = segment.state();
        if state.maker == mark {
            state.maker = 0;
            drop(state);
            segment.end_if_unused();
        }
        Ok(())
    });
}

/// `shm_rmid_forced` was set: segments that are not attached and whose makers have ended go.
pub fn end_orphans() {
    let _never_fails = for_each(|segment| {
        if segment.state().maker == 0 {
            segment.end_if_unused();
        }
        Ok(())
    });
}
