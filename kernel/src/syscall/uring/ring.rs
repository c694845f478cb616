//! [`Ring`]: one io_uring. Its memory, what was submitted and what is complete.
//!
//! Completions are written into the shared memory at once and shown (the tail moves, who waits is woken) when a batch is done.
//! What finds no room there is kept on a list of bounded length, and later still only counted. Owns the registered files; never itself: no ring is
//! registered, nor passed over a socket. Locks: a
//! sleeping mutex around the state, held while requests are carried out.

use super::handed::buffers::Buffers;
use super::handed::table::Files;
use super::memory::{Front, Shared};
use super::parked::{AllRung, Maker, Parked, Tower, When};
use super::request::Chain;
use super::restrict::Restrictions;
use crate::fs::eventfd::EventFd;
use crate::mm::AddressSpace;
use crate::mm::fallible::{TryGrow, try_arc};
use crate::process::{self, Task};
use crate::sync::{BY_RING, Mutex, MutexGuard, Pace};
use crate::vfs::{Cred, OpenFile, PollEvents};
use abi::uring::{Cqe, EVENTFD_DISABLED, setup, sq_flag};
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Most completions that are kept for a full ring.
const MOST_KEPT: usize = 1 << 16;

/// Whom a ring with completions tells.
pub struct Bell {
    pub file: Arc<OpenFile>,
    /// Only of what others completed.
    pub only_async: bool,
}

/// What changes under the mutex.
#[derive(Default)]
pub struct State {
    /// Entries taken so far.
    pub sq_head: u32,
    pub dropped: u32,
    /// Completions written so far, of which user space may not know yet.
    cq_tail: u32,
    /// For how many more there is room, as far as was looked; nothing while something is kept.
    room: u32,
    /// What finds no room.
    kept: VecDeque<Cqe>,
    /// Of requests that were cancelled with the one that they were linked to: they come after the batch, as on Linux.
    late: VecDeque<Cqe>,
    /// What was not even kept.
    lost: u32,
    /// Something was lost, and nobody was told.
    pub has_lost: bool,
    pub bell: Option<Bell>,
    pub buffers: Buffers,
    /// What it may be asked for, as it was said while it was disabled; and once it is enabled.
    pub restrictions: Option<Restrictions>,
    pub restricted: Option<Restrictions>,
    /// Who requests can be carried out as, by number.
    pub personalities: BTreeMap<u16, Arc<Cred>>,
    pub next_personality: u16,
    /// Who alone submits, under `SINGLE_ISSUER`.
    pub submitter: Option<Weak<Task>>,
    /// A link that the entries being taken have begun.
    pub chain: Option<Chain>,
    /// Timeouts that count completions.
    pub counting: usize,
    /// Requests that wait, in their order.
    pub parked: BTreeMap<u64, Box<Parked>>,
    pub next_parked: u64,
    /// Which of them have rung; of those that anybody who holds the ring can go on with, apart.
    pub rung: AllRung,
    pub free: AllRung,
    /// What stays back until those are complete.
    pub deferred: VecDeque<Chain>,
    /// A request asked for no completion: order cannot be counted any more.
    pub no_drain: bool,
    /// Who had it locked left nothing behind that a plain entry has to look at: see [`calm`](super::enter).
    is_calm: bool,
}

/// The locked state of a ring.
pub struct Locked<'a> {
    ring: &'a Ring,
    state: MutexGuard<'a, State>,
}

impl Deref for Locked<'_> {
    type Target = State;
    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.state.is_calm = self.ring.can_be_calm() && self.state.has_nothing_else();
    }
}

impl State {
    /// Completions written so far.
    #[inline]
    pub fn cq_tail(&self) -> u32 {
        self.cq_tail
    }

    /// Whether nothing waits, nothing is kept or held back, and entries may say anything.
    fn has_nothing_else(&self) -> bool {
        let Self { kept, late, restricted, chain, parked, deferred, .. } = self;
        let is_done = kept.is_empty() && late.is_empty() && parked.is_empty();
        is_done && chain.is_none() && deferred.is_empty() && restricted.is_none()
    }
}

/// One io_uring.
pub struct Ring {
    pub tower: Arc<Tower>,
    pub flags: u32,
    /// Who made it.
    pub home: Weak<Task>,
    /// The address space in which its requests are carried out.
    mm: Weak<AddressSpace>,
    pub disabled: AtomicBool,
    state: Mutex<State>,
    /// Below any ring's state.
    pub files: Mutex<Files>,
    /// What `State::cq_tail` was when user space was told. Relaxed: the queue's wake-up orders it.
    shown: AtomicU32,
    /// Timeouts whose time came: those that count completions do not count them, and one ends every wait. Relaxed: as `shown`.
    timeouts: AtomicU32,
    /// Completions are kept. Relaxed: as `shown`.
    has_kept: AtomicBool,
}

/// The ring behind a file; `EOPNOTSUPP` for any other.
#[inline]
pub fn of_file(file: &OpenFile) -> Result<&Arc<Ring>> {
    file.downcast::<RingFile>().map(|file| &file.0).ok_or(Errno::EOPNOTSUPP)
}

impl Ring {
    pub fn new(shared: Shared, flags: u32) -> Result<Self> {
        let mm = process::current().mm_arc();
        Ok(Self {
            tower: try_arc(Tower::new(shared))?,
            flags,
            home: Arc::downgrade(&process::current_arc()),
            mm: mm.as_ref().map_or_else(Weak::new, Arc::downgrade),
            disabled: AtomicBool::new(flags & setup::R_DISABLED != 0),
            state: Mutex::new(State::default()),
            files: Mutex::new(Files::default()),
            shown: AtomicU32::new(0),
            timeouts: AtomicU32::new(0),
            has_kept: AtomicBool::new(false),
        })
    }

    /// Locks the state. An entry that is carried out as a call may hold it for long: so who waits for it can be killed.
    #[inline]
    pub fn lock(&self) -> Result<Locked<'_>> {
        Ok(Locked { ring: self, state: self.state.lock_killable()? })
    }

    /// Locks the state, if nobody has it.
    pub fn try_lock(&self) -> Option<Locked<'_>> {
        Some(Locked { ring: self, state: self.state.try_lock()? })
    }

    /// Locks the state, if nobody has it and it is calm. Whoever has it leaves it so.
    #[inline]
    pub fn try_calm(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().filter(|state| state.is_calm)
    }

    /// The state of a ring that nobody else has.
    pub fn state_mut(&mut self) -> &mut State {
        self.state.get_mut()
    }

    /// Whether entries are taken by who enters, and each at once.
    fn can_be_calm(&self) -> bool {
        // Relaxed: under the mutex, as who enables it.
        let is_enabled = !self.disabled.load(Ordering::Relaxed);
        is_enabled && self.flags & (setup::SQPOLL | setup::IOPOLL) == 0
    }

    #[inline]
    pub fn shared(&self) -> &Shared {
        &self.tower.shared
    }

    /// Whether the running task shares the memory of who made it.
    pub fn is_mine(&self) -> bool {
        process::current()
            .mm_arc()
            .is_some_and(|mm| core::ptr::eq(Arc::as_ptr(&mm), self.mm.as_ptr()))
    }

    /// The address of that memory, as a name.
    pub fn memory(&self) -> usize {
        self.mm.as_ptr().addr()
    }

    /// Whether that memory is gone.
    pub fn is_orphan(&self) -> bool {
        self.mm.strong_count() == 0
    }

    /// Whether there is something to be done for requests that wait.
    pub fn has_work(&self) -> bool {
        self.tower.has_work()
    }

    /// The thread that made the ring learns that there is work for it.
    pub fn tell_home(&self) {
        if let Some(task) = self.home.upgrade() {
            Maker { task, when: When::of(self.flags) }.tell(&self.tower);
        }
    }

    /// Entries that user space has submitted and nobody has taken.
    #[inline]
    pub fn submitted(&self, state: &State) -> u32 {
        let shared = self.shared();
        shared.front().submitted(state.sq_head).min(shared.sq_entries())
    }

    /// Completions that user space has not taken.
    pub fn untaken(&self) -> u32 {
        self.shared().front().untaken(self.shown.load(Ordering::Relaxed))
    }

    /// Whether completions are kept for which there was no room.
    pub fn has_kept(&self) -> bool {
        self.has_kept.load(Ordering::Relaxed)
    }

    /// Whether a completion finds room among those that user space can see.
    #[inline]
    pub fn has_room(&self, state: &mut State) -> bool {
        state.room != 0 || self.look_for_room(state)
    }

    /// Adds a completion, to be shown by [`show`](Self::show).
    #[inline]
    pub fn complete(&self, state: &mut State, cqe: Cqe) {
        if !self.has_room(state) {
            return self.keep(state, cqe);
        }
        self.put(state, &cqe);
    }

    #[inline]
    fn put(&self, state: &mut State, cqe: &Cqe) {
        self.shared().put_completion(state.cq_tail, cqe);
        state.cq_tail = state.cq_tail.wrapping_add(1);
        // There is room.
        state.room = state.room.wrapping_sub(1);
    }

    /// Completes the next entry, if it does nothing and there is room. Whoever calls it knows that it was submitted, and that none waits.
    #[inline]
    pub fn pass_nop(&self, state: &mut State) -> bool {
        let nop = self.shared().nop_at(state.sq_head).filter(|_| self.has_room(state));
        let Some(user_data) = nop else { return false };
        self.put(state, &Cqe { user_data, res: 0, flags: 0 });
        state.sq_head = state.sq_head.wrapping_add(1);
        true
    }

    /// Completes up to `most` entries that do nothing, as far as there is room: how many. Whoever calls it knows that no entry waits.
    #[inline]
    pub fn pass_nops(&self, state: &mut State, most: u32) -> u32 {
        if !self.has_room(state) {
            return 0;
        }
        let most = most.min(state.room);
        let passed = self.shared().pass_nops(state.sq_head, state.cq_tail, most);
        state.sq_head = state.sq_head.wrapping_add(passed);
        state.cq_tail = state.cq_tail.wrapping_add(passed);
        state.room -= passed;
        passed
    }

    /// Looks how many completions user space has taken: whether there is room for one behind those that are kept.
    #[inline(never)]
    fn look_for_room(&self, state: &mut State) -> bool {
        if state.kept.is_empty() {
            state.room = self.room_behind(state.cq_tail);
        }
        state.room != 0
    }

    fn room_behind(&self, tail: u32) -> u32 {
        self.shared().cq_entries().saturating_sub(self.shared().front().untaken(tail))
    }

    #[cold]
    fn keep(&self, state: &mut State, cqe: Cqe) {
        let is_first = state.kept.is_empty();
        if state.kept.len() >= MOST_KEPT || state.kept.try_push(cqe).is_err() {
            state.lost = state.lost.wrapping_add(1);
            state.has_lost = true;
            self.shared().count_overflow(state.lost);
            return;
        }
        if is_first {
            self.has_kept.store(true, Ordering::Relaxed);
            self.tower.set_flag(sq_flag::CQ_OVERFLOW, true);
        }
    }

    /// Adds a completion that comes after those of the batch.
    pub fn complete_late(&self, state: &mut State, cqe: Cqe) {
        if state.late.try_push(cqe).is_err() {
            self.complete(state, cqe);
        }
    }

    /// How many completions there were, but for those of timeouts.
    pub fn counted(&self, state: &State) -> u32 {
        let kept = state.kept.len() as u32;
        state.cq_tail.wrapping_add(kept).wrapping_add(state.lost).wrapping_sub(self.timeouts())
    }

    /// How many timeouts have come.
    pub fn timeouts(&self) -> u32 {
        self.timeouts.load(Ordering::Relaxed)
    }

    /// One more has.
    pub fn count_timeout(&self) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the completions that other rings sent.
    pub fn take_inbox(&self, state: &mut State) {
        let sent = self.tower.inbox.lock().take();
        for cqe in sent.into_iter().paced() {
            self.complete(state, cqe);
        }
    }

    /// Adds the late completions.
    pub fn take_late(&self, state: &mut State) {
        for cqe in core::mem::take(&mut state.late) {
            self.complete(state, cqe);
        }
    }

    /// The batch is done: adds the late completions, and shows all.
    #[inline]
    pub fn finish_batch(&self, state: &mut State) {
        if !state.late.is_empty() {
            self.take_late(state);
        }
        self.show(state);
    }

    /// Moves what was kept to where there is room now.
    pub fn restore(&self, state: &mut State) {
        while !state.kept.is_empty() && self.room_behind(state.cq_tail) != 0 {
            let Some(cqe) = state.kept.pop_front() else { break };
            state.room = 1;
            self.put(state, &cqe);
        }
        if state.kept.is_empty() && self.has_kept() {
            state.kept = VecDeque::new();
            self.has_kept.store(false, Ordering::Relaxed);
            self.tower.set_flag(sq_flag::CQ_OVERFLOW, false);
        }
        self.show(state);
    }

    /// Shows new completions to user space, and wakes who waits for them.
    #[inline]
    pub fn show(&self, state: &State) {
        if self.shown.load(Ordering::Relaxed) != state.cq_tail {
            self.show_new(state, self.shared().front());
        } else if self.has_kept() {
            self.wake();
        }
    }

    /// As [`show`](Self::show), when there are new ones.
    #[inline]
    pub fn show_new(&self, state: &State, front: Front<'_>) {
        self.shown.store(state.cq_tail, Ordering::Relaxed);
        front.set_cq_tail(state.cq_tail);
        self.wake();
        if let Some(counter) = self.told_by(state) {
            counter.signal();
        }
    }

    #[inline]
    fn wake(&self) {
        self.tower.waiters.wake_events(PollEvents::READABLE.bits() | BY_RING);
    }

    /// Tells the eventfd that there is work for who enters; one that can be read is not told again, as the work may come of what it holds.
    pub fn tell_of_work(&self, state: &State) {
        if self.tower.is_untold()
            && let Some(counter) = self.told_by(state)
        {
            counter.signal_if_empty();
        }
    }

    /// The eventfd that is to be told, if one is.
    fn told_by<'a>(&self, state: &'a State) -> Option<&'a EventFd> {
        let bell = state.bell.as_ref()?;
        let is_told = !bell.only_async && self.shared().cq_flags() & EVENTFD_DISABLED == 0;
        if is_told { bell.file.downcast::<EventFd>() } else { None }
    }

    /// `EEXIST` if only another task may submit.
    #[inline]
    pub fn check_submitter(&self, state: &mut State) -> Result<()> {
        if self.flags & setup::SINGLE_ISSUER == 0 { Ok(()) } else { self.check_single(state) }
    }

    fn check_single(&self, state: &mut State) -> Result<()> {
        if state.submitter.is_none() {
            state.submitter = Some(Arc::downgrade(&process::current_arc()));
        }
        self.check_is_submitter(state)
    }

    /// `EEXIST` unless the running task is the one that submits.
    pub fn check_is_submitter(&self, state: &State) -> Result<()> {
        let me = process::current_arc();
        let is_me = |submitter: &Weak<Task>| submitter.as_ptr() == Arc::as_ptr(&me);
        if state.submitter.as_ref().is_some_and(is_me) { Ok(()) } else { Err(Errno::EEXIST) }
    }
}

/// The open file.
pub struct RingFile(pub Arc<Ring>);
