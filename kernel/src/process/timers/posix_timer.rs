//! POSIX timers (`timer_create` and its kin).
//!
//! A timer's signal is queued once; a periodic timer is armed again when that signal is taken, and what expired in
//! between is its overrun, as on Linux. Owns the timers of a process. Locks: [`crate::sync::level::Itimer`], which
//! interrupt handlers take; never held while a signal is sent, and clocks of CPU time are read before it is taken;
//! `Leaf` for the table.

use super::cpu_clock::CpuClock;
use crate::mm::fallible::{TryMap, try_arc};
use crate::process::signal::{self, Counted};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::sync::counted::{self, Kind};
use crate::sync::wait::{Base, Moment};
use crate::sync::{SpinGuard, SpinLock, level};
use crate::time::{self, ClockId, Nanos, TimerId, TimerRoom, TimerTarget, passed, signed};
use abi::signal::{SigInfo, Signal};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

/// Who is notified of an expiry.
#[derive(Clone)]
pub enum Notify {
    Nobody,
    Process(Signal),
    Thread(Signal, Weak<Task>),
}

/// What a timer counts.
#[derive(Clone)]
pub enum TimerClock {
    Machine(ClockId),
    Cpu(CpuClock),
}

impl TimerClock {
    /// What times of a setting are counted on; CPU time on nothing that there is for all.
    fn base(&self, absolute: bool) -> Base {
        match self {
            Self::Machine(clock) => clock.base(absolute),
            Self::Cpu(_) => Base::Monotonic,
        }
    }

    /// What [`State::at`] is compared with: none when the time can never come.
    fn now(&self, base: Base) -> Option<i64> {
        match self {
            Self::Machine(_) => Some(signed(time::now_on(base).0)),
            Self::Cpu(clock) => clock.now().map(signed),
        }
    }

    /// When to look whether it is `at`.
    fn next_look(&self, base: Base, at: i64, now: i64) -> Moment {
        match self {
            Self::Machine(_) => Moment { base, at: at.max(0).unsigned_abs() },
            Self::Cpu(clock) => Moment::monotonic(clock.next_look(passed(now, at)).0),
        }
    }
}

/// How often a timer at most sends a signal that is ignored, as on Linux: nobody slows such a timer down by taking it.
const IGNORED_PERIOD_NS: u64 = 4_000_000;

/// A timer as user space knows it.
pub struct PosixTimer {
    _counted: counted::Counted,
    id: i32,
    clock: TimerClock,
    notify: Notify,
    /// `sigev_value`; `None` means the timer's id.
    value: u64,
    process: Weak<Process>,
    /// Counts the timer for RLIMIT_SIGPENDING, and after it what of it is still queued.
    counted: Arc<Counted>,
    state: SpinLock<State, level::Itimer>,
    room: TimerRoom,
}

#[derive(Clone, Copy)]
struct State {
    /// What `at` is counted on.
    base: Base,
    /// Next expiry, as the clock's `now` counts; none while disarmed.
    at: Option<i64>,
    interval: u64,
    /// The kernel timer, while one is armed.
    armed: Option<TimerId>,
    /// Counts settings, so that a signal of an older setting does not arm the timer again.
    setting: u32,
    /// What `timer_getoverrun` says.
    overrun: i32,
    /// It was deleted: who found it before that arms it no more.
    deleted: bool,
}

impl State {
    /// Disarmed.
    const fn new(setting: u32) -> Self {
        let base = Base::Monotonic;
        Self { base, at: None, interval: 0, armed: None, setting, overrun: 0, deleted: false }
    }
}

/// The timers of a process, by id.
pub struct PosixTimers {
    table: SpinLock<Table, level::Leaf>,
}

struct Table {
    timers: BTreeMap<i32, Arc<PosixTimer>>,
    /// The number of the next one, if nobody has it: as on Linux, one that was given is not given again soon.
    next: i32,
}

impl Table {
    /// A number that no timer has.
    fn give_number(&mut self) -> i32 {
        // At most as often as there are timers, which are fewer than numbers.
        loop {
            let id = self.next;
            self.next = if id == i32::MAX { 0 } else { id + 1 };
            if !self.timers.contains_key(&id) {
                return id;
            }
        }
    }
}

impl PosixTimers {
    /// No timers: a child inherits none.
    pub const fn new() -> Self {
        Self { table: SpinLock::new(Table { timers: BTreeMap::new(), next: 0 }) }
    }

    /// The timer with this id.
    pub fn get(&self, id: i32) -> Result<Arc<PosixTimer>> {
        self.table.lock().timers.get(&id).cloned().ok_or(Errno::EINVAL)
    }

    /// Makes a timer, disarmed, under the next free id. Without `value` its signals carry the id.
    ///
    /// # Errors
    /// `EAGAIN` when the user has as many signals and timers as RLIMIT_SIGPENDING allows, or no memory to count.
    pub fn create(
        &self,
        process: &Arc<Process>,
        clock: TimerClock,
        notify: Notify,
        value: Option<u64>,
    ) -> Result<i32> {
        let most = process.limits().signals_pending();
        let counted = Counted::try_new(process.uid(), most).ok_or(Errno::EAGAIN)?;
        let counted = try_arc(counted)?;
        let room = TimerRoom::one_of_many()?;
        let mut table = self.table.lock();
        let id = table.give_number();
        let timer = try_arc(PosixTimer {
            _counted: counted::Counted::new(Kind::PosixTimer),
            id,
            clock,
            notify,
            value: value.unwrap_or(id as u64),
            process: Arc::downgrade(process),
            counted,
            state: SpinLock::new(State::new(0)),
            room,
        })?;
        table.timers.try_put(id, timer)?;
        Ok(id)
    }

    /// Removes a timer.
    pub fn delete(&self, id: i32) -> Result<()> {
        let timer = self.table.lock().timers.remove(&id).ok_or(Errno::EINVAL)?;
        timer.end();
        Ok(())
    }

    /// Removes them all: exec and exit.
    pub fn delete_all(&self) {
        let timers = core::mem::take(&mut self.table.lock().timers);
        for timer in timers.into_values() {
            timer.end();
        }
    }
}

impl PosixTimer {
    /// What is left until the next expiry (0 if disarmed) and the interval, in nanoseconds. Of a clock that has gone there is
    /// neither.
    pub fn get(&self) -> (u64, u64) {
        let Some((state, now)) = self.look() else { return (0, 0) };
        (self.left(&state, now), state.interval)
    }

    /// The state, locked, and the time that it is to be compared with.
    fn look(&self) -> Option<(SpinGuard<'_, State, level::Itimer>, i64)> {
        if let TimerClock::Cpu(_) = self.clock {
            let now = self.clock.now(Base::Monotonic)?;
            return Some((self.state.lock(), now));
        }
        let state = self.state.lock();
        let now = self.clock.now(state.base)?;
        Some((state, now))
    }

    fn left(&self, state: &State, now: i64) -> u64 {
        let Some(at) = state.at else { return 0 };
        if now < at {
            return passed(now, at);
        }
        match state.interval {
            // Expired, its signal not taken. One that sends none has just run out.
            0 => u64::from(!matches!(self.notify, Notify::Nobody)),
            // The next expiry counts.
            interval => interval - passed(at, now) % interval,
        }
    }

    /// Expirations beyond the one that was last delivered.
    pub fn overrun(&self) -> i32 {
        self.state.lock().overrun
    }

    /// Arms the timer, or disarms it if `value` is 0; `absolute` means a time on its clock. Returns what
    /// [`get`](Self::get) would have.
    ///
    /// # Errors
    /// `ESRCH` if whose time it counts is gone, `EINVAL` if it was deleted meanwhile.
    pub fn set(self: &Arc<Self>, absolute: bool, value: u64, interval: u64) -> Result<(u64, u64)> {
        let (mut state, now) = self.look().ok_or(Errno::ESRCH)?;
        if state.deleted {
            return Err(Errno::EINVAL);
        }
        let old = (self.left(&state, now), state.interval);
        if let Some(armed) = state.armed.take() {
            time::cancel(armed);
        }
        *state = State::new(state.setting.wrapping_add(1));
        if value != 0 {
            let base = self.clock.base(absolute);
            // A clock of CPU time is not read with the state locked.
            let now = match self.clock {
                TimerClock::Machine(_) => signed(time::now_on(base).0),
                TimerClock::Cpu(_) => now,
            };
            let from = if absolute { 0 } else { now };
            let at = from.saturating_add(signed(value));
            state.base = base;
            state.at = Some(at);
            state.interval = interval;
            // A timer without a notification is only ever asked: it needs no interrupts.
            if !matches!(self.notify, Notify::Nobody) {
                let look = self.clock.next_look(state.base, at, now);
                state.armed = Some(time::arm_on(&self.room, look, self.clone()));
            }
        }
        Ok(old)
    }

    /// It was deleted.
    fn end(&self) {
        let mut state = self.state.lock();
        if let Some(armed) = state.armed.take() {
            time::cancel(armed);
        }
        *state = State { deleted: true, ..State::new(state.setting.wrapping_add(1)) };
    }

    /// Sends the signal; false if nobody will take it.
    fn notify(&self, process: &Arc<Process>, setting: u32) -> bool {
        let info = |signal| SigInfo::timer(signal, self.id, setting as i32, self.value);
        let (signal, thread) = match &self.notify {
            Notify::Nobody => return false,
            Notify::Process(signal) => (*signal, None),
            Notify::Thread(signal, thread) => match thread.upgrade() {
                Some(thread) => (*signal, Some(thread)),
                None => return false,
            },
        };
        signal::send_timer(process, thread.as_ref(), signal, info(signal), &self.counted)
            && !process.signals.actions().ignores(signal)
    }
}

impl TimerTarget for PosixTimer {
    fn expired(self: Arc<Self>, _now: Nanos) {
        let Some(process) = self.process.upgrade() else { return };
        let Ok(timer) = process.signals.posix_timers.get(self.id) else { return };
        let setting = {
            let Some((mut state, now)) = self.look() else { return };
            // What is armed is another timer if this one was set anew meanwhile.
            if let Some(armed) = state.armed.take() {
                time::cancel(armed);
            }
            let Some(at) = state.at else { return };
            if now < at {
                // Set anew meanwhile, or less CPU time was used than could have been.
                let look = self.clock.next_look(state.base, at, now);
                state.armed = Some(time::arm_on(&self.room, look, self.clone()));
                return;
            }
            if state.interval == 0 {
                state.at = None;
            }
            state.setting
        };
        if !self.notify(&process, setting) {
            // No signal will arm it again when it is taken.
            timer.rearm(setting, IGNORED_PERIOD_NS);
        }
    }

    fn needs_thread(&self) -> bool {
        true // signals take the locks of the process
    }
}

impl PosixTimer {
    /// Arms a periodic timer for its first expiry at least `pause` in the future; returns how many have been missed.
    fn rearm(self: &Arc<Self>, setting: u32, pause: u64) -> i32 {
        let Some((mut state, now)) = self.look() else { return 0 };
        let Some(at) = state.at.filter(|_| state.setting == setting && state.interval != 0) else {
            return 0;
        };
        let missed = passed(at, now) / state.interval;
        let periods = missed.saturating_add(1).saturating_mul(state.interval);
        let at = at.saturating_add_unsigned(periods);
        state.at = Some(at);
        state.overrun = i32::try_from(missed).unwrap_or(i32::MAX);
        if let Some(armed) = state.armed.take() {
            time::cancel(armed);
        }
        let look = self.clock.next_look(state.base, at.max(now.saturating_add(signed(pause))), now);
        state.armed = Some(time::arm_on(&self.room, look, self.clone()));
        state.overrun
    }
}

/// A timer's signal is taken: writes the overrun where user space looks for it, and arms the timer again.
/// `counted` tells the timer: its id may be another one's by now.
pub fn delivered(process: &Process, counted: &Arc<Counted>, info: &mut SigInfo) {
    let id = info.fields[0] as i32;
    let setting = (info.fields[0] >> 32) as u32;
    let overrun = match process.signals.posix_timers.get(id) {
        Ok(timer) if Arc::ptr_eq(&timer.counted, counted) => timer.rearm(setting, 0),
        _ => 0,
    };
    info.fields[0] = id as u32 as u64 | (overrun as u32 as u64) << 32;
}
