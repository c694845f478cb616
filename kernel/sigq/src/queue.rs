//! [`Queue`]: the pending signals of one thread, or of a whole process.
//!
//! Linux's rules: a standard signal is pending once, real-time signals queue in order, a POSIX timer has one entry at
//! most. Each entry is counted for its receiver's user by a charge, which is given back by dropping it. Where the count
//! or the memory is at its end, a signal loses its details; only a real-time signal that was not sent by kill(2) is
//! refused. Killing works when nothing else does: SIGKILL has no entry.
//!
//! Owns the entries and the set. Whoever has it locked uses it; it grows fallibly only.

use abi::signal::{SigInfo, SigSet, Signal, code};
use alloc::collections::VecDeque;

/// One queued signal with its details.
struct Entry<C> {
    info: SigInfo,
    charge: C,
}

/// Signals that have been sent and not yet taken; `C` is what counts an entry, until it is dropped.
pub struct Queue<C> {
    /// What is pending. A signal may be here and have no entry: its details were lost.
    set: SigSet,
    entries: VecDeque<Entry<C>>,
}

/// What became of a signal put into a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// It is pending now, with or without its details.
    Pending,
    /// It was pending already: merged with that.
    Merged,
    /// A real-time signal over the limit, or without memory: it is as if it had not been sent.
    Refused,
}

/// A signal that was taken.
pub struct Taken<C> {
    pub signal: Signal,
    pub info: SigInfo,
    /// What counted it; nothing if its details were lost, or never kept.
    pub charge: Option<C>,
}

impl<C> Default for Queue<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Queue<C> {
    /// Nothing is pending.
    pub const fn new() -> Self {
        Self { set: SigSet::EMPTY, entries: VecDeque::new() }
    }

    /// What is pending.
    #[inline]
    pub fn set(&self) -> SigSet {
        self.set
    }

    /// How many have their details queued.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The details of the signal that stands at place `at`, of those that have some.
    pub fn peek(&self, at: usize) -> Option<&SigInfo> {
        self.entries.get(at).map(|entry| &entry.info)
    }

    /// Adds a signal; `charge` counts it, or refuses to.
    pub fn push(
        &mut self,
        signal: Signal,
        info: SigInfo,
        charge: impl FnOnce() -> Option<C>,
    ) -> Pushed {
        if self.set.contains(signal) && !signal.is_realtime() {
            return Pushed::Merged;
        }
        // Nobody ever reads the details of a kill.
        let keeps = signal != Signal::SIGKILL;
        if keeps && !self.enter(info, charge) && signal.is_realtime() && info.code != code::SI_USER
        {
            return Pushed::Refused;
        }
        self.set.insert(signal);
        Pushed::Pending
    }

    /// Adds the signal of a timer, whose charge tells it from all others: a second one before the first was taken only
    /// replaces its details. It is never merged with another one's signal, since its timer waits for its own.
    pub fn push_timer(&mut self, signal: Signal, info: SigInfo, charge: C) -> Pushed
    where
        C: PartialEq,
    {
        if let Some(waiting) = self.entries.iter_mut().find(|entry| entry.charge == charge) {
            waiting.info = info;
            return Pushed::Merged;
        }
        if !self.enter(info, || Some(charge)) {
            return Pushed::Refused;
        }
        self.set.insert(signal);
        Pushed::Pending
    }

    /// Whether it found room and could be counted.
    fn enter(&mut self, info: SigInfo, charge: impl FnOnce() -> Option<C>) -> bool {
        if self.entries.try_reserve(1).is_err() {
            return false;
        }
        let Some(charge) = charge() else { return false };
        self.entries.push_back(Entry { info, charge });
        true
    }

    /// Takes the most urgent signal out of `wanted`, and its details to `info`: they are copied once. One whose details
    /// were lost looks as if process 0 had sent it, as on Linux.
    #[inline]
    pub fn take_into(&mut self, wanted: SigSet, info: &mut SigInfo) -> Option<(Signal, Option<C>)> {
        let signal = SigSet(self.set.0 & wanted.0).first()?;
        let number = signal.number();
        let at = self.entries.iter().position(|entry| entry.info.signo == number);
        // Copied where it stands: a moved entry would be copied twice.
        *info = match at.and_then(|at| self.entries.get(at)) {
            Some(entry) => entry.info,
            None => SigInfo::sent_by(signal, code::SI_USER, 0, 0),
        };
        let entry = match at {
            // Nearly always the first.
            Some(0) => self.entries.pop_front(),
            Some(at) => self.entries.remove(at),
            None => None,
        };
        let charge = entry.map(|entry| entry.charge);
        if self.entries.is_empty() || !self.entries.iter().any(|entry| entry.info.signo == number) {
            self.set.remove(signal);
        }
        Some((signal, charge))
    }

    /// The same as one value.
    pub fn take(&mut self, wanted: SigSet) -> Option<Taken<C>> {
        let mut info = SigInfo::new(Signal::SIGKILL, code::SI_USER);
        let (signal, charge) = self.take_into(wanted, &mut info)?;
        Some(Taken { signal, info, charge })
    }

    /// Forgets every pending signal of `set`.
    pub fn discard(&mut self, set: SigSet) {
        if !self.set.intersects(set) {
            return;
        }
        self.set = self.set.minus(set);
        let left = self.set;
        self.entries.retain(|entry| {
            Signal::new(entry.info.signo).is_some_and(|signal| left.contains(signal))
        });
    }
}
