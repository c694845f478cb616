//! [`Cork`]: a datagram that several calls put together (MSG_MORE, UDP_CORK), of UDP or a raw socket.
//!
//! The first call says where it goes and how, the later ones give more bytes; one without MSG_MORE, or the end of UDP_CORK,
//! sends it. Owns the bytes until then. Never locked by who sends a whole datagram while none is put together. Locks: its
//! mutex, held over the copying from user memory, as Linux holds the socket's.

use crate::sync::{Mutex, MutexGuard};
use core::sync::atomic::{AtomicBool, Ordering};

/// The datagram of a socket that is being put together.
pub struct Cork<T> {
    has_any: AtomicBool,
    held: Mutex<Option<T>>,
}

impl<T> Cork<T> {
    pub const fn new() -> Self {
        Self { has_any: AtomicBool::new(false), held: Mutex::new(None) }
    }

    /// Whether there is one, for who has no use for it.
    pub fn has_any(&self) -> bool {
        // Relaxed: who sends beside another thread's putting together may be before it or after it.
        self.has_any.load(Ordering::Relaxed)
    }

    pub fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.held.lock()
    }

    /// Notes whether there is one, before it is unlocked.
    pub fn note(&self, held: &Option<T>) {
        // Relaxed: as in `has_any`.
        self.has_any.store(held.is_some(), Ordering::Relaxed);
    }
}
