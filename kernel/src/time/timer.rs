//! Timers: one queue per CPU, fired from the local APIC timer's interrupt.
//!
//! Owns the queues and the decision what the hardware timer is armed for. Locks: each queue is a
//! spinlock of level Timer; it is never held while a target runs or is dropped.
//!
//! Arming needs no memory and cannot fail: who will arm a timer holds a [`TimerRoom`] for it, made when that could
//! still fail, and every queue has place for as many timers as there are rooms. Never: one room is not used for two
//! timers at once.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::clock::{monotonic, monotonic_of};
use super::look;
use super::nanos::Nanos;
use super::scale;
use crate::arch::entry::trap;
use crate::arch::irq::{self, apic};
use crate::arch::smp;
use crate::base::percpu::{MAX_CPUS, cpu_id, cpus_online};
use crate::base::{cpu, tsc};
use crate::sync::wait::{Base, Moment};
use crate::sync::{SpinLock, WaitQueue, cond_resched, level};
use crate::trace::{self, Event, Point};
use abi::{Errno, Result};

/// What a timer does. Called in interrupt context with interrupts off: short, and never blocking.
pub trait TimerTarget: Send + Sync {
    /// The deadline has passed. The timer is gone; arm a new one to go on.
    fn expired(self: Arc<Self>, now: Nanos);

    /// True for a target that takes locks which interrupts must not: a thread calls it instead, soon.
    fn needs_thread(&self) -> bool {
        false
    }

    /// True for what the kernel does again and again for itself: no timer of a program, and in [`armed`] nothing.
    fn is_kernels_own(&self) -> bool {
        false
    }
}

/// An armed timer, to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    cpu: u32,
    key: Key,
}

/// Deadline, then the order of arming.
type Key = (Nanos, u64);

struct Timer {
    key: Key,
    /// What the deadline was made of, and is again when that clock is set.
    until: Moment,
    target: Arc<dyn TimerTarget>,
}

/// Timers, the next one first.
type Timers = VecDeque<Timer>;

struct Queue {
    /// Those that the interrupt fires itself.
    entries: Timers,
    /// Those that need the thread.
    for_thread: Timers,
    /// How many of both are the kernel's own.
    kernels_own: usize,
    /// The thread has been told of those in `for_thread` whose deadline is no later.
    told: Nanos,
    next_sequence: u64,
    /// Timers armed before this one may have other deadlines by now than their ids say: a clock was set.
    moved: u64,
    /// When the running task's slice ends, if anyone waits for its CPU.
    slice_end: Option<Nanos>,
    /// When the running task is looked at next; `None` while the CPU idles.
    sample: Option<Nanos>,
    /// No later than the first of all these: before it an interrupt has nothing to do but to look.
    due: Nanos,
    /// What the hardware is armed for.
    armed: Option<Nanos>,
    /// The timer whose target is being called, and referred to, by the interrupt, which arms the hardware when it is done.
    firing: Option<Key>,
}

/// How often a running task is looked at, for its user and system time: Linux's usual tick.
pub const SAMPLE_NS: u64 = 4_000_000;

crate::per_cpu! {
    /// Whether `Queue::sample` is set. Relaxed: this CPU's own.
    static SAMPLING: AtomicBool = AtomicBool::new(false);
}

static QUEUES: [SpinLock<Queue, level::Timer>; MAX_CPUS] = [const {
    SpinLock::new(Queue {
        entries: VecDeque::new(),
        for_thread: VecDeque::new(),
        kernels_own: 0,
        told: Nanos(0),
        next_sequence: 0,
        moved: 0,
        slice_end: None,
        sample: None,
        due: Nanos(0),
        armed: None,
        firing: None,
    })
}; MAX_CPUS];

/// Interrupts taken by the timers, for /proc.
static FIRED: AtomicU64 = AtomicU64::new(0);

/// Rooms there are, what each queue has place for, and how many queues are in use. Relaxed, the first: who made a room has
/// counted it before it looks at the second. Acquire and Release, the others: what they promise is there.
static ROOMS: AtomicUsize = AtomicUsize::new(0);
static PLACES: AtomicUsize = AtomicUsize::new(0);
static READY: AtomicUsize = AtomicUsize::new(0);

/// The fewest places of a queue.
const FEWEST: usize = 64;
/// So many places what a user has many of leaves to the rest.
const LEFT_FOR_TASKS: usize = 256;

/// A place for one armed timer, whatever CPU arms it.
pub struct TimerRoom(());

impl TimerRoom {
    /// Makes one, of which each task or process has a few; `ENOMEM`.
    pub fn new() -> Result<Self> {
        Self::leaving(0)
    }

    /// Makes one of those that a user may have as many of as he likes; `ENOMEM`. It leaves places for [`new`](Self::new): where
    /// larger queues are not to be had, there can be tasks all the same.
    pub fn one_of_many() -> Result<Self> {
        Self::leaving(LEFT_FOR_TASKS)
    }

    fn leaving(left: usize) -> Result<Self> {
        let rooms = ROOMS.fetch_add(1, Ordering::Relaxed) + 1;
        let room = Self(());
        if rooms + left > PLACES.load(Ordering::Acquire) {
            make_places((rooms + left).next_power_of_two().max(FEWEST))?;
        }
        Ok(room)
    }
}

impl Drop for TimerRoom {
    fn drop(&mut self) {
        ROOMS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cold]
fn make_places(places: usize) -> Result<()> {
    for cpu in 0..READY.load(Ordering::Acquire).max(1) {
        make_places_on(cpu, places)?;
    }
    PLACES.fetch_max(places, Ordering::Release);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "there is room for more than there are")]
fn make_places_on(cpu: usize, places: usize) -> Result<()> {
    for for_thread in [false, true] {
        let mut fresh = VecDeque::new();
        fresh.try_reserve(places).map_err(|_| Errno::ENOMEM)?;
        let mut queue = QUEUES[cpu].lock();
        let timers = if for_thread { &mut queue.for_thread } else { &mut queue.entries };
        if timers.capacity() < places {
            fresh.append(timers);
            core::mem::swap(timers, &mut fresh);
        }
        drop(queue);
        drop(fresh);
    }
    Ok(())
}

/// Calls `see` with the bytes of each queue's places, which never get fewer.
pub fn for_each_room(mut see: impl FnMut(usize)) {
    for queue in &QUEUES {
        let places = {
            let queue = queue.lock();
            [queue.entries.capacity(), queue.for_thread.capacity()]
        };
        places.into_iter().for_each(|places| see(places * size_of::<Timer>()));
    }
}

/// Readies the queue of a CPU, before it runs: they come one by one, while nobody else makes rooms.
pub fn prepare_cpu(cpu: usize) -> Result<()> {
    make_places_on(cpu, PLACES.load(Ordering::Acquire).max(FEWEST))?;
    PLACES.fetch_max(FEWEST, Ordering::Release);
    READY.fetch_max(cpu + 1, Ordering::Release);
    Ok(())
}

/// Arms a timer on this CPU; the one that was armed for `room` before has fired or was cancelled.
pub fn arm(room: &TimerRoom, deadline: Nanos, target: Arc<dyn TimerTarget>) -> TimerId {
    arm_on(room, Moment::monotonic(deadline.0), target)
}

/// As [`arm`], for a time of any clock, wherever that is set meanwhile.
#[expect(clippy::disallowed_methods, reason = "there is a place for each room")]
pub fn arm_on(_room: &TimerRoom, until: Moment, target: Arc<dyn TimerTarget>) -> TimerId {
    let cpu = cpu_id();
    let (needs_thread, kernels_own) = (target.needs_thread(), target.is_kernels_own());
    let mut queue = QUEUES[cpu].lock();
    queue.kernels_own += usize::from(kernels_own);
    // With the queue locked: a clock that is set from now on moves this timer too.
    let deadline = deadline_of(until);
    let key = (deadline, queue.next_sequence);
    queue.next_sequence += 1;
    let timers = match needs_thread {
        true => &mut queue.for_thread,
        false => &mut queue.entries,
    };
    debug_assert!(timers.len() < timers.capacity(), "more timers than rooms");
    let at = timers.partition_point(|timer| timer.key < key);
    timers.insert(at, Timer { key, until, target });
    if needs_thread && deadline <= queue.told {
        // It is late already: the interrupt, which comes at once, tells the thread.
        queue.told = Nanos(deadline.0.saturating_sub(1));
    }
    if queue.firing.is_none() {
        queue.program();
    }
    TimerId { cpu: cpu as u32, key }
}

/// There is always a time before it, until which the thread was told.
fn deadline_of(until: Moment) -> Nanos {
    monotonic_of(until).max(Nanos(1))
}

/// A clock has been set: gives the timers that go by it their new deadlines, and has each CPU look at its own.
pub(super) fn clock_was_set() {
    for queue in &QUEUES[..READY.load(Ordering::Acquire)] {
        queue.lock().move_all();
    }
    let this = cpu_id();
    for cpu in (0..cpus_online()).filter(|cpu| *cpu != this) {
        smp::send(cpu, irq::TIMER_VECTOR);
    }
    QUEUES[this].lock().program();
}

/// Disarms a timer: true when it had not fired. A target that is already being called on another
/// CPU, or by the thread, is not waited for.
pub fn cancel(id: TimerId) -> bool {
    // The hardware is left as it is: an early interrupt is cheaper than reprogramming each time.
    let timer = QUEUES[id.cpu as usize].lock().take(id.key);
    timer.is_some()
}

/// As [`cancel`], and waits until another CPU that is calling the target has dropped its reference: for a target
/// whose last reference must not be dropped in an interrupt.
pub fn cancel_and_wait(id: TimerId) {
    if cancel(id) {
        return;
    }
    while QUEUES[id.cpu as usize].lock().firing.is_some_and(|key| key.1 == id.key.1) {
        cpu::relax();
    }
}

/// How many timers are armed, and how many targets wait for the thread, but for the kernel's own: of these one is armed
/// nearly always, and not while it acts.
pub fn armed() -> usize {
    let of = |queue: &Queue| queue.entries.len() + queue.for_thread.len() - queue.kernels_own;
    QUEUES.iter().map(|queue| of(&queue.lock())).sum()
}

/// Sets when the running task must give way, for somebody waits.
pub fn set_slice_end(end: Nanos) {
    let cpu = cpu_id();
    let mut queue = QUEUES[cpu].lock();
    queue.slice_end = Some(end);
    queue.due = queue.due.min(end);
    // Relaxed: see `slice_ends_by`.
    SLICE_ENDS[cpu].store(end.0, Ordering::Relaxed);
    if queue.armed.is_none_or(|armed| end < armed) {
        queue.program();
    }
}

/// Whether a slice is being timed on a CPU that ends then or before: at its end the CPU looks who waits. The end may be an
/// earlier task's, and come too soon for the running one.
#[inline]
pub fn slice_ends_by(cpu: usize, when: u64) -> bool {
    // Relaxed: it becomes `NEVER` before the CPU locks its run queue to look who waits, and the caller has queued
    // somebody there under that lock before it asks.
    SLICE_ENDS[cpu].load(Ordering::Relaxed) <= when
}

/// No slice is being timed.
const NEVER: u64 = Nanos::NEVER.0;

/// What `Queue::slice_end` is.
static SLICE_ENDS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(NEVER) }; MAX_CPUS];

/// A task begins to run after none did: from now on the running task is looked at every [`SAMPLE_NS`].
/// Interrupts are off.
#[inline]
pub fn start_samples() {
    if !SAMPLING.with(|sampling| sampling.swap(true, Ordering::Relaxed)) {
        begin_samples();
    }
}

#[cold]
fn begin_samples() {
    let mut queue = QUEUES[cpu_id()].lock();
    queue.sample = Some(Nanos(monotonic().0.saturating_add(SAMPLE_NS)));
    queue.program();
}

/// This CPU looks at the running task from now on, first at that time, unless it does already. Interrupts are off.
pub fn begin_looks(first: Nanos) {
    if look::begin(first) {
        QUEUES[cpu_id()].lock().arm();
    }
}

static FOR_THREAD: WaitQueue = WaitQueue::new();

/// The body of the thread that runs what needs one; boot starts it. It also drops the targets, which may hold the
/// last references to whole processes.
pub fn run_deferred() {
    loop {
        let target = FOR_THREAD.wait(next_due);
        target.expired(monotonic());
        cond_resched();
    }
}

/// The next target that the thread has been told of.
fn next_due() -> Option<Arc<dyn TimerTarget>> {
    QUEUES[..READY.load(Ordering::Acquire)].iter().find_map(|queue| {
        let mut queue = queue.lock();
        let told = queue.told;
        let due = queue.for_thread.pop_front_if(|timer| timer.key.0 <= told)?;
        Some(queue.left(due).target)
    })
}

/// Connects the interrupt.
pub(super) fn init() {
    irq::set_timer(interrupt);
}

impl Queue {
    fn take(&mut self, key: Key) -> Option<Timer> {
        let moved = self.moved;
        let take = |timers: &mut Timers| {
            let at = match timers.binary_search_by_key(&key, |timer| timer.key) {
                Ok(at) => at,
                Err(_) if key.1 >= moved => return None,
                Err(_) => timers.iter().position(|timer| timer.key.1 == key.1)?,
            };
            timers.remove(at)
        };
        let timer = take(&mut self.entries).or_else(|| take(&mut self.for_thread))?;
        Some(self.left(timer))
    }

    /// Notes that a timer is in no list any more.
    fn left(&mut self, timer: Timer) -> Timer {
        self.kernels_own -= usize::from(timer.target.is_kernels_own());
        timer
    }

    /// Gives the timers of clocks that can be set the deadlines that they have now.
    fn move_all(&mut self) {
        self.moved = self.next_sequence;
        self.due = Nanos(0);
        for timers in [&mut self.entries, &mut self.for_thread] {
            for timer in timers.iter_mut().filter(|timer| timer.until.base != Base::Monotonic) {
                timer.key.0 = deadline_of(timer.until);
            }
            timers.make_contiguous().sort_unstable_by_key(|timer| timer.key);
        }
        if let Some(first) = self.for_thread.front() {
            // Who is late by the new time has the interrupt tell the thread, once more perhaps.
            self.told = self.told.min(Nanos(first.key.0.0 - 1));
        }
    }

    fn nearest_timer(&self) -> Option<Nanos> {
        self.entries.front().map(|timer| timer.key.0)
    }

    /// The nearest deadline that the thread has not been told of.
    fn nearest_for_thread(&self) -> Option<Nanos> {
        self.for_thread.iter().map(|timer| timer.key.0).find(|deadline| *deadline > self.told)
    }

    /// The first of all but looks.
    fn first_due(&self) -> Nanos {
        let at = |deadline: Option<Nanos>| deadline.unwrap_or(Nanos(NEVER));
        let of_timers = at(self.nearest_timer()).min(at(self.nearest_for_thread()));
        let of_task = at(self.slice_end).min(at(self.sample));
        of_timers.min(of_task)
    }

    /// Notes what is due first, and arms the hardware for it.
    fn program(&mut self) {
        self.due = self.first_due();
        self.arm();
    }

    /// Arms the hardware for the nearest deadline, unless it is armed for that or earlier; a second ahead at most, for the clock's
    /// speed may change.
    #[inline]
    fn arm(&mut self) {
        let nearest = self.due.min(look::at());
        if nearest.0 == NEVER {
            return;
        }
        if self.armed.is_none_or(|armed| nearest < armed) {
            self.armed = Some(nearest);
            // It is armed again when it comes too early for a timer.
            apic::timer_arm(
                scale::to_tsc(nearest).min(tsc::read().saturating_add(scale::tsc_hz())),
            );
        }
    }
}

fn interrupt(from_user: bool) {
    // Relaxed: a statistic.
    FIRED.fetch_add(1, Ordering::Relaxed);
    let queue = &QUEUES[cpu_id()];
    let now = monotonic();
    look::look(now);
    let mut held = queue.lock();
    if held.due > now {
        debug_assert!(held.due <= held.first_due(), "something is due before `due`");
        held.armed = None;
        held.arm();
        return;
    }
    drop(held);
    fire(queue, now, from_user);
}

/// Does what is due.
fn fire(queue: &SpinLock<Queue, level::Timer>, now: Nanos, from_user: bool) {
    let mut held = loop {
        let mut held = queue.lock();
        held.firing = None;
        if held.nearest_timer().is_none_or(|deadline| deadline > now) {
            break held;
        }
        let due = held.entries.pop_front().map(|timer| held.left(timer));
        held.firing = due.as_ref().map(|timer| timer.key);
        drop(held);
        if let Some(timer) = due {
            timer.target.expired(now);
        }
    };
    let for_thread = held.nearest_for_thread().is_some_and(|deadline| deadline <= now);
    if for_thread {
        held.told = now;
    }
    held.armed = None;
    let mut looked = false;
    if held.sample.is_some_and(|at| at <= now) {
        let goes_on = trap::sample_hook(from_user);
        looked = true;
        held.sample = goes_on.then(|| Nanos(now.0.saturating_add(SAMPLE_NS)));
        SAMPLING.with(|sampling| sampling.store(goes_on, Ordering::Relaxed));
    }
    let slice_over = held.slice_end.is_some_and(|end| end <= now);
    if slice_over {
        held.slice_end = None;
        // Relaxed: see `slice_ends_by`.
        SLICE_ENDS[cpu_id()].store(NEVER, Ordering::Relaxed);
    }
    held.program();
    drop(held);
    if looked {
        trace::at(Point::Tick, || Event::Tick);
    }
    if for_thread {
        FOR_THREAD.wake_all();
    }
    if slice_over {
        trap::timer_hook();
    }
}
