//! Setting the wall clock, and adjtimex: the clock's speed and its leap seconds.
//!
//! Owns the discipline of the clock, and the only ways to change what clocks show. Programs are sent to the kernel while its
//! scale changes: no clock of theirs ever runs ahead of the kernel's. It never polls: the discipline needs a look each second only
//! while something is being corrected: then a timer is armed for the next second of the wall clock.
//!
//! Locks: `Clock`, a spinlock with interrupts off; timers are armed under it.

use alloc::sync::Arc;

use super::clock::{self, realtime, wall_offset};
use super::nanos::Nanos;
use super::scale;
use super::timer::{self, TimerId, TimerRoom, TimerTarget, arm, cancel};
use super::wall;
use crate::sync::{Once, SpinLock, level};
use abi::time::Timex;
use abi::{Errno, Result};
use alea_ntp::request::check;
use alea_ntp::{Discipline, Permission};
use alea_vdso::data::{Clock, Scale};

struct State {
    discipline: Discipline,
    /// For the next second.
    armed: Option<TimerId>,
}

static STATE: SpinLock<State, level::Clock> =
    SpinLock::new(State { discipline: Discipline::new(), armed: None });

/// Where programs read the clocks.
static SHOWN: Once<&'static Clock> = Once::new();
/// What wakes the discipline.
static SECONDS: Once<(TimerRoom, Arc<EachSecond>)> = Once::new();

/// The latest time that can be set: Linux leaves thirty years of uptime to the 292 that a clock has.
const LATEST: Nanos = Nanos::from_secs((i64::MAX / 1_000_000_000) as u64 - 30 * 365 * 24 * 3600);

/// Sets the wall clock to nanoseconds since 1970: `EINVAL` if it is too late, `EPERM`, and `EINVAL` if the machine had started
/// before 1970 then.
pub fn set_realtime(now: Nanos, permission: Permission) -> Result<()> {
    if now > LATEST {
        return Err(Errno::EINVAL);
    }
    match permission {
        Permission::Granted => change(|state| state.set(now)),
        Permission::Denied => Err(Errno::EPERM),
    }
}

/// Changes the state, and tells whoever waits for the wall clock if that was set.
fn change<R>(act: impl FnOnce(&mut State) -> R) -> R {
    let mut state = STATE.lock();
    let (wall, tai) = (wall_offset(), state.tai_offset());
    let result = act(&mut state);
    let (wall_was_set, tai_was_set) = (wall_offset() != wall, state.tai_offset() != tai);
    drop(state);
    if wall_was_set {
        wall::was_set();
    } else if tai_was_set {
        timer::clock_was_set();
    }
    result
}

/// adjtimex(2): what it returns.
pub fn adjust(request: &mut Timex, permission: Permission) -> Result<i32> {
    let step = check(request, permission)?;
    change(|state| {
        state.pass();
        if let Some(step) = step {
            let stepped = i128::from(realtime().0) + step;
            state.set(Nanos(u64::try_from(stepped).map_err(|_| Errno::EINVAL)?))?;
        }
        let now = realtime();
        let value = state.discipline.apply(request, now.secs() as i64);
        let unit = if state.discipline.tells_nanos() { 1 } else { 1000 };
        request.time = [now.secs() as i64, (now.subsec() / unit) as i64];
        state.heed();
        Ok(value)
    })
}

/// Keeps `clock` up to date from now on, for programs to read without a system call. Called once, when timers can be armed.
pub fn show_to_programs(clock: &'static Clock) {
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    let each = Arc::new(EachSecond);
    SECONDS.call_once(|| (TimerRoom::new().expect("no memory for a timer"), each));
    SHOWN.call_once(|| clock);
    publish(&STATE.lock());
}

/// Shows the clocks as they are.
fn publish(state: &State) {
    let Some(page) = SHOWN.get() else { return };
    let scale = scale::shown();
    page.publish(Some(Scale {
        base: scale.base,
        multiplier: scale.multiplier,
        monotonic: scale.at_base,
        is_raw: scale.is_raw,
        wall_offset: wall_offset().0,
        tai_offset: state.tai_offset(),
    }));
}

impl State {
    fn tai_offset(&self) -> u64 {
        // Negative ones wrap, as they are added.
        (i64::from(self.discipline.tai()) * 1_000_000_000) as u64
    }

    fn set(&mut self, now: Nanos) -> Result<()> {
        let monotonic = clock::monotonic();
        if now < monotonic || now > LATEST {
            return Err(Errno::EINVAL);
        }
        clock::set_wall_offset(now - monotonic);
        self.discipline.clock_was_set(now.secs() as i64);
        self.heed();
        Ok(())
    }

    /// Brings the discipline to the second that it is.
    fn pass(&mut self) {
        let moved = self.discipline.pass(realtime().secs() as i64);
        if moved == 0 {
            return;
        }
        let offset = wall_offset().0 as i64 + moved * 1_000_000_000;
        clock::set_wall_offset(Nanos(offset as u64));
        let what = if moved < 0 {
            "inserting leap second 23:59:60"
        } else {
            "deleting leap second 23:59:59"
        };
        log::info!("clock: {what} UTC");
    }

    /// Has the clocks show what the discipline says, and wakes it in the next second if that may say something else.
    fn heed(&mut self) {
        clock::set_tai_offset(self.tai_offset());
        let multiplier = scale::multiplier_at(self.discipline.rate());
        if multiplier != scale::shown().multiplier {
            if let Some(page) = SHOWN.get() {
                page.publish(None);
            }
            scale::run_at(multiplier);
        }
        publish(self);
        if let Some(id) = self.armed.take() {
            // It may be waiting for this lock: then it finds nothing to do.
            cancel(id);
        }
        if self.discipline.is_busy()
            && let Some((room, each)) = SECONDS.get()
        {
            let next = Nanos::from_secs(realtime().secs() + 1);
            self.armed = Some(arm(room, next - wall_offset(), each.clone()));
        }
    }
}

/// A second of the wall clock begins, and the discipline wants to know.
struct EachSecond;

impl TimerTarget for EachSecond {
    fn is_kernels_own(&self) -> bool {
        true
    }

    fn expired(self: Arc<Self>, _now: Nanos) {
        change(|state| {
            state.pass();
            state.heed();
        });
    }
}
