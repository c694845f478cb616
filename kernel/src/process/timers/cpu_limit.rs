//! RLIMIT_CPU: SIGXCPU at the soft limit and once a second from then on, SIGKILL at the hard one.
//!
//! A process with a limit is looked at when it could have reached it at the soonest, by a kernel timer; one
//! without costs nothing. Owns that look. Locks: [`crate::sync::level::Itimer`], which interrupt handlers take;
//! never held while a signal is sent.

use super::times::process_cpu_ns;
use crate::base::percpu;
use crate::mm::fallible::try_arc;
use crate::process::signal;
use crate::process::task::limits::{INFINITY, Limit, Resource};
use crate::process::task::process::Process;
use crate::sync::{Once, SpinLock, level};
use crate::time::{self, Nanos, TimerId, TimerRoom, TimerTarget};
use abi::signal::{SigInfo, Signal, code};
use abi::time::NSEC_PER_SEC;
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};

/// How often a process is looked at that is about to reach its limit.
const TICK: Nanos = Nanos::from_millis(4);

/// Whether and when a process is looked at.
pub struct CpuLimit {
    watch: SpinLock<Watch, level::Itimer>,
    /// Who looks; made before a limit is set.
    look: Once<Arc<Look>>,
}

#[derive(Clone, Copy)]
enum Watch {
    Off,
    Armed(TimerId),
    /// The timer has fired, and its handler has not begun.
    Fired,
    /// The handler decides.
    Looking,
    /// The process has ended. Others can still set its limit until it is reaped.
    Ended,
}

impl CpuLimit {
    /// Nobody looks yet.
    pub const fn new() -> Self {
        Self { watch: SpinLock::new(Watch::Off), look: Once::new() }
    }

    /// The process has ended: no looks any more, whatever limit is set.
    pub fn end(&self) {
        let mut watch = self.watch.lock();
        if let Watch::Armed(timer) = *watch {
            time::cancel(timer);
        }
        *watch = Watch::Ended;
    }

    /// The limit has changed: watches as `wanted` says, unless the process has ended, or a handler is to come, which goes by the
    /// limit that it finds.
    fn change(&self, wanted: impl FnOnce() -> Watch) {
        let mut watch = self.watch.lock();
        *watch = match *watch {
            Watch::Ended => Watch::Ended,
            Watch::Fired => Watch::Fired,
            Watch::Armed(timer) if !time::cancel(timer) => Watch::Fired,
            Watch::Off | Watch::Looking | Watch::Armed(_) => wanted(),
        };
    }
}

/// Makes what watching a process needs; `ENOMEM`. [`watch`] cannot fail then.
pub fn prepare(process: &Arc<Process>) -> Result<()> {
    let own = &process.signals.cpu_limit;
    if own.look.get().is_none() {
        let look = try_arc(Look { process: Arc::downgrade(process), room: TimerRoom::new()? })?;
        own.look.call_once(|| look);
    }
    Ok(())
}

/// Begins to watch a process, if it has a limit: a new one, or one whose limit was changed.
pub fn watch(process: &Arc<Process>) {
    let limit = process.limits().get(Resource::Cpu);
    let own = &process.signals.cpu_limit;
    if limit.soft == INFINITY {
        return own.change(|| Watch::Off);
    }
    let when = next_look(limit, process_cpu_ns(process));
    own.change(|| match own.look.get() {
        Some(look) => Watch::Armed(time::arm(&look.room, when, look.clone())),
        None => unreachable!("a limit of CPU time that nobody prepared to watch"),
    });
}

/// When the soft limit can be reached at the soonest: with a thread on each CPU.
fn next_look(limit: Limit, used: u64) -> Nanos {
    let left = limit.soft.saturating_mul(NSEC_PER_SEC).saturating_sub(used);
    // There is always at least one, and never that many that it would not fit.
    let soonest = left / percpu::cpus_online().max(1) as u64;
    Nanos(time::monotonic().0.saturating_add(soonest.max(TICK.0)))
}

struct Look {
    process: Weak<Process>,
    room: TimerRoom,
}

impl TimerTarget for Look {
    fn expired(self: Arc<Self>, _now: Nanos) {
        let Some(process) = self.process.upgrade() else { return };
        let own = &process.signals.cpu_limit;
        {
            let mut watch = own.watch.lock();
            match *watch {
                Watch::Ended => return,
                Watch::Armed(_) | Watch::Fired => *watch = Watch::Looking,
                Watch::Off | Watch::Looking => unreachable!("a timer that nobody armed"),
            }
        }
        let used = process_cpu_ns(&process);
        let limit = process.limits().get(Resource::Cpu);
        let limit = if limit.soft == INFINITY { None } else { judge(&process, limit, used) };
        let mut watch = own.watch.lock();
        // Otherwise somebody has changed the limit meanwhile, and begun anew.
        if matches!(*watch, Watch::Looking) {
            *watch = match limit {
                Some(limit) => {
                    Watch::Armed(time::arm(&self.room, next_look(limit, used), self.clone()))
                }
                None => Watch::Off,
            };
        }
    }

    fn needs_thread(&self) -> bool {
        true // signals take the locks of the process
    }
}

/// Sends what is due; the limit to wait for next.
fn judge(process: &Arc<Process>, limit: Limit, used: u64) -> Option<Limit> {
    let reached = |seconds: u64| used >= seconds.saturating_mul(NSEC_PER_SEC);
    if limit.hard != INFINITY && reached(limit.hard) {
        send(process, Signal::SIGKILL);
        return None;
    }
    if !reached(limit.soft) {
        return Some(limit);
    }
    // As on Linux, where this can be seen, by the signal's handler too: one more second, and the next signal.
    let next = Limit { soft: limit.soft.saturating_add(1).min(limit.hard), ..limit };
    // A limit that was set meanwhile stays. Without memory for the new table the old limit is what programs see; the signals
    // come all the same.
    let _replaced = process.replace_limit(Resource::Cpu, |now| {
        if now == limit { Ok(next) } else { Err(Errno::EAGAIN) }
    });
    send(process, Signal::SIGXCPU);
    Some(next)
}

fn send(process: &Arc<Process>, signal: Signal) {
    // No real-time signal: it cannot exceed a limit.
    let info = SigInfo::new(signal, code::SI_KERNEL);
    if let Err(error) = signal::send_to_process(process, signal, info) {
        unreachable!("{signal:?} refused: {error}");
    }
}
