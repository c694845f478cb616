//! [`Slot`]: the filter of one socket, and whether it can be changed.
//!
//! Owns the filter. Never lets a locked one go. What its memory comes to in Linux counts for the socket, up to `net.core.optmem_max`. Locks: `Leaf`; filters are dropped
//! without it.

use super::shape::Shape;
use crate::mm::fallible::try_arc;
use crate::net::sysctl;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alea_bpf::Filter;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// What Linux has beside the instructions, and for each of them.
const BESIDE: usize = 72;
const EACH: usize = 8;

/// What a filter counts for its socket.
fn size(filter: &Filter) -> usize {
    BESIDE.saturating_add(filter.weight().saturating_mul(EACH))
}

/// The filter of a socket.
pub struct Slot {
    now: SpinLock<Now, level::Leaf>,
    /// There is one. Relaxed: who sends meanwhile may go by the one before.
    is_there: AtomicBool,
    /// There is one, or was. Relaxed, too.
    was_there: AtomicBool,
}

#[derive(Default)]
struct Now {
    filter: Option<Arc<Filter>>,
    /// SO_LOCK_FILTER: it stays.
    locked: bool,
}

impl Slot {
    /// No filter.
    pub const fn new() -> Self {
        Self {
            now: SpinLock::new(Now { filter: None, locked: false }),
            is_there: AtomicBool::new(false),
            was_there: AtomicBool::new(false),
        }
    }

    /// Whether there is a filter.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }

    /// Whether there has ever been one: if not, nothing waits for it.
    #[inline]
    pub fn was_there(&self) -> bool {
        self.was_there.load(Ordering::Relaxed)
    }

    /// The filter, if there is one.
    #[inline]
    pub fn current(&self) -> Option<Arc<Filter>> {
        if self.is_there() { self.get() } else { None }
    }

    /// The same for who may take its time.
    #[cold]
    pub fn get(&self) -> Option<Arc<Filter>> {
        self.now.lock().filter.clone()
    }

    /// SO_LOCK_FILTER.
    pub fn is_locked(&self) -> bool {
        self.now.lock().locked
    }

    /// EPERM if the filter cannot be changed.
    pub fn check_lock(&self) -> Result<()> {
        if self.is_locked() { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Sets SO_LOCK_FILTER: EPERM if it is to be taken back.
    pub fn set_locked(&self, on: bool) -> Result<()> {
        let mut now = self.now.lock();
        if now.locked && !on {
            return Err(Errno::EPERM);
        }
        now.locked = on;
        Ok(())
    }

    /// Puts a filter in the place of the one that is there: EPERM, ENOMEM. As on Linux, both count until it is.
    pub fn attach(&self, filter: Filter) -> Result<()> {
        let most = sysctl::most_options();
        let new = size(&filter);
        let filter = try_arc(filter)?;
        let mut now = self.now.lock();
        let old = now.filter.as_deref().map_or(0, size);
        if now.locked {
            return Err(Errno::EPERM);
        }
        if new > most || old.saturating_add(new) >= most {
            return Err(Errno::ENOMEM);
        }
        let old = now.filter.replace(filter);
        self.is_there.store(true, Ordering::Relaxed);
        self.was_there.store(true, Ordering::Relaxed);
        drop(now);
        drop(old);
        Ok(())
    }

    /// Takes the filter away: EPERM, ENOENT.
    pub fn detach(&self) -> Result<()> {
        let mut now = self.now.lock();
        if now.locked {
            return Err(Errno::EPERM);
        }
        let old = now.filter.take().ok_or(Errno::ENOENT)?;
        self.is_there.store(false, Ordering::Relaxed);
        drop(now);
        drop(old);
        Ok(())
    }

    /// Has what a listener has.
    pub fn inherit(&self, listener: &Self) {
        let (filter, locked) = {
            let now = listener.now.lock();
            (now.filter.clone(), now.locked)
        };
        self.is_there.store(filter.is_some(), Ordering::Relaxed);
        self.was_there.store(filter.is_some(), Ordering::Relaxed);
        *self.now.lock() = Now { filter, locked };
    }

    /// How many bytes of `body` a socket takes that has this filter, `shape` being what is before them; the first `least` bytes of both,
    /// from where its data begin, are never cut. `None` if it takes nothing.
    #[inline]
    pub fn admits(
        &self,
        body: &[u8],
        least: usize,
        shape: impl FnOnce() -> Shape,
    ) -> Option<usize> {
        match self.current() {
            None => Some(body.len()),
            Some(filter) => verdict(&filter, body, least, &shape()),
        }
    }
}

#[cold]
fn verdict(filter: &Filter, body: &[u8], least: usize, shape: &Shape) -> Option<usize> {
    let said = usize::try_from(filter.run(&shape.packet(body))).unwrap_or(usize::MAX);
    let taken = if said == 0 { return None } else { said.max(least) };
    Some(taken.saturating_sub(shape.before_body()).min(body.len()))
}
