//! timerfd: a timer whose file reads as the number of its expirations.
//!
//! Owns the timer's settings and what has expired. A periodic timer is not armed again before its expiry is
//! read or asked for, so that a short period costs nothing while nobody looks. Locks: `TimerFile`,
//! which the timer's interrupt takes; never held while somebody is woken.
#![forbid(unsafe_code)]

use crate::mm::Sink;
use crate::mm::fallible::{try_arc, try_arc_cyclic};
use crate::sync::wait::{Base, Moment};
use crate::sync::{Once, PollTable, Registrations, SpinLock, WaitQueue, level};
use crate::time::{self, ClockId, Nanos, TimerId, TimerRoom, TimerTarget, passed, signed};
use crate::vfs::anon::anonymous;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};

/// When a timer fires next, and how often after that; zero is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Nanoseconds from now (or on the timer's clock, where that is asked for).
    pub value: u64,
    pub interval: u64,
}

/// How a timer is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// To a time on its clock.
    pub absolute: bool,
    /// With that, `ECANCELED` tells its reader that the wall clock was set.
    pub cancel_on_set: bool,
}

/// The open file.
pub struct TimerFd {
    me: Weak<TimerFd>,
    clock: ClockId,
    state: SpinLock<State, level::TimerFile>,
    for_readers: Arc<WaitQueue>,
    /// Once asked for: has `for_readers` woken when the wall clock is set.
    told: Once<Registrations>,
    room: TimerRoom,
}

struct State {
    armed: Option<TimerId>,
    /// What `next` is counted on.
    base: Base,
    /// When it expires (or expired); none while disarmed.
    next: Option<i64>,
    interval: u64,
    /// It expired and has not been armed again since.
    expired: bool,
    /// Expirations that have not been read.
    count: u64,
    /// Whether it is cancelled when the wall clock is set, and how often that had been when it was last looked.
    cancels: bool,
    seen: u64,
    /// It was cancelled, and nobody has been told.
    cancelled: bool,
}

impl State {
    fn now(&self) -> u64 {
        time::now_on(self.base).0
    }

    /// Cancels it if the wall clock was set since this was last asked.
    fn heed_clock(&mut self) {
        if self.cancels && self.seen != time::times_set() {
            self.seen = time::times_set();
            self.cancelled = true;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Whether its being cancelled is to be told now, which is done once.
    fn tells_cancelled(&mut self) -> bool {
        self.cancels && core::mem::take(&mut self.cancelled)
    }

    fn disarmed() -> Self {
        Self {
            armed: None,
            base: Base::Monotonic,
            next: None,
            interval: 0,
            expired: false,
            count: 0,
            cancels: false,
            seen: time::times_set(),
            cancelled: false,
        }
    }

    /// Its room is free for another timer: with the state locked, so that no two have it.
    fn disarm(&mut self) {
        if let Some(armed) = self.armed.take() {
            time::cancel(armed);
        }
    }

    /// Set after `old` was: that it was cancelled is still to be told.
    fn after(self, old: &Self) -> Self {
        Self { cancelled: old.cancelled, ..self }
    }

    /// Counts the periods that went by since the expiry; true if the timer has to be armed again.
    fn catch_up(&mut self, now: u64) -> bool {
        let Some(next) = self.next.filter(|_| self.expired && self.interval != 0) else {
            return false;
        };
        self.expired = false;
        let missed = passed(next, signed(now)) / self.interval;
        self.count = self.count.saturating_add(missed);
        let periods = missed.saturating_add(1).saturating_mul(self.interval);
        self.next = Some(next.saturating_add_unsigned(periods));
        true
    }

    fn setting(&self, now: u64) -> Setting {
        // An armed timer never shows zero: that would mean disarmed.
        let value = match self.next {
            Some(next) if !self.expired => next.saturating_sub(signed(now)).max(1).unsigned_abs(),
            _ => 0,
        };
        Setting { value, interval: self.interval }
    }
}

impl TimerTarget for TimerFd {
    fn expired(self: Arc<Self>, _now: Nanos) {
        let mut state = self.state.lock();
        let now = signed(state.now());
        let Some(next) = state.next.filter(|_| !state.expired) else { return };
        if next > now {
            // It was set anew meanwhile, or the clock was set back: then nothing is armed any more.
            return self.arm_for(&mut state, next, self.clone());
        }
        state.armed = None;
        state.expired = true;
        state.count = state.count.saturating_add(1);
        drop(state);
        self.for_readers.wake_events(PollEvents::IN.bits());
    }
}

impl TimerFd {
    /// `timerfd_settime`; returns the old setting, or `ECANCELED`, set all the same.
    pub fn set(&self, new: Setting, how: How) -> Result<Setting> {
        let cancels = how.absolute && how.cancel_on_set && self.clock == ClockId::Realtime;
        if cancels {
            self.have_told()?;
        }
        let base = self.clock.base(how.absolute);
        let from = if how.absolute { 0 } else { time::now_on(base).0 };
        let next = (new.value != 0).then(|| signed(from).saturating_add(signed(new.value)));
        let mut state = self.state.lock();
        state.heed_clock();
        let now = state.now();
        state.catch_up(now);
        let old = state.setting(now);
        state.disarm();
        let fresh = State::disarmed();
        *state = State { base, next, interval: new.interval, cancels, ..fresh }.after(&state);
        let cancelled = next.is_some() && state.tells_cancelled();
        drop(state);
        self.arm(next);
        if cancelled { Err(Errno::ECANCELED) } else { Ok(old) }
    }

    /// Has its readers woken when the wall clock is set.
    fn have_told(&self) -> Result<()> {
        if self.told.get().is_none() {
            let mut table = PollTable::register(self.for_readers.clone(), false, 1);
            table.watch(time::when_set());
            if let Some(made) = table.finish()? {
                self.told.call_once(|| made);
            }
        }
        Ok(())
    }

    /// `timerfd_gettime`.
    pub fn get(&self) -> Setting {
        let mut state = self.state.lock();
        let now = state.now();
        let next = if state.catch_up(now) { state.next } else { None };
        let setting = state.setting(now);
        drop(state);
        self.arm(next);
        setting
    }

    /// Arms it for this time, if there is one.
    fn arm(&self, next: Option<i64>) {
        let Some(at) = next else { return };
        let Some(me) = self.me.upgrade() else { return }; // the file is being released
        let mut state = self.state.lock();
        // If two threads set it at once, the timer of the last one is armed, and no other.
        if state.next != Some(at) || state.expired {
            return;
        }
        self.arm_for(&mut state, at, me);
    }

    fn arm_for(&self, state: &mut State, at: i64, me: Arc<Self>) {
        state.disarm();
        let until = Moment { base: state.base, at: at.max(0).unsigned_abs() };
        state.armed = Some(time::arm_on(&self.room, until, me));
    }

    /// Takes the expiries, if there are any; `ECANCELED` once after the clock was set.
    fn take(&self) -> Option<Result<u64>> {
        let mut state = self.state.lock();
        state.heed_clock();
        if state.tells_cancelled() {
            (state.count, state.expired) = (0, false);
            return Some(Err(Errno::ECANCELED));
        }
        if state.count == 0 {
            return None;
        }
        let now = state.now();
        let caught_up = state.catch_up(now);
        let next = if caught_up { state.next } else { None };
        let count = core::mem::take(&mut state.count);
        drop(state);
        self.arm(next);
        Some(Ok(count))
    }
}

impl FileOps for TimerFd {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        let count = match self.take() {
            Some(count) => count?,
            None if f.nonblock() => return Err(Errno::EAGAIN),
            None => self.for_readers.wait_interruptible(|| self.take())??,
        };
        match dst.put(&count.to_ne_bytes())? {
            8 => Ok(8),
            _ => Err(Errno::EFAULT),
        }
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn lseek_nowhere(&self) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_readers);
        let mut state = self.state.lock();
        state.heed_clock();
        if state.count > 0 { PollEvents::IN } else { PollEvents::empty() }
    }

    fn release(&self, _f: &OpenFile) {
        // The queue of timers holds a reference: without this the timer would outlive its file.
        let mut state = self.state.lock();
        state.next = None;
        state.disarm();
    }

    fn abilities(&self) -> Abilities {
        Abilities::empty()
    }
}

/// A new timer on a clock, disarmed.
pub fn new(clock: ClockId, nonblock: bool) -> Result<OpenFile> {
    let room = TimerRoom::one_of_many()?;
    let for_readers = try_arc(WaitQueue::new())?;
    let ops = try_arc_cyclic(|me| TimerFd {
        me: me.clone(),
        clock,
        state: SpinLock::new(State::disarmed()),
        for_readers: for_readers.clone(),
        told: Once::new(),
        room,
    })?;
    anonymous(ops, "[timerfd]", OpenFlags::RDWR, nonblock)
}
