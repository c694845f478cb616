//! timerfd: a timer whose file reads as the number of its expirations.
//!
//! Owns the timer's settings and what has expired. A periodic timer is not armed again before its expiry is
//! read or asked for, so that a short period costs nothing while nobody looks. Locks: `TimerFile`,
//! which the timer's interrupt takes; never held while somebody is woken.
#![forbid(unsafe_code)]

use crate::mm::Sink;
use crate::mm::fallible::try_arc_cyclic;
use crate::sync::{PollTable, SpinLock, WaitQueue, level};
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

/// The open file.
pub struct TimerFd {
    me: Weak<TimerFd>,
    clock: ClockId,
    state: SpinLock<State, level::TimerFile>,
    for_readers: WaitQueue,
    room: TimerRoom,
}

#[derive(Default)]
struct State {
    armed: Option<TimerId>,
    /// When it expires (or expired) on the monotonic clock, negative if that was before the machine began; none while disarmed.
    next: Option<i64>,
    interval: u64,
    /// It expired and has not been armed again since.
    expired: bool,
    /// Expirations that have not been read.
    count: u64,
}

impl State {
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
        // If it was set anew meanwhile, what is armed now is another timer.
        let now = signed(time::since_boot_ns());
        if state.expired || state.next.is_none_or(|next| next > now) {
            return;
        }
        state.armed = None;
        state.expired = true;
        state.count = state.count.saturating_add(1);
        drop(state);
        self.for_readers.wake_events(PollEvents::IN.bits());
    }
}

impl TimerFd {
    /// `timerfd_settime`; returns the old setting.
    pub fn set(&self, new: Setting, absolute: bool) -> Setting {
        let now = time::since_boot_ns();
        let next = match (new.value, absolute) {
            (0, _) => None,
            (value, false) => Some(signed(now).saturating_add(signed(value))),
            (at, true) => Some(time::when(self.clock, at, signed(now))),
        };
        let mut state = self.state.lock();
        state.catch_up(now);
        let old = state.setting(now);
        let armed = state.armed.take();
        *state = State { next, interval: new.interval, ..State::default() };
        drop(state);
        if let Some(armed) = armed {
            time::cancel(armed);
        }
        self.arm(next);
        old
    }

    /// `timerfd_gettime`.
    pub fn get(&self) -> Setting {
        let now = time::since_boot_ns();
        let mut state = self.state.lock();
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
        if let Some(old) = state.armed.take() {
            time::cancel(old);
        }
        state.armed = Some(time::arm(&self.room, Nanos(at.max(0).unsigned_abs()), me));
    }

    /// Takes the expiries, if there are any.
    fn take(&self) -> Option<u64> {
        let mut state = self.state.lock();
        if state.count == 0 {
            return None;
        }
        let caught_up = state.catch_up(time::since_boot_ns());
        let next = if caught_up { state.next } else { None };
        let count = core::mem::take(&mut state.count);
        drop(state);
        self.arm(next);
        Some(count)
    }
}

impl FileOps for TimerFd {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if dst.remaining() < 8 {
            return Err(Errno::EINVAL);
        }
        let count = match self.take() {
            Some(count) => count,
            None if f.nonblock() => return Err(Errno::EAGAIN),
            None => self.for_readers.wait_interruptible(|| self.take())?,
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
        if self.state.lock().count > 0 { PollEvents::IN } else { PollEvents::empty() }
    }

    fn release(&self, _f: &OpenFile) {
        // The queue of timers holds a reference: without this the timer would outlive its file.
        let armed = self.state.lock().armed.take();
        if let Some(armed) = armed {
            time::cancel(armed);
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities::empty()
    }
}

/// A new timer on a clock, disarmed.
pub fn new(clock: ClockId, nonblock: bool) -> Result<OpenFile> {
    let room = TimerRoom::one_of_many()?;
    let ops = try_arc_cyclic(|me| TimerFd {
        me: me.clone(),
        clock,
        state: SpinLock::new(State::default()),
        for_readers: WaitQueue::new(),
        room,
    })?;
    anonymous(ops, "[timerfd]", OpenFlags::RDWR, nonblock)
}
