//! Pending signals of one task, or of a whole process.
//!
//! A standard signal is pending once at most; real-time signals queue in order. Lives under a
//! [`level::Signal`](crate::sync::level::Signal) lock of its owner. Memory that cannot be had costs a standard
//! signal its details, as on Linux, and never the signal itself: killing must work when nothing else does.

use crate::sync::{SpinGuard, SpinLock, level};
use abi::signal::{SigInfo, SigSet, Signal};
use alloc::collections::VecDeque;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};

/// Signals that have been sent and not yet taken.
pub struct PendingQueue {
    set: SigSet,
    infos: VecDeque<SigInfo>,
}

/// What became of a signal put into a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    Queued,
    /// A standard signal that was pending already: merged with the first.
    Merged,
    /// A real-time signal that there was no memory for.
    NoMemory,
}

/// A queue under its lock, and beside it which signals are in it, to be read without.
pub struct Pending {
    /// Written with the queue locked.
    set: AtomicU64,
    queue: SpinLock<PendingQueue, level::Signal>,
}

impl Pending {
    pub const fn new() -> Self {
        Self { set: AtomicU64::new(0), queue: SpinLock::new(PendingQueue::new()) }
    }

    /// The signals that are pending, blocked or not.
    #[inline]
    pub fn set(&self) -> SigSet {
        // SeqCst: a sender queues a signal and then looks whether a thread has it blocked; a thread changes what it
        // blocks and then looks here. One of the two sees what the other did.
        SigSet(self.set.load(Ordering::SeqCst))
    }

    /// The queue.
    #[inline]
    pub fn lock(&self) -> PendingGuard<'_> {
        PendingGuard { queue: self.queue.lock(), set: &self.set }
    }
}

/// A locked queue.
pub struct PendingGuard<'a> {
    queue: SpinGuard<'a, PendingQueue, level::Signal>,
    set: &'a AtomicU64,
}

impl Deref for PendingGuard<'_> {
    type Target = PendingQueue;
    #[inline]
    fn deref(&self) -> &PendingQueue {
        &self.queue
    }
}

impl DerefMut for PendingGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut PendingQueue {
        &mut self.queue
    }
}

impl Drop for PendingGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let set = self.queue.set.0;
        // Relaxed: written under the lock only, which is still held.
        if self.set.load(Ordering::Relaxed) != set {
            // SeqCst: see `Pending::set`.
            self.set.store(set, Ordering::SeqCst);
        }
    }
}

impl PendingQueue {
    pub const fn new() -> Self {
        Self { set: SigSet::EMPTY, infos: VecDeque::new() }
    }

    /// Number of queued infos, which RLIMIT_SIGPENDING bounds.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Adds a signal.
    pub fn push(&mut self, signal: Signal, info: SigInfo) -> Pushed {
        if self.set.contains(signal) && !signal.is_realtime() {
            return Pushed::Merged;
        }
        // Nobody ever reads the details of a kill.
        if signal != Signal::SIGKILL {
            match self.infos.try_reserve(1) {
                Ok(()) => self.infos.push_back(info),
                Err(_) if signal.is_realtime() => return Pushed::NoMemory,
                Err(_) => {}
            }
        }
        self.set.insert(signal);
        Pushed::Queued
    }

    /// Takes the most urgent signal out of `wanted`.
    pub fn take(&mut self, wanted: SigSet) -> Option<(Signal, SigInfo)> {
        let signal = SigSet(self.set.0 & wanted.0).first()?;
        let number = signal.number();
        let mut info = None;
        if let Some(at) = self.infos.iter().position(|i| i.signo == number) {
            // Nearly always the first.
            info = if at == 0 { self.infos.pop_front() } else { self.infos.remove(at) };
        }
        if !signal.is_realtime() || !self.infos.iter().any(|i| i.signo == number) {
            self.set.remove(signal);
        }
        Some((signal, info.unwrap_or_else(|| SigInfo::sent_by(signal, 0, 0, 0))))
    }

    /// Forgets every pending signal of `set`.
    pub fn discard(&mut self, set: SigSet) {
        if !self.set.intersects(set) {
            return;
        }
        self.set = self.set.minus(set);
        let left = self.set;
        self.infos.retain(|i| Signal::new(i.signo).is_some_and(|s| left.contains(s)));
    }
}
