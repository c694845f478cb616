//! [`WaitQueue`]: threads (and epoll items) waiting for something to change.
//!
//! A queue owns references to its waiters only while they wait. Waking never blocks and may happen in an
//! interrupt handler. The scheduler itself lives on a higher floor and registers here at boot.
//!
//! No wake-up is lost as long as the condition is read and changed under one lock, or with atomics: the
//! waiter adds itself before its last look at the condition, the waker changes the condition before its
//! look at the queue, and a full fence stands between the two on both sides.

use super::{Once, SpinLock, level};
use abi::Errno;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use smallvec::SmallVec;

/// Monotonic nanoseconds since boot, as `time` counts them.
pub type Deadline = u64;

/// Something that can be woken: a task, an epoll item.
///
/// Called with the queue's lock held and interrupts off: must not block, and must not wake this queue.
pub trait Wake: Send + Sync {
    /// `events`: the poll bits that became true, or 0 if the waker did not say.
    fn wake(&self, events: u32);
}

/// The wait was ended by a signal; becomes `ERESTARTSYS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl From<Interrupted> for Errno {
    fn from(_: Interrupted) -> Self {
        Errno::ERESTARTSYS
    }
}

/// Why a wait with a deadline ended without its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    Interrupted,
    TimedOut,
}

/// What the process floor provides to the sleeping locks.
pub trait Scheduler: Sync {
    /// The running task as something to wake.
    fn current_waker(&self) -> Arc<dyn Wake>;
    /// Marks the running task as going to sleep; a wake from now on cancels the sleep.
    fn prepare_to_sleep(&self, interruptible: bool);
    /// Takes the mark back.
    fn cancel_sleep(&self);
    /// Runs other tasks until woken or until `deadline`.
    fn sleep(&self, deadline: Option<Deadline>);
    /// Whether a signal waits for the running task.
    fn signal_pending(&self) -> bool;
    /// Monotonic nanoseconds now.
    fn now(&self) -> Deadline;
}

static SCHEDULER: Once<&'static dyn Scheduler> = Once::new();

/// Fills the slot; called once by the process floor before any thread can wait.
pub fn register_scheduler(scheduler: &'static dyn Scheduler) {
    SCHEDULER.call_once(|| scheduler);
}

fn scheduler() -> &'static dyn Scheduler {
    *SCHEDULER.get().expect("a thread waits before the scheduler runs")
}

/// The running task as something to add to several queues at once (poll); it then waits in none, with
/// [`wait_alone`], and is woken through any of them.
pub fn current_waker() -> Arc<dyn Wake> {
    scheduler().current_waker()
}

/// Waits until `cond` gives a value, a signal arrives, or the deadline passes, in no queue: who makes the condition
/// true holds a [`current_waker`] of the task, and wakes that after a full fence.
pub fn wait_alone<R>(
    deadline: Option<Deadline>,
    mut cond: impl FnMut() -> Option<R>,
) -> Result<R, WaitError> {
    if let Some(value) = cond() {
        return Ok(value);
    }
    super::spin::assert_may_block();
    let scheduler = scheduler();
    loop {
        scheduler.prepare_to_sleep(true);
        // SeqCst: pairs with the waker's: it sees that the task sleeps, or the task sees the condition.
        fence(Ordering::SeqCst);
        let outcome = match cond() {
            Some(value) => Ok(value),
            None if scheduler.signal_pending() => Err(WaitError::Interrupted),
            None if deadline.is_some_and(|d| scheduler.now() >= d) => Err(WaitError::TimedOut),
            None => {
                scheduler.sleep(deadline);
                match cond() {
                    Some(value) => return Ok(value),
                    None => continue,
                }
            }
        };
        scheduler.cancel_sleep();
        return outcome;
    }
}

struct Entry {
    waker: Arc<dyn Wake>,
    /// At most one exclusive waiter is woken by `wake_one`.
    exclusive: bool,
    /// A sleeping thread leaves the queue as it is woken; poll and epoll entries stay.
    once: bool,
}

/// The waiters for one condition, first come first served.
pub struct WaitQueue {
    /// Number of entries, readable without the lock.
    len: AtomicUsize,
    entries: SpinLock<SmallVec<[Entry; 2]>, level::WaitQueue>,
}

impl WaitQueue {
    /// A queue with nobody in it.
    pub const fn new() -> Self {
        Self { len: AtomicUsize::new(0), entries: SpinLock::new(SmallVec::new_const()) }
    }

    /// Waits until `cond` gives a value. Signals do not end the wait.
    #[inline]
    pub fn wait<R>(&self, mut cond: impl FnMut() -> Option<R>) -> R {
        match self.wait_with(Mode { interruptible: false, ..Mode::DEFAULT }, &mut cond) {
            Ok(value) => value,
            Err(_) => unreachable!("an uninterruptible wait without deadline ends with its value"),
        }
    }

    /// Waits until `cond` gives a value or a signal arrives.
    #[inline]
    pub fn wait_interruptible<R>(
        &self,
        mut cond: impl FnMut() -> Option<R>,
    ) -> Result<R, Interrupted> {
        self.wait_with(Mode::DEFAULT, &mut cond).map_err(|_| Interrupted)
    }

    /// As [`wait_interruptible`](Self::wait_interruptible), where one wake-up is enough for one
    /// waiter: of all the exclusive waiters `wake_one` wakes a single one.
    #[inline]
    pub fn wait_exclusive<R>(&self, mut cond: impl FnMut() -> Option<R>) -> Result<R, Interrupted> {
        self.wait_with(Mode { exclusive: true, ..Mode::DEFAULT }, &mut cond)
            .map_err(|_| Interrupted)
    }

    /// Waits until `cond` gives a value, a signal arrives, or the deadline passes.
    #[inline]
    pub fn wait_deadline<R>(
        &self,
        deadline: Option<Deadline>,
        mut cond: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        self.wait_with(Mode { deadline, ..Mode::DEFAULT }, &mut cond)
    }

    fn wait_with<R>(
        &self,
        mode: Mode,
        cond: &mut dyn FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        if let Some(value) = cond() {
            return Ok(value);
        }
        super::spin::assert_may_block();
        let scheduler = scheduler();
        let waker = scheduler.current_waker();
        loop {
            scheduler.prepare_to_sleep(mode.interruptible);
            self.insert(Entry { waker: waker.clone(), exclusive: mode.exclusive, once: true });
            // SeqCst: pairs with the fence in `wake_events`.
            fence(Ordering::SeqCst);
            let outcome = match cond() {
                Some(value) => Some(Ok(value)),
                None if mode.interruptible && scheduler.signal_pending() => {
                    Some(Err(WaitError::Interrupted))
                }
                None if mode.deadline.is_some_and(|d| scheduler.now() >= d) => {
                    Some(Err(WaitError::TimedOut))
                }
                None => None,
            };
            if let Some(outcome) = outcome {
                scheduler.cancel_sleep();
                let was_woken = !self.remove(&waker);
                if mode.exclusive && was_woken && outcome.is_err() {
                    // The wake-up was meant for one waiter that would use it: hand it on.
                    self.wake_one();
                }
                return outcome;
            }
            scheduler.sleep(mode.deadline);
            self.remove(&waker);
            if let Some(value) = cond() {
                return Ok(value);
            }
        }
    }

    /// Wakes every shared waiter and the first exclusive one.
    #[inline]
    pub fn wake_one(&self) {
        self.wake_up(0, 1);
    }

    /// Wakes every waiter.
    #[inline]
    pub fn wake_all(&self) {
        self.wake_up(0, usize::MAX);
    }

    /// Wakes every shared waiter and the first exclusive one, telling poll and epoll what became true.
    #[inline]
    pub fn wake_events(&self, events: u32) {
        self.wake_up(events, 1);
    }

    /// Adds a lasting waiter (poll, epoll): it stays until removed.
    pub fn add(&self, waker: Arc<dyn Wake>, exclusive: bool) {
        self.insert(Entry { waker, exclusive, once: false });
    }

    /// Removes a waiter; false if it was not (or no longer) in the queue.
    pub fn remove(&self, waker: &Arc<dyn Wake>) -> bool {
        let mut entries = self.entries.lock();
        let Some(at) = entries.iter().position(|e| Arc::ptr_eq(&e.waker, waker)) else {
            return false;
        };
        let removed = entries.remove(at);
        self.set_len(entries.len());
        drop(entries);
        // The last reference to a waiter may free it: not under the lock.
        drop(removed);
        true
    }

    fn insert(&self, entry: Entry) {
        let mut entries = self.entries.lock();
        entries.push(entry);
        self.set_len(entries.len());
    }

    /// Relaxed: `len` is only a hint, ordered by the fences in `wait_with` and `wake_up`.
    fn set_len(&self, len: usize) {
        self.len.store(len, Ordering::Relaxed);
    }

    #[inline]
    fn wake_up(&self, events: u32, exclusive: usize) {
        // SeqCst: pairs with the fence in `wait_with`; either the waiter sees the changed condition or
        // this sees the waiter.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        if self.len.load(Ordering::Relaxed) != 0 {
            self.wake_waiters(events, exclusive);
        }
    }

    #[cold]
    fn wake_waiters(&self, events: u32, mut exclusive: usize) {
        let mut woken: SmallVec<[Entry; 4]> = SmallVec::new();
        let mut entries = self.entries.lock();
        let mut at = 0;
        while at < entries.len() {
            let entry = &entries[at];
            if entry.exclusive {
                if exclusive == 0 {
                    at += 1;
                    continue;
                }
                exclusive -= 1;
            }
            entry.waker.wake(events);
            if entry.once {
                woken.push(entries.remove(at));
            } else {
                at += 1;
            }
        }
        self.set_len(entries.len());
        drop(entries);
        // As in `remove`: references go outside the lock.
        drop(woken);
    }
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Copy)]
struct Mode {
    interruptible: bool,
    exclusive: bool,
    deadline: Option<Deadline>,
}

impl Mode {
    const DEFAULT: Self = Self { interruptible: true, exclusive: false, deadline: None };
}
