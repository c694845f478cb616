//! [`Parked`]: a request that waits for its file or for a time, and what wakes it.
//!
//! A request leaves a registration in the queues of its file, as an epoll does, or arms a timer; both ring its [`Bell`], which only
//! says so. A task of the ring's process that enters the ring then looks again, or the one that submitted it, before it returns to
//! user mode. No thread waits. The queues of rings and epolls wake others in turn, and could come back to where they began: a bell
//! in one of those never wakes anybody but who submitted. Owns registrations and timers, which end with nothing locked but the ring's mutex.
//! Locks: none in a bell.

use super::awaited::{is_for_ring, is_woken};
use super::check::is_nested;
use super::memory::Shared;
use super::request::Request;
use crate::mm::fallible::{TryGrow, TryMap, try_arc};
use crate::process::Task;
use crate::process::task::later::leave_to;
use crate::sync::{BY_RING, Mutex, PollTable, Registrations, WaitQueue, Wake};
use crate::time::{self, Nanos, TimerId, TimerRoom, TimerTarget};
use crate::vfs::{Cred, OpenFile, PollEvents};
use abi::uring::{Cqe, setup, sq_flag};
use abi::{Errno, Result};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Some bell has rung of a request that only who shares the ring's memory can go on with.
const RUNG: u8 = 1;
/// Some bell has rung of one that anybody who holds the ring can go on with, or the inbox was filled.
const FREE: u8 = 2;

/// What bells ring at: a ring's memory, and who waits for it.
pub struct Tower {
    pub shared: Shared,
    /// What there is to do: [`RUNG`], [`FREE`]. SeqCst: whoever clears a bit then looks at the bells.
    work: AtomicU8,
    /// An eventfd is to be told of work that a thread can do only once it enters. Relaxed: whoever sets it does not yet wait for that.
    pub tells: AtomicBool,
    /// It was told, and nobody has entered since. SeqCst: cleared before `work`.
    was_told: AtomicBool,
    /// The flags in the shared memory.
    flags: AtomicU32,
    pub waiters: WaitQueue,
    /// Completions that other rings sent. Taken below a ring's mutex.
    pub inbox: Mutex<Inbox>,
}

/// Bounded, as a ring that is told from everywhere may not be looked at by anybody.
#[derive(Default)]
pub struct Inbox(VecDeque<Cqe>);

impl Inbox {
    /// Most that it holds.
    const MOST: usize = 1 << 16;

    pub fn put(&mut self, cqe: Cqe) -> Result<()> {
        if self.0.len() >= Self::MOST {
            return Err(Errno::EOVERFLOW);
        }
        self.0.try_push(cqe).map_err(|_| Errno::EOVERFLOW)
    }

    pub fn take(&mut self) -> VecDeque<Cqe> {
        core::mem::take(&mut self.0)
    }
}

impl Tower {
    pub fn new(shared: Shared) -> Self {
        Self {
            shared,
            work: AtomicU8::new(0),
            tells: AtomicBool::new(false),
            was_told: AtomicBool::new(false),
            flags: AtomicU32::new(0),
            waiters: WaitQueue::new(),
            inbox: Mutex::new(Inbox::default()),
        }
    }

    /// Sets or clears a flag that user space sees. Who writes last looks whether another changed them meanwhile.
    pub fn set_flag(&self, flag: u32, on: bool) {
        match on {
            true => self.flags.fetch_or(flag, Ordering::SeqCst),
            false => self.flags.fetch_and(!flag, Ordering::SeqCst),
        };
        loop {
            let flags = self.flags.load(Ordering::SeqCst);
            self.shared.set_sq_flags(flags);
            core::sync::atomic::fence(Ordering::SeqCst);
            if self.flags.load(Ordering::SeqCst) == flags {
                return;
            }
        }
    }

    /// Whether any bell has rung.
    pub fn has_work(&self) -> bool {
        self.has_work_for(true)
    }

    /// Whether there is something that somebody can do, to whom the memory of the ring belongs or does not.
    pub fn has_work_for(&self, is_mine: bool) -> bool {
        let all = if is_mine { RUNG | FREE } else { FREE };
        self.work.load(Ordering::SeqCst) & all != 0
    }

    /// Takes back what the bells have said to such a one: whether any has rung, of those and of the free ones.
    pub fn take_rung(&self, is_mine: bool) -> (bool, bool) {
        if !self.has_work_for(is_mine) {
            return (false, false);
        }
        self.set_flag(sq_flag::TASKRUN, false);
        if !is_mine && self.work.load(Ordering::SeqCst) & RUNG != 0 {
            self.set_flag(sq_flag::TASKRUN, true);
        }
        self.was_told.store(false, Ordering::SeqCst);
        let taken = if is_mine { RUNG | FREE } else { FREE };
        let work = self.work.fetch_and(!taken, Ordering::SeqCst) & taken;
        (work & RUNG != 0, work & FREE != 0)
    }

    /// There is work: who looks at the flags learns of it.
    fn note_work(&self, is_free: bool) {
        self.work.fetch_or(if is_free { FREE } else { RUNG }, Ordering::SeqCst);
        self.set_flag(sq_flag::TASKRUN, true);
    }

    /// There is work, which is for everybody or not: who waits, and who looks at the flags, learns of it.
    pub fn tell_work(&self, is_free: bool) {
        self.note_work(is_free);
        self.waiters.wake_events(PollEvents::READABLE.bits() | BY_RING);
    }

    /// Whether there is work of which the eventfd was not told; it is now.
    pub fn is_untold(&self) -> bool {
        self.has_work() && !self.was_told.swap(true, Ordering::SeqCst)
    }
}

/// Which of a run of requests have rung: a bit for each, and one for each word that is not empty. One task at a time looks.
pub struct Rung {
    /// SeqCst, as the words: set behind a bit of its word, and taken back before the word is looked at.
    filled: AtomicU64,
    words: [AtomicU64; 64],
}

impl Rung {
    /// As many requests share one.
    const RUN: u64 = 64 * 64;

    fn new() -> Self {
        Self { filled: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; 64] }
    }

    fn set(&self, at: u64) {
        let (word, bit) = Self::place(at);
        self.words[word].fetch_or(1 << bit, Ordering::SeqCst);
        self.filled.fetch_or(1 << word, Ordering::SeqCst);
    }

    /// Takes the first at or behind the `from`th.
    fn take(&self, from: u64) -> Option<u64> {
        let (first, skip) = Self::place(from);
        for word in first..64 {
            if self.filled.load(Ordering::SeqCst) & (1 << word) == 0 {
                continue;
            }
            let seen = if word == first { u64::MAX << skip } else { u64::MAX };
            self.filled.fetch_and(!(1 << word), Ordering::SeqCst);
            let there = self.words[word].load(Ordering::SeqCst);
            let bit = (there & seen).trailing_zeros();
            let taken = 1u64.checked_shl(bit).unwrap_or(0);
            if there & !taken != 0 {
                self.filled.fetch_or(1 << word, Ordering::SeqCst);
            }
            if taken != 0 {
                self.words[word].fetch_and(!taken, Ordering::SeqCst);
                return Some(word as u64 * 64 + u64::from(bit));
            }
        }
        None
    }

    fn place(at: u64) -> (usize, u32) {
        ((at / 64 % 64) as usize, (at % 64) as u32)
    }
}

/// What has rung of all requests of a ring, by runs of their numbers.
#[derive(Default)]
pub struct AllRung(BTreeMap<u64, Arc<Rung>>);

impl AllRung {
    /// Where the bell of request `at` rings.
    fn of(&mut self, at: u64) -> Result<Arc<Rung>> {
        if let Some(rung) = self.0.get(&(at / Rung::RUN)) {
            return Ok(rung.clone());
        }
        let rung = try_arc(Rung::new())?;
        self.0.try_put(at / Rung::RUN, rung.clone())?;
        Ok(rung)
    }

    /// Takes the first that has rung at or behind `from`. It may be gone meanwhile.
    pub fn take(&self, from: u64) -> Option<u64> {
        let first = from / Rung::RUN;
        self.0.range(first..).find_map(|(&run, rung)| {
            let from = if run == first { from % Rung::RUN } else { 0 };
            Some(run * Rung::RUN + rung.take(from)?)
        })
    }

    /// Forgets the runs that have no bell left, but for that of the next request.
    pub fn shrink(&mut self, next: u64) {
        self.0.retain(|&run, rung| run >= next / Rung::RUN || Arc::strong_count(rung) > 1);
    }
}

/// When a thread goes on with its requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At once: it leaves user mode for that.
    Now,
    /// Before it goes on in user mode the next time (`COOP_TASKRUN`).
    Later,
    /// When it enters the ring (`DEFER_TASKRUN`).
    Entering,
}

impl When {
    pub fn of(flags: u32) -> Self {
        match flags {
            flags if flags & setup::DEFER_TASKRUN != 0 => Self::Entering,
            flags if flags & setup::COOP_TASKRUN != 0 => Self::Later,
            _ => Self::Now,
        }
    }
}

/// Who goes on with a request, and when.
pub struct Maker {
    pub task: Arc<Task>,
    pub when: When,
}

impl Maker {
    /// It learns that there is work, by no queue.
    pub fn tell(&self, tower: &Tower) {
        match self.when {
            // What the thread does is to tell the eventfd, whose lock no bell may take.
            When::Entering if tower.tells.load(Ordering::Relaxed) => leave_to(&self.task, true),
            When::Entering => _ = self.task.wake_interruptible(),
            when => leave_to(&self.task, when == When::Now),
        }
    }
}

/// What the queues of a file and a timer wake. Allocates and drops nothing.
pub struct Bell {
    tower: Arc<Tower>,
    maker: Maker,
    /// Anybody who holds the ring can go on with the request: it needs nobody's memory.
    is_free: bool,
    /// It is in a queue that is woken by others' queues, or in one that wakes them.
    is_nested: bool,
    /// SeqCst, as `rung`.
    wanted: AtomicU32,
    /// The request's number, and where its bit is.
    at: u64,
    rung: Arc<Rung>,
    /// The time has come. SeqCst, as `rung`.
    late: AtomicBool,
    /// A completion of a ring has woken it. Relaxed: set before it rings.
    by_ring: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        self.rung.set(self.at);
        if self.is_nested {
            self.tower.note_work(self.is_free);
        } else {
            self.tower.tell_work(self.is_free);
        }
        self.maker.tell(&self.tower);
    }
}

impl Wake for Bell {
    fn wake(&self, events: u32) -> bool {
        if events != 0 && events & self.wanted.load(Ordering::SeqCst) == 0 {
            return false;
        }
        if events & BY_RING != 0 {
            self.by_ring.store(true, Ordering::Relaxed);
        }
        self.ring();
        true
    }
}

impl TimerTarget for Bell {
    fn expired(self: Arc<Self>, _: Nanos) {
        self.late.store(true, Ordering::SeqCst);
        self.ring();
    }
}

struct Timer {
    id: TimerId,
    _room: TimerRoom,
}

/// A request that waits.
pub struct Parked {
    pub request: Request,
    /// What is linked to it.
    pub rest: VecDeque<Request>,
    /// Who it is carried out as, if its entry named a personality.
    pub person: Option<Arc<Cred>>,
    /// What it waits for; none for a time alone.
    pub file: Option<Arc<OpenFile>>,
    bell: Arc<Bell>,
    registrations: Option<Registrations>,
    timer: Option<Timer>,
    /// From when a timeout counts completions.
    pub since: Option<u32>,
    /// After how long a timeout that goes on comes again.
    pub every: u64,
}

/// What is ready of `file`, and a bell for when more is.
fn watch(file: &OpenFile, bell: &Arc<Bell>) -> Result<(PollEvents, Option<Registrations>)> {
    let mut table = PollTable::register(bell.clone(), false, 2);
    let found = file.poll(&mut table);
    Ok((found, table.finish()?))
}

impl Parked {
    /// Lets request number `at` wait until `file` has one of `wanted`, or until `deadline`. What is ready already rings at once.
    pub fn new(
        tower: &Arc<Tower>,
        (at, all): (u64, &mut AllRung),
        (maker, is_free): (Maker, bool),
        request: Request,
        file: Option<Arc<OpenFile>>,
        wanted: PollEvents,
        deadline: Option<u64>,
    ) -> Result<Self> {
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let bell = try_arc(Bell {
            tower: tower.clone(),
            maker,
            is_free,
            is_nested: file.as_deref().is_some_and(|file| is_nested(file) || is_for_ring(file)),
            wanted: AtomicU32::new(wanted.bits()),
            at,
            rung: all.of(at)?,
            late: AtomicBool::new(false),
            by_ring: AtomicBool::new(false),
        })?;
        let room = deadline.map(|_| TimerRoom::one_of_many()).transpose()?;
        let mut registrations = None;
        if let Some(file) = &file {
            let (found, made) = watch(file, &bell)?;
            registrations = made;
            if found.intersects(wanted) {
                bell.wake(0);
            }
        }
        let timer = room.zip(deadline).map(|(room, deadline)| {
            let id = time::arm(&room, Nanos(deadline), bell.clone());
            Timer { id, _room: room }
        });
        let every = deadline.map_or(0, |at| at.saturating_sub(time::since_boot_ns()));
        let rest = VecDeque::new();
        Ok(Self {
            request,
            rest,
            person: None,
            file,
            bell,
            registrations,
            timer,
            since: None,
            every,
        })
    }

    /// Whether it is a wait at a futex that has used a wake-up, and so ends well.
    pub fn is_woken(&self) -> bool {
        self.file.as_deref().is_some_and(is_woken)
    }

    /// Whether anybody who holds the ring can go on with it.
    pub fn is_free(&self) -> bool {
        self.bell.is_free
    }

    /// Whether the thread that submitted it has ended.
    pub fn is_left(&self) -> bool {
        self.bell.maker.task.is_exiting()
    }

    /// Whether a poll can be told of again and again: not of a ring, nor of what a ring has told, which each completion would wake, as
    /// on Linux.
    pub fn comes_again(&self) -> bool {
        let by_ring = self.bell.by_ring.load(Ordering::Relaxed);
        !by_ring && !self.file.as_deref().is_some_and(is_for_ring)
    }

    /// Whether its time has come.
    pub fn is_late(&self) -> bool {
        self.bell.late.load(Ordering::SeqCst)
    }

    /// Waits until another time.
    pub fn set_deadline(&mut self, at: u64) -> Result<()> {
        let room = match self.timer.take() {
            Some(Timer { id, _room: room }) => {
                time::cancel_and_wait(id);
                room
            }
            None => TimerRoom::one_of_many()?,
        };
        self.bell.late.store(false, Ordering::SeqCst);
        let id = time::arm(&room, Nanos(at), self.bell.clone());
        self.timer = Some(Timer { id, _room: room });
        Ok(())
    }

    /// Waits for other events of its file, one of which may be there.
    pub fn set_wanted(&mut self, wanted: PollEvents) -> Result<()> {
        self.bell.wanted.store(wanted.bits(), Ordering::SeqCst);
        let Some(file) = &self.file else { return Ok(()) };
        let (found, made) = watch(file, &self.bell)?;
        self.registrations = made;
        if found.intersects(wanted) {
            self.bell.wake(0);
        }
        Ok(())
    }

    /// What of what it wants is ready.
    pub fn ready(&self) -> PollEvents {
        let Some(file) = &self.file else { return PollEvents::empty() };
        file.poll(&mut PollTable::look())
            & PollEvents::from_bits_truncate(self.bell.wanted.load(Ordering::SeqCst))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.registrations = None;
        if let Some(timer) = &self.timer {
            // The interrupt's reference to the bell must not become the last one.
            time::cancel_and_wait(timer.id);
        }
    }
}
