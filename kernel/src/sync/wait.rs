//! [`WaitQueue`]: threads, polls and epolls that wait for something to change.
//!
//! Owns the slot for the scheduler, which lives on a higher floor and registers at boot. The queues themselves, and why
//! no wake-up is lost, are the crate `kernel/waitlist`; here a thread goes to sleep in one. Waking never blocks and may
//! happen in an interrupt handler; waiting never fails for want of memory, since a sleeper waits with a node on its own stack.
//!
//! Locks: each queue's are of the level `WaitQueue`, held while waiters are woken.

use super::counted::{Counted, Kind};
use super::spin::SpinLock;
use super::{Once, level};
use abi::Errno;
use alea_waitlist::{Exclusion, List, Queue};
use alloc::sync::Arc;
use core::sync::atomic::{Ordering, fence};

pub use alea_waitlist::Wake;

/// Beside the poll bits of a wake-up: a completion of a ring is behind it (`EPOLL_URING_WAKE`), so that a request of a ring which is
/// woken by it and comes again would feed itself.
pub const BY_RING: u32 = 1 << 27;

/// Monotonic nanoseconds since boot, as `time` counts them.
pub type Deadline = u64;

/// What a time to wait for is counted on. But for the first, a clock that may be set meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Monotonic,
    Wall,
    /// International Atomic Time.
    Atomic,
}

/// A time to wait for, in nanoseconds: of a clock that is set meanwhile, when that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub base: Base,
    pub at: u64,
}

impl Moment {
    /// A time of the monotonic clock.
    pub const fn monotonic(at: Deadline) -> Self {
        Self { base: Base::Monotonic, at }
    }
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

/// What ends a sleep before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Any signal.
    Interruptible,
    /// A fatal signal only.
    Killable,
    /// Nothing.
    Uninterruptible,
}

/// What the process floor provides to the sleeping locks.
pub trait Scheduler: Sync {
    /// The running task as something to wake.
    fn current_waker(&self) -> Arc<dyn Wake>;
    /// Marks the running task as going to sleep; a wake from now on cancels the sleep.
    fn prepare_to_sleep(&self, how: Sleep);
    /// Takes the mark back.
    fn cancel_sleep(&self);
    /// Runs other tasks until woken or until `deadline`.
    fn sleep(&self, deadline: Option<Moment>);
    /// Whether a signal waits for the running task that ends such a sleep.
    fn signal_pending(&self, how: Sleep) -> bool;
    /// Nanoseconds now.
    fn now(&self, base: Base) -> u64;
}

static SCHEDULER: Once<&'static dyn Scheduler> = Once::new();

/// Fills the slot; called once by the process floor before any thread can wait.
pub fn register_scheduler(scheduler: &'static dyn Scheduler) {
    SCHEDULER.call_once(|| scheduler);
}

fn scheduler() -> &'static dyn Scheduler {
    *SCHEDULER.get().expect("a thread waits before the scheduler runs")
}

/// Waits until `cond` gives a value, a signal arrives, or the deadline passes, in no queue: who makes the condition
/// true holds a waker of the task (a [`PollTable`] registers it), and wakes that after a full fence.
pub fn wait_alone<R>(
    deadline: Option<Moment>,
    mut cond: impl FnMut() -> Option<R>,
) -> Result<R, WaitError> {
    super::spin::assert_may_block();
    let scheduler = scheduler();
    let mode = Mode { deadline, ..Mode::DEFAULT };
    loop {
        scheduler.prepare_to_sleep(mode.sleep);
        // SeqCst: pairs with the waker's: it sees that the task sleeps, or the task sees the condition.
        fence(Ordering::SeqCst);
        if let Some(outcome) = mode.look(scheduler, &mut cond) {
            scheduler.cancel_sleep();
            return outcome;
        }
        scheduler.sleep(deadline);
        if let Some(value) = cond() {
            return Ok(value);
        }
    }
}

type Lock = SpinLock<List, level::WaitQueue>;

// SAFETY: a spinlock around one list, which it lends to one holder at a time.
unsafe impl Exclusion for Lock {
    fn new(list: List) -> Self {
        SpinLock::new(list)
    }
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut List) -> R) -> R {
        f(&mut self.lock())
    }
}

/// The waiters for one condition, first come first served.
pub struct WaitQueue(Queue<Lock>);

impl WaitQueue {
    /// A queue with nobody in it.
    pub const fn new() -> Self {
        Self(Queue::new(SpinLock::new(List::new())))
    }

    /// Waits until `cond` gives a value. Signals do not end the wait.
    #[inline]
    pub fn wait<R>(&self, mut cond: impl FnMut() -> Option<R>) -> R {
        match self.wait_with(Mode { sleep: Sleep::Uninterruptible, ..Mode::DEFAULT }, &mut cond) {
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

    /// The same where it is likely that the caller has to sleep: `cond` is asked once less then.
    pub fn sleep_interruptible<R>(
        &self,
        mut cond: impl FnMut() -> Option<R>,
    ) -> Result<R, Interrupted> {
        self.wait_with(Mode { expects_to_sleep: true, ..Mode::DEFAULT }, &mut cond)
            .map_err(|_| Interrupted)
    }

    /// Waits until `cond` gives a value or a fatal signal arrives.
    pub fn wait_killable<R>(&self, mut cond: impl FnMut() -> Option<R>) -> Result<R, Interrupted> {
        self.wait_with(Mode { sleep: Sleep::Killable, ..Mode::DEFAULT }, &mut cond)
            .map_err(|_| Interrupted)
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
        cond: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        self.wait_until(deadline.map(Moment::monotonic), cond)
    }

    /// As [`wait_deadline`](Self::wait_deadline), with a time of any clock.
    #[inline]
    pub fn wait_until<R>(
        &self,
        deadline: Option<Moment>,
        mut cond: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        self.wait_with(Mode { deadline, ..Mode::DEFAULT }, &mut cond)
    }

    fn wait_with<R>(
        &self,
        mode: Mode,
        cond: &mut dyn FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        if !mode.expects_to_sleep
            && let Some(value) = cond()
        {
            return Ok(value);
        }
        super::spin::assert_may_block();
        let scheduler = scheduler();
        let waker = scheduler.current_waker();
        self.0.sleeper(&*waker, mode.exclusive, |place| {
            loop {
                scheduler.prepare_to_sleep(mode.sleep);
                place.enter();
                if let Some(outcome) = mode.look(scheduler, cond) {
                    scheduler.cancel_sleep();
                    let was_woken = !place.leave();
                    if mode.exclusive && was_woken && outcome.is_err() {
                        // The wake-up was meant for one waiter that would use it: hand it on.
                        self.wake_one();
                    }
                    return outcome;
                }
                scheduler.sleep(mode.deadline);
                place.leave();
                if let Some(value) = cond() {
                    return Ok(value);
                }
            }
        })
    }

    /// Wakes every shared waiter and the first exclusive one.
    #[inline]
    pub fn wake_one(&self) {
        self.0.wake(0, 1);
    }

    /// Wakes every waiter.
    #[inline]
    pub fn wake_all(&self) {
        self.0.wake(0, usize::MAX);
    }

    /// Wakes every waiter. Whether a thread that sleeps in this queue was woken.
    #[inline]
    pub fn wakes_any(&self) -> bool {
        self.0.wake(0, usize::MAX)
    }

    /// Wakes every shared waiter and the first exclusive one, telling poll and epoll what became true. Whether a thread
    /// that sleeps in this queue was woken.
    #[inline]
    pub fn wake_events(&self, events: u32) -> bool {
        self.0.wake(events, 1)
    }

    /// Wakes the threads that sleep in this queue, and nobody who polls it.
    #[inline]
    pub fn wake_sleepers(&self) {
        self.0.wake_sleepers(0, usize::MAX);
    }
}

/// A queue that is registered with another is woken by it, and wakes its own waiters. Two queues must not wake each
/// other in turn.
impl Wake for WaitQueue {
    fn wake(&self, events: u32) -> bool {
        self.wake_events(events)
    }
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Copy)]
struct Mode {
    sleep: Sleep,
    exclusive: bool,
    deadline: Option<Moment>,
    /// The waiter enters the queue before the first look.
    expects_to_sleep: bool,
}

impl Mode {
    const DEFAULT: Self = Self {
        sleep: Sleep::Interruptible,
        exclusive: false,
        deadline: None,
        expects_to_sleep: false,
    };

    /// The last look before a sleep: why there is to be none.
    #[inline]
    fn look<R>(
        &self,
        scheduler: &dyn Scheduler,
        cond: &mut dyn FnMut() -> Option<R>,
    ) -> Option<Result<R, WaitError>> {
        match cond() {
            Some(value) => Some(Ok(value)),
            None if scheduler.signal_pending(self.sleep) => Some(Err(WaitError::Interrupted)),
            None if self.deadline.is_some_and(|until| scheduler.now(until.base) >= until.at) => {
                Some(Err(WaitError::TimedOut))
            }
            None => None,
        }
    }
}

/// What a poll left in the queues of the files it looked at: each registration leaves its queue when this is dropped.
pub struct Registrations {
    _counted: Counted,
    _made: alea_waitlist::Registrations<Lock>,
}

/// Collects the queues that may change the answer of a file's `poll`.
pub struct PollTable(Option<alea_waitlist::Registering<Lock>>);

impl PollTable {
    /// A table of a poll that only looks: nothing is registered.
    pub const fn look() -> Self {
        Self(None)
    }

    /// A table that registers `waker`; some `room` queues are expected. Of `exclusive` ones a wake-up reaches only one
    /// that uses it.
    pub fn register(waker: Arc<dyn Wake>, exclusive: bool, room: usize) -> Self {
        Self(Some(alea_waitlist::Registering::new(waker, exclusive, room)))
    }

    /// A table that registers the running task; it then waits with [`wait_alone`].
    pub fn register_current(room: usize) -> Self {
        Self::register(scheduler().current_waker(), false, room)
    }

    /// A change that this queue is woken for may change the answer. To be called before the state is looked at.
    #[inline]
    pub fn watch(&mut self, queue: &WaitQueue) {
        if let Some(registering) = &mut self.0 {
            registering.watch(&queue.0);
        }
    }

    /// The registrations; ENOMEM if there was no memory for one of them.
    pub fn finish(self) -> Result<Option<Registrations>, Errno> {
        let Some(registering) = self.0 else { return Ok(None) };
        let made = registering.finish().ok_or(Errno::ENOMEM)?;
        Ok(Some(Registrations { _counted: Counted::new(Kind::Registrations), _made: made }))
    }
}
