//! File locks: POSIX record locks, open-file-description locks and `flock`.
//!
//! The table of a file is made with its first lock. Owns the locks of a file and the requests that wait for them, the list
//! of all tables, which keeps none of them, and the list of who waits for whom. Never sleeps under its own lock: waiting
//! happens on the file's queue; never drops a table with the list locked. Locks: `FileLocks`; `Leaf` for the lists.
#![forbid(unsafe_code)]

use super::types::DevId;
use crate::mm::fallible::{TryGrow, TryMap, TryVec, try_arc};
use crate::sync::pace::killable;
use crate::sync::{SpinLock, WaitQueue, level};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    Read,
    Write,
}

impl LockKind {
    /// Whether two owners may not hold these at once.
    fn excludes(self, other: Self) -> bool {
        self == Self::Write || other == Self::Write
    }
}

/// A lock on a range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLock {
    pub kind: LockKind,
    pub range: Range<u64>,
    /// The descriptor table (POSIX) or open file (OFD) that holds it.
    pub owner: usize,
    /// The process that `F_GETLK` reports; -1 for OFD locks.
    pub pid: i32,
}

/// A lock on the whole file by `flock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeLock {
    pub kind: LockKind,
    /// The open file.
    pub owner: usize,
    /// The process that asked for it.
    pub pid: i32,
}

/// A lock of either sort. The two never conflict with each other.
#[derive(Clone, Debug)]
pub enum Lock {
    Record(RecordLock),
    Whole(WholeLock),
}

impl Lock {
    /// Whether both can be held at once.
    pub fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Record(one), Self::Record(other)) => one.conflicts(other),
            (Self::Whole(one), Self::Whole(other)) => one.conflicts(other),
            _ => false,
        }
    }
}

/// The end of a lock that reaches to the end of the file, wherever that is.
pub const FOREVER: u64 = 1 << 63;

/// The range of bytes that the start and length of a `struct flock` denote.
pub fn range(start: i64, len: i64) -> Result<Range<u64>> {
    let from = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
    match len {
        0 => Ok(from..FOREVER),
        1.. => {
            let end = start.checked_add(len - 1).ok_or(Errno::EOVERFLOW)?;
            Ok(from..end.unsigned_abs() + 1)
        }
        _ => {
            let begin = start.checked_add(len).and_then(|b| u64::try_from(b).ok());
            Ok(begin.ok_or(Errno::EINVAL)?..from)
        }
    }
}

/// The locks of one file.
pub struct FileLocks {
    /// In the list of all.
    number: u64,
    pub dev: DevId,
    pub ino: u64,
    table: SpinLock<Table, level::FileLocks>,
    changed: WaitQueue,
}

#[derive(Default)]
struct Table {
    records: Vec<RecordLock>,
    flocks: Vec<WholeLock>,
    /// Requests that sleep, each with its number, the oldest first.
    requests: Vec<(u64, Lock)>,
}

/// One thread's wait for a record lock.
#[derive(Clone, Copy)]
struct Wait {
    /// Which wait it is: a process may have several threads that wait.
    number: u64,
    owner: usize,
    holder: usize,
}

/// All tables, by number.
static ALL: SpinLock<BTreeMap<u64, Weak<FileLocks>>, level::Leaf> = SpinLock::new(BTreeMap::new());

/// The newest table whose number is less, and its number; it may be on its way out. One at a time: a user can have a million.
pub fn newest_below(number: u64) -> Option<(u64, Option<Arc<FileLocks>>)> {
    let all = ALL.lock();
    let (number, table) = all.range(..number).next_back()?;
    Some((*number, table.upgrade()))
}

/// All waits, the newest last. A wait that would be a deadlock is found here.
static WAITING: SpinLock<Vec<Wait>, level::Leaf> = SpinLock::new(Vec::new());

/// Relaxed: only uniqueness matters.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A number for a table, a wait or a request.
fn next_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl RecordLock {
    fn conflicts(&self, other: &Self) -> bool {
        let excludes = self.kind.excludes(other.kind);
        self.owner != other.owner && excludes && overlap(&self.range, &other.range)
    }
}

impl WholeLock {
    fn conflicts(&self, other: &Self) -> bool {
        self.owner != other.owner && self.kind.excludes(other.kind)
    }
}

/// How many older requests a waiter looks at: the table is locked meanwhile, and those that matter are the oldest.
const OLDER_MOST: usize = 64;

/// What came of trying to take a lock.
enum Tried {
    Taken,
    /// This owner has a lock that conflicts.
    Held(usize),
    /// It is the turn of somebody who has waited longer.
    Queued,
}

impl Table {
    /// Whether no held lock conflicts.
    fn grants(&self, lock: &Lock) -> bool {
        match lock {
            Lock::Record(lock) => !self.records.iter().any(|held| held.conflicts(lock)),
            Lock::Whole(lock) => !self.flocks.iter().any(|held| held.conflicts(lock)),
        }
    }

    /// Whether it is the turn of an older request than this one, which excludes it and could be granted at once: who made it is
    /// awake, and tells others when it has the lock or gives up.
    fn is_queued(&self, number: u64) -> bool {
        let Some(own) = self.requests.iter().position(|(other, _)| *other == number) else {
            return false;
        };
        let (older, wanted) = (&self.requests[..own.min(OLDER_MOST)], &self.requests[own].1);
        older.iter().any(|(_, older)| older.conflicts(wanted) && self.grants(older))
    }

    /// Takes `range` out of what `owner` holds, splitting locks where needed.
    fn clear(&mut self, owner: usize, range: &Range<u64>) -> Result<()> {
        self.records.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let mut at = 0;
        while at < self.records.len() {
            let held = &mut self.records[at];
            if held.owner != owner || !overlap(&held.range, range) {
                at += 1;
                continue;
            }
            let (before, after) = (held.range.start..range.start, range.end..held.range.end);
            match (before.start < before.end, after.start < after.end) {
                (true, true) => {
                    let mut tail = held.clone();
                    tail.range = after;
                    held.range = before;
                    // At most one lock can reach beyond the range at both ends and be split: there is room for that.
                    self.records.try_push(tail)?;
                    return Ok(());
                }
                (true, false) => held.range = before,
                (false, true) => held.range = after,
                (false, false) => {
                    self.records.swap_remove(at);
                    continue;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Of the owner's locks that `fits` wants, the one that begins first.
    fn first_of(&self, owner: usize, fits: impl Fn(&RecordLock) -> bool) -> Option<RecordLock> {
        let own = self.records.iter().filter(|held| held.owner == owner && fits(held));
        own.min_by_key(|held| held.range.start).cloned()
    }

    /// Adds `lock`, merging it with adjacent locks of its owner and kind.
    fn set(&mut self, lock: &RecordLock) -> Result<()> {
        self.records.try_reserve(2).map_err(|_| Errno::ENOMEM)?;
        self.clear(lock.owner, &lock.range)?;
        let mut lock = lock.clone();
        self.records.retain(|held| {
            let touches = held.owner == lock.owner
                && held.kind == lock.kind
                && (held.range.end == lock.range.start || held.range.start == lock.range.end);
            if touches {
                lock.range.start = lock.range.start.min(held.range.start);
                lock.range.end = lock.range.end.max(held.range.end);
            }
            !touches
        });
        self.records.try_push(lock)?;
        Ok(())
    }
}

impl FileLocks {
    /// The locks of a file. ENOLCK without memory.
    pub(super) fn new(dev: DevId, ino: u64) -> Result<Arc<Self>> {
        let (table, changed) = (SpinLock::default(), WaitQueue::new());
        let made = try_arc(Self { number: next_number(), dev, ino, table, changed });
        let made = made.map_err(|_| Errno::ENOLCK)?;
        let entered = ALL.lock().try_put(made.number, Arc::downgrade(&made));
        entered.map_err(|_| Errno::ENOLCK)?;
        Ok(made)
    }

    /// Copies of the locks that are held and of the requests that wait, the oldest first: a few at a time, as a user can have
    /// many, so what changes meanwhile may be missed. EINTR for a caller that is killed.
    pub fn copies(&self) -> Result<(Vec<Lock>, Vec<Lock>)> {
        const AT_ONCE: usize = 256;
        let mut held = Vec::new();
        loop {
            killable()?;
            held.try_room(AT_ONCE)?;
            let table = self.table.lock();
            let have = held.len();
            let whole = table.flocks.iter().skip(have).cloned().map(Lock::Whole);
            let records = table.records.iter().skip(have.saturating_sub(table.flocks.len()));
            held.try_extend(whole.chain(records.cloned().map(Lock::Record)).take(AT_ONCE))?;
            if held.len() < have + AT_ONCE {
                let mut requests = Vec::with_room(table.requests.len())?;
                requests.try_extend(table.requests.iter().map(|(_, lock)| lock.clone()))?;
                return Ok((held, requests));
            }
        }
    }

    /// A request is about to sleep: it is shown as long as the result lives.
    fn request(&self, lock: Lock) -> Result<Request<'_>> {
        let number = next_number();
        self.table.lock().requests.try_push((number, lock)).map_err(|_| Errno::ENOLCK)?;
        Ok(Request { locks: self, number })
    }

    /// A lock that conflicts with `wanted`.
    pub fn conflict(&self, wanted: &RecordLock) -> Option<RecordLock> {
        let table = self.table.lock();
        let first = table.records.iter().find(|held| held.conflicts(wanted))?;
        table.first_of(first.owner, |held| held.conflicts(wanted))
    }

    /// A lock in the range that its owner holds itself.
    pub fn own(&self, wanted: &RecordLock) -> Option<RecordLock> {
        self.table.lock().first_of(wanted.owner, |held| overlap(&held.range, &wanted.range))
    }

    /// Takes a record lock. If another conflicts: EAGAIN, or with `waits` sleeps until none does (EDEADLK for a deadlock).
    pub fn lock(&self, lock: &RecordLock, waits: bool) -> Result<()> {
        let waiting = match self.try_lock(lock, None)? {
            Tried::Taken => return Ok(()),
            _ if !waits => return Err(Errno::EAGAIN),
            Tried::Held(holder) => Waiting::new(lock.owner, holder, lock.pid == -1)?,
            Tried::Queued => Waiting(None),
        };
        let request = self.request(Lock::Record(lock.clone()))?;
        let result =
            self.changed.wait_interruptible(|| match self.try_lock(lock, Some(&request)) {
                Ok(Tried::Taken) => Some(Ok(())),
                Ok(Tried::Held(holder)) => waiting.now_for(holder).err().map(Err),
                Ok(Tried::Queued) => None,
                Err(errno) => Some(Err(errno)),
            });
        drop(request);
        if !matches!(result, Ok(Ok(()))) {
            // It may have been its turn.
            self.changed.wake_all();
        }
        result?
    }

    /// Takes the lock, unless another's conflicts or it is the turn of an older request than this one.
    fn try_lock(&self, lock: &RecordLock, request: Option<&Request<'_>>) -> Result<Tried> {
        let mut table = self.table.lock();
        if let Some(held) = table.records.iter().find(|held| held.conflicts(lock)) {
            return Ok(Tried::Held(held.owner));
        }
        if request.is_some_and(|request| table.is_queued(request.number)) {
            return Ok(Tried::Queued);
        }
        table.set(lock)?;
        drop(table);
        // A write lock may have become a read lock.
        self.changed.wake_all();
        Ok(Tried::Taken)
    }

    /// Releases the owner's locks on the range.
    pub fn unlock(&self, lock: &RecordLock) -> Result<()> {
        self.table.lock().clear(lock.owner, &lock.range)?;
        self.changed.wake_all();
        Ok(())
    }

    /// `flock`. If another open file's conflicts: EWOULDBLOCK, or with `waits` sleeps until none does.
    pub fn flock(&self, lock: &WholeLock, waits: bool) -> Result<()> {
        match self.try_flock(lock, None) {
            Some(result) => result,
            None if !waits => Err(Errno::EAGAIN),
            None => {
                let request = self.request(Lock::Whole(lock.clone()))?;
                let result =
                    self.changed.wait_interruptible(|| self.try_flock(lock, Some(&request)));
                drop(request);
                if !matches!(result, Ok(Ok(()))) || lock.kind == LockKind::Read {
                    // It may have been its turn, and with a shared lock it excludes not all who stood behind it.
                    self.changed.wake_all();
                }
                result?
            }
        }
    }

    /// Takes the lock, unless another open file's conflicts or it is the turn of an older request than this one. An open file has one at most, which another of its threads may have
    /// taken while this one waited: as on Linux, one of another kind is released first, whether or not the new one is free.
    fn try_flock(&self, lock: &WholeLock, request: Option<&Request<'_>>) -> Option<Result<()>> {
        let mut table = self.table.lock();
        let same = |held: &WholeLock| held.owner == lock.owner && held.kind == lock.kind;
        if table.flocks.iter().any(same) {
            return Some(Ok(()));
        }
        if table.flocks.try_reserve(1).is_err() {
            return Some(Err(Errno::ENOLCK));
        }
        let before = table.flocks.len();
        table.flocks.retain(|held| held.owner != lock.owner);
        let released = table.flocks.len() != before;
        let free = !table.flocks.iter().any(|held| held.conflicts(lock))
            && !request.is_some_and(|request| table.is_queued(request.number));
        let taken = free.then(|| table.flocks.try_push(lock.clone()).map_err(|_| Errno::ENOLCK));
        drop(table);
        if released {
            self.changed.wake_all();
        }
        taken
    }

    /// Releases the `flock` of an open file.
    pub fn unflock(&self, owner: usize) {
        self.table.lock().flocks.retain(|held| held.owner != owner);
        self.changed.wake_all();
    }

    /// Releases everything that `owner` holds.
    pub fn release(&self, owner: usize) {
        let mut table = self.table.lock();
        let before = table.records.len() + table.flocks.len();
        table.records.retain(|held| held.owner != owner);
        table.flocks.retain(|held| held.owner != owner);
        let released = table.records.len() + table.flocks.len() != before;
        drop(table);
        if released {
            self.changed.wake_all();
        }
    }
}

impl Drop for FileLocks {
    fn drop(&mut self) {
        let gone = ALL.lock().remove(&self.number);
        drop(gone);
    }
}

/// An entry of a table's `requests`, removed when dropped.
struct Request<'a> {
    locks: &'a FileLocks,
    number: u64,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.locks.table.lock().requests.retain(|(number, _)| *number != self.number);
    }
}

/// From how many waits to the next EDEADLK is looked for: each of them looks through the whole list.
const MOST_STEPS: usize = 11;

/// An entry of [`WAITING`] (none for OFD locks), removed when dropped.
struct Waiting(Option<Wait>);

impl Waiting {
    /// EDEADLK if `holder` waits for `owner`, directly or through others. OFD locks are not checked, as on Linux.
    fn new(owner: usize, holder: usize, ofd: bool) -> Result<Self> {
        if ofd {
            return Ok(Self(None));
        }
        let mut all = WAITING.lock();
        Self::check(&all, owner, holder)?;
        let wait = Wait { number: next_number(), owner, holder };
        all.try_push(wait).map_err(|_| Errno::ENOLCK)?;
        Ok(Self(Some(wait)))
    }

    /// Of a process with several threads that wait, only the newest wait is followed, and no longer chain than [`MOST_STEPS`], as
    /// on Linux.
    fn check(all: &[Wait], owner: usize, holder: usize) -> Result<()> {
        let mut at = holder;
        for _ in 0..MOST_STEPS {
            match all.iter().rev().find(|wait| wait.owner == at) {
                Some(wait) if wait.holder == owner => return Err(Errno::EDEADLK),
                Some(wait) => at = wait.holder,
                None => break,
            }
        }
        Ok(())
    }

    /// The conflicting lock is another owner's now: the wait is for that one.
    fn now_for(&self, holder: usize) -> Result<()> {
        let Some(wait) = self.0 else { return Ok(()) };
        let mut all = WAITING.lock();
        Self::check(&all, wait.owner, holder)?;
        if let Some(entry) = all.iter_mut().find(|other| other.number == wait.number) {
            entry.holder = holder;
        }
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(wait) = self.0 {
            WAITING.lock().retain(|other| other.number != wait.number);
        }
    }
}
