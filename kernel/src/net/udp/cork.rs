//! [`Cork`]: a datagram that several calls put together (MSG_MORE, UDP_CORK).
//!
//! The first call says where it goes and how, the later ones give more bytes; one without MSG_MORE, or the end of UDP_CORK,
//! sends it. Owns the bytes until then. Never locked by who sends a whole datagram while none is put together. Locks: its
//! mutex, held over the copying from user memory, as Linux holds the socket's.

use crate::net::count::Flow;
use crate::net::inbox::Datagram;
use crate::sync::{Mutex, MutexGuard};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};

/// Where a datagram goes, and how.
pub(super) struct Ways {
    pub to: SocketAddr,
    pub from: SocketAddr,
    pub hops: u8,
    pub class: u8,
    pub flow: Flow,
    /// How many calls with MSG_ZEROCOPY are to be told of once it is sent.
    pub uncopied: u32,
}

/// The datagram of a socket that is being put together.
pub(super) struct Cork {
    has_any: AtomicBool,
    held: Mutex<Option<(Ways, Datagram)>>,
}

impl Cork {
    pub fn new() -> Self {
        Self { has_any: AtomicBool::new(false), held: Mutex::new(None) }
    }

    /// Whether there is one, for who has no use for it.
    pub fn has_any(&self) -> bool {
        // Relaxed: who sends beside another thread's putting together may be before it or after it.
        self.has_any.load(Ordering::Relaxed)
    }

    pub fn lock(&self) -> MutexGuard<'_, Option<(Ways, Datagram)>> {
        self.held.lock()
    }

    /// Notes whether there is one, before it is unlocked.
    pub fn note(&self, held: &Option<(Ways, Datagram)>) {
        // Relaxed: as in `has_any`.
        self.has_any.store(held.is_some(), Ordering::Relaxed);
    }
}
