//! What queued signals count for: RLIMIT_SIGPENDING, over all processes of a user, as on Linux.
//!
//! Owns the tallies, in shards by user, so that counting never walks over processes. A [`Charge`] counts one entry for
//! as long as it lives, for the user that the receiver had when it was sent, whoever that receiver becomes. It must
//! never sleep: signals are sent from interrupts. Locks: [`crate::sync::level::SignalTally`], held for the look at one user only.

use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::sync::{SpinLock, level};
use abi::signal::{SigInfo, Signal};
use alea_sigq::Tally;
use alloc::sync::Arc;

const SHARDS: usize = 16;

static TALLIES: [SpinLock<Tally, level::SignalTally>; SHARDS] =
    [const { SpinLock::new(Tally::new()) }; SHARDS];

fn tally_of(uid: u32) -> &'static SpinLock<Tally, level::SignalTally> {
    &TALLIES[uid as usize % SHARDS]
}

/// One that counts for a user.
pub struct Counted {
    uid: u32,
}

impl Counted {
    /// Counts one for a user that may have `most`; nothing if it may not, or if there is no memory.
    #[inline]
    pub fn try_new(uid: u32, most: u64) -> Option<Self> {
        tally_of(uid).lock().charge(uid, most).ok().map(|()| Self { uid })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        tally_of(self.uid).lock().release(self.uid);
    }
}

/// What counts an entry of a signal queue.
pub enum Charge {
    /// It counts by itself.
    Signal(#[expect(dead_code, reason = "counts while it lives")] Counted),
    /// Its timer counts, from timer_create on, and on behalf of what is queued when the timer has gone.
    Timer(Arc<Counted>),
}

impl PartialEq for Charge {
    /// Only two of the same timer are equal.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Timer(own), Self::Timer(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

/// How many signals a user has queued, those that timers may send among them.
pub fn queued(uid: u32) -> u64 {
    tally_of(uid).lock().count(uid)
}

/// For whom a signal to `receiver` counts, and how many such there may be. The limits, whose lock ranks above a queue's,
/// are looked at only for what they bind: real-time signals, and what a program made up.
#[inline]
pub(super) fn terms(
    process: &Process,
    receiver: &Task,
    signal: Signal,
    info: &SigInfo,
) -> (u32, u64) {
    let bound = signal.is_realtime() || info.code < 0;
    let most = if bound { process.limits().signals_pending() } else { u64::MAX };
    (receiver.uid(), most)
}
