//! [`FilePos`]: the position of an open file.
//!
//! Owns the number. Whoever moves it holds its lock over the whole transfer, which may sleep; whoever only shows it sees the
//! position from before. Never makes who only looks wait. Locks: a sleeping mutex.
#![forbid(unsafe_code)]

use crate::sync::{Mutex, MutexGuard};
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};

/// A position, in bytes (of a directory: a cursor).
pub struct FilePos {
    turn: Mutex<()>,
    /// Relaxed: changed under the lock only, and a number of its own for who looks without it.
    at: AtomicU64,
}

impl FilePos {
    /// The start.
    pub const fn new() -> Self {
        Self { turn: Mutex::new(()), at: AtomicU64::new(0) }
    }

    /// Waits for the transfer that moves it; it moves when the guard is dropped.
    #[inline]
    pub fn lock(&self) -> FilePosGuard<'_> {
        let turn = self.turn.lock();
        FilePosGuard { at: self.at.load(Ordering::Relaxed), pos: self, _turn: turn }
    }

    /// Where it is, or was before the transfer that moves it.
    pub fn peek(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }
}

/// The position, while nobody else moves it.
pub struct FilePosGuard<'a> {
    at: u64,
    pos: &'a FilePos,
    _turn: MutexGuard<'a, ()>,
}

impl Deref for FilePosGuard<'_> {
    type Target = u64;
    #[inline]
    fn deref(&self) -> &u64 {
        &self.at
    }
}

impl DerefMut for FilePosGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut u64 {
        &mut self.at
    }
}

impl Drop for FilePosGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pos.at.store(self.at, Ordering::Relaxed);
    }
}
