//! Clocks, sleeping, interval timers and POSIX timers.

use crate::mm::fallible::try_box;
use crate::mm::user::UserPtr;
use crate::process;
use crate::process::timers::cpu_clock::CpuClock;
use crate::process::timers::itimer::{self, ItimerKind};
use crate::process::timers::posix_timer::{Notify, TimerClock};
use crate::sync::WaitQueue;
use crate::sync::wait::{Deadline, Moment, WaitError};
use crate::time::{self, ClockId, Nanos, Permission};
use crate::vfs::Capability;
use abi::signal::Signal;
use abi::time::{Itimerspec, Itimerval, Timespec, Timeval, Timex, USER_HZ};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// `TIMER_ABSTIME`.
const ABSTIME: i32 = 1;

/// A clock as programs name it: one of the machine's, or somebody's CPU time.
pub enum Clock {
    Machine(ClockId),
    Cpu(CpuClock),
    /// A device's, by its descriptor; there are no such devices.
    Descriptor,
}

/// CLOCK_REALTIME itself, which CLOCK_REALTIME_ALARM shows too.
const REALTIME: i32 = 0;
/// CLOCK_PROCESS_CPUTIME_ID and CLOCK_THREAD_CPUTIME_ID.
const PROCESS_CPU: i32 = 2;
const THREAD_CPU: i32 = 3;
/// The low bits of a clock that a descriptor stands for.
const DESCRIPTOR_MASK: i32 = 7;
const DESCRIPTOR: i32 = 3;

impl Clock {
    /// From its number in Linux's ABI.
    pub fn from_raw(id: i32) -> Result<Self> {
        match id {
            PROCESS_CPU => Ok(Self::Cpu(CpuClock::own_process())),
            THREAD_CPU => Ok(Self::Cpu(CpuClock::own_thread())),
            ..0 if id & DESCRIPTOR_MASK == DESCRIPTOR => Ok(Self::Descriptor),
            ..0 => CpuClock::from_raw(id).map(Self::Cpu),
            _ => ClockId::from_abi(id).map(Self::Machine).ok_or(Errno::EINVAL),
        }
    }

    /// Whether it can be waited for.
    fn has_timers(&self) -> bool {
        use crate::time::ClockId::{MonotonicCoarse, MonotonicRaw, RealtimeCoarse};
        match self {
            Self::Machine(clock) => {
                !matches!(clock, MonotonicRaw | MonotonicCoarse | RealtimeCoarse)
            }
            Self::Cpu(_) => true,
            Self::Descriptor => false,
        }
    }

    /// Nanoseconds on this clock.
    fn now(&self) -> Result<u64> {
        match self {
            Self::Machine(clock) => Ok(time::clock_now(*clock).0),
            Self::Cpu(clock) => clock.now().ok_or(Errno::EINVAL),
            Self::Descriptor => Err(Errno::EINVAL),
        }
    }
}

/// A relative time limit as a deadline on the monotonic clock; NULL is none.
pub fn read_timeout(timeout: UserPtr<Timespec>) -> Result<Option<Deadline>> {
    let Some(timeout) = timeout.non_null() else { return Ok(None) };
    deadline_after(timeout.read()?).map(Some)
}

/// A time limit from now as a deadline on the monotonic clock.
pub fn deadline_after(timeout: Timespec) -> Result<Deadline> {
    let nanos = timeout.to_nanos().ok_or(Errno::EINVAL)?;
    Ok(time::monotonic().0.saturating_add(nanos))
}

/// An absolute time limit on `clock`; NULL is none.
pub fn read_moment(timeout: UserPtr<Timespec>, clock: ClockId) -> Result<Option<Moment>> {
    let Some(timeout) = timeout.non_null() else { return Ok(None) };
    let at = timeout.read()?.to_nanos().ok_or(Errno::EINVAL)?;
    Ok(Some(Moment { base: clock.base(true), at }))
}

/// An absolute time limit on `clock` as a deadline on the monotonic clock; NULL is none.
pub fn read_deadline(timeout: UserPtr<Timespec>, clock: ClockId) -> Result<Option<Deadline>> {
    let Some(timeout) = timeout.non_null() else { return Ok(None) };
    deadline_at(timeout.read()?, clock).map(Some)
}

/// An absolute time limit on `clock` as a deadline on the monotonic clock.
pub fn deadline_at(timeout: Timespec, clock: ClockId) -> Result<Deadline> {
    Ok(monotonic_deadline(clock, timeout.to_nanos().ok_or(Errno::EINVAL)?))
}

fn monotonic_deadline(clock: ClockId, at: u64) -> Deadline {
    let left = at.saturating_sub(time::clock_now(clock).0);
    time::monotonic().0.saturating_add(left)
}

pub fn clock_gettime(id: i32, out: UserPtr<Timespec>) -> Result<()> {
    out.write(&Timespec::from_nanos(Clock::from_raw(id)?.now()?))
}

pub fn clock_getres(id: i32, out: UserPtr<Timespec>) -> Result<()> {
    let resolution = match Clock::from_raw(id)? {
        Clock::Machine(clock) => time::resolution(clock).0,
        Clock::Cpu(clock) => clock.resolution(),
        Clock::Descriptor => return Err(Errno::EINVAL),
    };
    match out.non_null() {
        Some(out) => out.write(&Timespec::from_nanos(resolution)),
        None => Ok(()),
    }
}

pub fn clock_settime(id: i32, new: UserPtr<Timespec>) -> Result<()> {
    match Clock::from_raw(id)? {
        Clock::Machine(ClockId::Realtime) => {}
        Clock::Cpu(_) if id < 0 => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    }
    let nanos = new.read()?.to_nanos().ok_or(Errno::EINVAL)?;
    set_realtime(nanos)
}

fn set_realtime(nanos: u64) -> Result<()> {
    time::set_realtime(Nanos(nanos), permission())
}

/// Whether the caller may set the time.
fn permission() -> Permission {
    match process::current().cred().capable(Capability::SYS_TIME) {
        true => Permission::Granted,
        false => Permission::Denied,
    }
}

pub fn adjtimex(request: UserPtr<Timex>) -> Result<i32> {
    let mut timex = request.read()?;
    let result = time::adjust(&mut timex, permission());
    request.write(&timex)?;
    result
}

pub fn clock_adjtime(id: i32, request: UserPtr<Timex>) -> Result<i32> {
    let mut timex = request.read()?;
    match id {
        REALTIME => {}
        // No matter whose CPU time it would be.
        ..0 if id & DESCRIPTOR_MASK != DESCRIPTOR => return Err(Errno::EOPNOTSUPP),
        _ => match Clock::from_raw(id)? {
            Clock::Descriptor => return Err(Errno::EINVAL),
            Clock::Machine(_) | Clock::Cpu(_) => return Err(Errno::EOPNOTSUPP),
        },
    }
    let value = time::adjust(&mut timex, permission())?;
    request.write(&timex)?;
    Ok(value)
}

/// `struct timezone` is two ints: minutes west of Greenwich and the kind of daylight saving.
pub fn gettimeofday(out: UserPtr<Timeval>, zone: UserPtr<[i32; 2]>) -> Result<()> {
    if let Some(out) = out.non_null() {
        out.write(&Timeval::from_nanos(time::realtime().0))?;
    }
    match zone.non_null() {
        Some(zone) => zone.write(&[0, 0]),
        None => Ok(()),
    }
}

pub fn settimeofday(new: UserPtr<Timeval>, _zone: UserPtr<[i32; 2]>) -> Result<()> {
    match new.non_null() {
        Some(new) => set_realtime(new.read()?.to_nanos().ok_or(Errno::EINVAL)?),
        None => Ok(()),
    }
}

pub fn time(out: UserPtr<i64>) -> Result<i64> {
    let seconds = Timespec::from_nanos(time::realtime().0).sec;
    if let Some(out) = out.non_null() {
        out.write(&seconds)?;
    }
    Ok(seconds)
}

/// `struct tms`: user and system time of the process and of its reaped children, in USER_HZ ticks.
pub fn times(out: UserPtr<[i64; 4]>) -> Result<i64> {
    if let Some(out) = out.non_null() {
        let task = process::current();
        let process = task.process();
        let (user, system) = process.usage().ticks();
        let (child_user, child_system) = process.children_usage().ticks();
        out.write(&[user, system, child_user, child_system])?;
    }
    Ok((time::monotonic().0 / (abi::time::NSEC_PER_SEC / USER_HZ)) as i64)
}

pub fn nanosleep(request: UserPtr<Timespec>, left: UserPtr<Timespec>) -> Result<i64> {
    let nanos = request.read()?.to_nanos().ok_or(Errno::EINVAL)?;
    sleep_until(Moment::monotonic(time::monotonic().0.saturating_add(nanos)), Some(left))
}

pub fn clock_nanosleep(
    id: i32,
    flags: i32,
    request: UserPtr<Timespec>,
    left: UserPtr<Timespec>,
) -> Result<i64> {
    let clock = Clock::from_raw(id)?;
    if !clock.has_timers() || id == THREAD_CPU {
        return Err(Errno::EOPNOTSUPP);
    }
    let nanos = request.read()?.to_nanos().ok_or(Errno::EINVAL)?;
    let left = (flags & ABSTIME == 0).then_some(left);
    match clock {
        Clock::Machine(clock) => {
            let base = clock.base(left.is_none());
            let from = if left.is_some() { time::now_on(base).0 } else { 0 };
            sleep_until(Moment { base, at: from.saturating_add(nanos) }, left)
        }
        // It would sleep for ever.
        Clock::Cpu(clock) if clock.is_own_thread() => Err(Errno::EINVAL),
        Clock::Cpu(clock) => {
            let from = if left.is_some() { clock.now().ok_or(Errno::EINVAL)? } else { 0 };
            wait_for_cpu(&clock, from.saturating_add(nanos), left)
        }
        Clock::Descriptor => Err(Errno::EOPNOTSUPP),
    }
}

/// Sleeps until the deadline. Interrupted, a relative sleep (`left` given) reports what is left and goes
/// on to the same deadline; an absolute one is simply called again.
fn sleep_until(deadline: Moment, left: Option<UserPtr<Timespec>>) -> Result<i64> {
    let nobody_wakes = WaitQueue::new();
    match nobody_wakes.wait_until(Some(deadline), || None::<()>) {
        Ok(()) | Err(WaitError::TimedOut) => Ok(0),
        Err(WaitError::Interrupted) => {
            let Some(left) = left else { return Err(Errno::ERESTARTNOHAND) };
            if let Some(out) = left.non_null() {
                let now = time::now_on(deadline.base).0;
                out.write(&Timespec::from_nanos(deadline.at.saturating_sub(now)))?;
            }
            let again = try_box(move || sleep_until(deadline, Some(left)))?;
            process::current().signals.set_restart(again);
            Err(Errno::ERESTART_RESTARTBLOCK)
        }
    }
}

/// As [`sleep_until`], on a clock of CPU time; one that goes meanwhile ends the sleep with EINVAL.
fn wait_for_cpu(clock: &CpuClock, at: u64, left: Option<UserPtr<Timespec>>) -> Result<i64> {
    let nobody_wakes = WaitQueue::new();
    loop {
        let missing = at.saturating_sub(clock.now().ok_or(Errno::EINVAL)?);
        if missing == 0 {
            return Ok(0);
        }
        match nobody_wakes.wait_deadline(Some(clock.next_look(missing).0), || None::<()>) {
            Ok(()) | Err(WaitError::TimedOut) => {}
            Err(WaitError::Interrupted) => break,
        }
    }
    let Some(left) = left else { return Err(Errno::ERESTARTNOHAND) };
    if let Some(out) = left.non_null() {
        let missing = at.saturating_sub(clock.now().ok_or(Errno::EINVAL)?);
        out.write(&Timespec::from_nanos(missing))?;
    }
    let clock = clock.clone();
    let again = try_box(move || wait_for_cpu(&clock, at, Some(left)))?;
    process::current().signals.set_restart(again);
    Err(Errno::ERESTART_RESTARTBLOCK)
}

/// `struct sigevent`: value, signal, how to notify, thread.
type SigEvent = (u64, i32, i32, i32);

const SIGEV_SIGNAL: i32 = 0;
const SIGEV_NONE: i32 = 1;
/// For the C library, which makes a thread of the signal.
const SIGEV_THREAD: i32 = 2;
const SIGEV_THREAD_ID: i32 = 4;

/// The first 20 bytes of `struct sigevent`, which is 64 bytes long.
fn read_sigevent(event: UserPtr<[i32; 5]>) -> Result<SigEvent> {
    let [low, high, signal, notify, tid] = event.read()?;
    Ok((low as u32 as u64 | (high as u32 as u64) << 32, signal, notify, tid))
}

pub fn timer_create(id: i32, event: UserPtr<[i32; 5]>, out: UserPtr<i32>) -> Result<()> {
    let event = event.non_null().map(read_sigevent).transpose()?;
    let clock = match Clock::from_raw(id)? {
        clock if !clock.has_timers() => return Err(Errno::EOPNOTSUPP),
        Clock::Machine(clock) => TimerClock::Machine(clock),
        Clock::Cpu(clock) => TimerClock::Cpu(clock),
        Clock::Descriptor => return Err(Errno::EOPNOTSUPP),
    };
    let task = process::current();
    let process = task.process();
    let (notify, value) = match event {
        None => (Notify::Process(Signal::SIGALRM), None),
        Some((value, _, SIGEV_NONE, _)) => (Notify::Nobody, Some(value)),
        Some((value, signal, SIGEV_SIGNAL | SIGEV_THREAD, _)) => {
            (Notify::Process(Signal::new(signal).ok_or(Errno::EINVAL)?), Some(value))
        }
        Some((value, signal, SIGEV_THREAD_ID, tid)) => {
            let thread = process::lookup_task(tid).ok_or(Errno::EINVAL)?;
            if !Arc::ptr_eq(thread.process(), process) {
                return Err(Errno::EINVAL);
            }
            let signal = Signal::new(signal).ok_or(Errno::EINVAL)?;
            (Notify::Thread(signal, Arc::downgrade(&thread)), Some(value))
        }
        Some(_) => return Err(Errno::EINVAL),
    };
    let timers = &process.signals.posix_timers;
    let id = timers.create(process, clock, notify, value)?;
    out.write(&id).inspect_err(|_| {
        // It was made just now: it can only be gone already if another thread guessed its id.
        let _gone = timers.delete(id);
    })
}

fn itimerspec((value, interval): (u64, u64)) -> Itimerspec {
    Itimerspec { interval: Timespec::from_nanos(interval), value: Timespec::from_nanos(value) }
}

pub fn timer_settime(
    id: i32,
    flags: i32,
    new: UserPtr<Itimerspec>,
    old: UserPtr<Itimerspec>,
) -> Result<()> {
    if new.is_null() {
        return Err(Errno::EINVAL);
    }
    let new = new.read()?;
    let value = new.value.to_nanos().ok_or(Errno::EINVAL)?;
    let interval = new.interval.to_nanos().ok_or(Errno::EINVAL)?;
    let timer = process::current().process().signals.posix_timers.get(id)?;
    let before = timer.set(flags & ABSTIME != 0, value, interval)?;
    match old.non_null() {
        Some(old) => old.write(&itimerspec(before)),
        None => Ok(()),
    }
}

pub fn timer_gettime(id: i32, out: UserPtr<Itimerspec>) -> Result<()> {
    let timer = process::current().process().signals.posix_timers.get(id)?;
    out.write(&itimerspec(timer.get()))
}

pub fn timer_getoverrun(id: i32) -> Result<i32> {
    Ok(process::current().process().signals.posix_timers.get(id)?.overrun())
}

pub fn timer_delete(id: i32) -> Result<()> {
    process::current().process().signals.posix_timers.delete(id)
}

pub fn getitimer(which: i32, out: UserPtr<Itimerval>) -> Result<()> {
    let kind = ItimerKind::from_raw(which).ok_or(Errno::EINVAL)?;
    let (value, interval) = itimer::get(process::current().process(), kind);
    write_itimer(out, value, interval)
}

pub fn setitimer(which: i32, new: UserPtr<Itimerval>, old: UserPtr<Itimerval>) -> Result<()> {
    let kind = ItimerKind::from_raw(which).ok_or(Errno::EINVAL)?;
    let new = match new.non_null() {
        Some(new) => new.read()?,
        None => Itimerval::default(),
    };
    let value = new.value.to_nanos().ok_or(Errno::EINVAL)?;
    let interval = new.interval.to_nanos().ok_or(Errno::EINVAL)?;
    let (value, interval) = itimer::set(process::current().process(), kind, value, interval)?;
    match old.non_null() {
        Some(old) => write_itimer(old, value, interval),
        None => Ok(()),
    }
}

fn write_itimer(out: UserPtr<Itimerval>, value: u64, interval: u64) -> Result<()> {
    out.write(&Itimerval {
        interval: Timeval::from_nanos(interval),
        value: Timeval::from_nanos(value),
    })
}

/// Seconds that the old alarm had left, rounded to the nearest and at least 1 if it was armed.
pub fn alarm(seconds: u32) -> Result<u32> {
    let nanos = u64::from(seconds).saturating_mul(abi::time::NSEC_PER_SEC);
    let (left, _) = itimer::set(process::current().process(), ItimerKind::Real, nanos, 0)?;
    let rounded = left.saturating_add(abi::time::NSEC_PER_SEC / 2) / abi::time::NSEC_PER_SEC;
    Ok(match left {
        0 => 0,
        _ => u32::try_from(rounded.max(1)).unwrap_or(u32::MAX),
    })
}
