//! [`SemSet`]: a set of semaphores, from semget to IPC_RMID; semop.
//!
//! Owns the table of sets and how many semaphores they have together. What operations do and who goes on is
//! `alea_sysv::semaphore`'s to say. Never sleeps with a set locked: who has to wait is queued, and told by who lets it go
//! on. Locks: a set's own, which sleeps, since a round over those who wait may be long; then `SysvTable` for the
//! table, or `Leaf` for what one waiter is told.

use super::undo::{Adjusted, UndoList, Visited};
use crate::base::setting::Setting;
use crate::mm::fallible::{Room, try_arc};
use crate::mm::kernel_memory_low;
use crate::process::current;
use crate::process::sysv::limits::{SEM_MNI, SEM_MNS, SEM_MSL, SEM_NEXT_ID};
use crate::process::sysv::now;
use crate::process::sysv::perm::{self, Perm};
use crate::process::sysv::table::{Object, Table, find_or_make};
use crate::sync::counted::{Counted, Kind};
use crate::sync::wait::{Deadline, WaitError};
use crate::sync::{Mutex, MutexGuard, SpinGuard, SpinLock, WaitQueue, cond_resched, level};
use crate::vfs::Cred;
use abi::ipc::{IPC_PRIVATE, SemidDs};
use abi::{Errno, Result};
use alea_sysv::semaphore::{Attempt, Call, Op, Set, Wakes};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// All sets.
pub(super) struct Sets {
    pub table: Table<SemSet>,
    /// Semaphores of all of them.
    pub used: i32,
}

static SETS: SpinLock<Sets, level::SysvTable> =
    SpinLock::new(Sets { table: Table::new(), used: 0 });

/// A set.
pub struct SemSet {
    _counted: Counted,
    id: i32,
    /// How many semaphores it has.
    pub(super) count: usize,
    state: Mutex<State>,
}

/// What changes of a set. Times are in seconds, since 1970.
pub(super) struct State {
    pub perm: Perm,
    pub set: Set<Arc<Sleeper>, Arc<Visited>>,
    pub otime: i64,
    pub ctime: i64,
    /// It is out of the table.
    pub gone: bool,
}

impl perm::State for State {
    fn perm(&self) -> &Perm {
        &self.perm
    }
    fn is_gone(&self) -> bool {
        self.gone
    }
}

impl Object for SemSet {
    fn id(&self) -> i32 {
        self.id
    }
}

/// Somebody who waits for a set.
pub(super) struct Sleeper {
    told: SpinLock<Option<Result<()>>, level::Leaf>,
    queue: WaitQueue,
}

impl Sleeper {
    fn told(&self) -> Option<Result<()>> {
        *self.told.lock()
    }
}

/// Tells those who wait.
pub(super) struct Telling;

impl Wakes<Arc<Sleeper>> for Telling {
    fn wake(&mut self, sleeper: Arc<Sleeper>, result: Result<()>) {
        *sleeper.told.lock() = Some(result);
        sleeper.queue.wake_all();
    }
    fn pace(&mut self) {
        cond_resched();
    }
}

impl SemSet {
    /// Its state, gone or not.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Its state, if the caller may do what `wanted` asks for: `EACCES`, `EIDRM`.
    pub(super) fn lock_for(&self, wanted: u32) -> Result<MutexGuard<'_, State>> {
        perm::lock_for(&self.state, wanted)
    }

    /// What semctl tells of it to whom `check` lets; `EIDRM`.
    pub fn told(&self, check: impl FnOnce(&Perm) -> Result<()>) -> Result<SemidDs> {
        let state = perm::lock_if(&self.state, check)?;
        Ok(SemidDs {
            perm: state.perm.to_abi(self.id),
            otime: state.otime,
            ctime: state.ctime,
            nsems: self.count as u64,
            ..SemidDs::default()
        })
    }
}

impl Adjusted for SemSet {
    fn take_back(&self, key: u64, pid: i32) {
        let mut state = self.state.lock();
        if state.set.apply_undo(key, pid) {
            state.set.settle_all(&mut Telling);
            state.otime = now();
        }
    }
}

/// All sets, locked.
pub(super) fn all() -> SpinGuard<'static, Sets, level::SysvTable> {
    SETS.lock()
}

/// Visits the sets in order; nothing is locked meanwhile.
pub fn for_each(mut visit: impl FnMut(&SemSet) -> Result<()>) -> Result<()> {
    let mut from = 0;
    loop {
        cond_resched();
        let found = all().table.first_from(from);
        let Some((index, set)) = found else { return Ok(()) };
        visit(&set)?;
        from = index + 1;
    }
}

/// semget: the identifier. Errors as semget(2).
pub fn get(key: i32, count: i32, flags: u32) -> Result<i32> {
    if count < 0 || count > SEM_MSL.get() {
        return Err(Errno::EINVAL);
    }
    let cred = current().cred_arc();
    let found = |set: &SemSet| {
        let state = set.lock();
        if state.gone {
            return Ok(None);
        }
        if count as usize > set.count {
            return Err(Errno::EINVAL);
        }
        state.perm.check(&cred, flags).map(|()| Some(set.id))
    };
    let look = || all().table.by_key(key);
    find_or_make(key, flags, look, found, || make(key, count, flags, &cred))
}

/// Makes a set; `None` if the key is taken by now.
fn make(key: i32, count: i32, flags: u32, cred: &Cred) -> Result<Option<i32>> {
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if all().used.saturating_add(count) > SEM_MNS.get() {
        return Err(Errno::ENOSPC);
    }
    if kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let set = Set::new(count as usize)?;
    let perm = Perm::new(key, flags, cred);
    let state = Mutex::new(State { perm, set, otime: 0, ctime: now(), gone: false });
    let room = Room::new()?;
    let mut sets = all();
    if key != IPC_PRIVATE && sets.table.by_key(key).is_some() {
        drop(sets);
        return Ok(None);
    }
    let used = sets.used.checked_add(count).filter(|&used| used <= SEM_MNS.get());
    let used = used.ok_or(Errno::ENOSPC)?;
    let make =
        |id| SemSet { _counted: Counted::new(Kind::SemSet), id, count: count as usize, state };
    let wish = SEM_NEXT_ID.get();
    let set = sets.table.add(key, SEM_MNI.get(), wish, room, make)?;
    if wish >= 0 {
        SEM_NEXT_ID.set(-1);
    }
    sets.used = used;
    Ok(Some(set.id))
}

/// semop and semtimedop, whose limit of time is `deadline`. Errors as semop(2).
pub fn operate(id: i32, ops: Vec<Op>, deadline: Option<Deadline>) -> Result<()> {
    let task = current();
    let set = all().table.get(id)?;
    let undo = match ops.iter().any(|op| op.undo) {
        true => Some(task.map(|task| &task.sysv).undo_list()?),
        false => None,
    };
    if ops.iter().any(|op| usize::from(op.number) >= set.count) {
        return Err(Errno::EFBIG);
    }
    let wanted = if ops.iter().any(|op| op.delta != 0) { 0o222 } else { 0o444 };
    let mut state = set.lock_for(wanted)?;
    if let Some(list) = &undo {
        keep_undo(&mut state, list, &set)?;
    }
    let call = Call { ops, pid: task.process().pid(), undo: undo.map(|list| list.key()) };
    match state.set.attempt(&call) {
        Attempt::Done => {
            state.set.settle(&call, &mut Telling);
            state.otime = now();
            Ok(())
        }
        Attempt::Failed(error) => Err(error),
        Attempt::Wait(at) => {
            let told = SpinLock::new(None);
            let sleeper = try_arc(Sleeper { told, queue: WaitQueue::new() })?;
            state.set.queue(call, at, sleeper.clone())?;
            drop(state);
            wait(&set, &sleeper, deadline)
        }
    }
}

/// Keeps room for the adjustments of `list`, which learns of the set.
fn keep_undo(state: &mut State, list: &UndoList, set: &Arc<SemSet>) -> Result<()> {
    if state.set.has_undo(list.key()) {
        return Ok(());
    }
    if kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    state.set.add_undo(list.key(), list.visited().clone())?;
    list.visit(set.id, set.clone()).inspect_err(|_| drop(state.set.take_undo(list.key())))
}

fn wait(set: &SemSet, sleeper: &Arc<Sleeper>, deadline: Option<Deadline>) -> Result<()> {
    let why = match sleeper.queue.wait_deadline(deadline, || sleeper.told()) {
        Ok(result) => return result,
        Err(why) => why,
    };
    let mut state = set.lock();
    if let Some(result) = sleeper.told() {
        return result;
    }
    state.set.leave(|other| Arc::ptr_eq(other, sleeper));
    Err(match why {
        WaitError::Interrupted => Errno::EINTR,
        WaitError::TimedOut => Errno::EAGAIN,
    })
}
