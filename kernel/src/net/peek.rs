//! [`PeekOffset`]: SO_PEEK_OFF: where in what has not been read MSG_PEEK looks; [`peeked`] finds the datagram there.
//!
//! Owns the number of one socket. Never reads what is there. Locks: none; who looks and who reads at the same time each move it.
#![forbid(unsafe_code)]

use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicI32, Ordering};

/// Bytes before those at which MSG_PEEK looks; below 0, as it is at first, MSG_PEEK looks at the beginning and moves nothing.
/// Relaxed: a number alone.
pub struct PeekOffset(AtomicI32);

impl PeekOffset {
    /// Of a new socket.
    pub const fn new() -> Self {
        Self(AtomicI32::new(-1))
    }

    /// SO_PEEK_OFF.
    #[inline]
    pub fn number(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set(&self, number: i32) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Where who only looks (`peek`) is to look, if somebody has said so.
    #[inline]
    pub fn of(&self, peek: bool) -> Option<usize> {
        if peek { usize::try_from(self.number()).ok() } else { None }
    }

    /// So many bytes were looked at (`peek`) or read.
    #[inline]
    pub fn pass(&self, peek: bool, count: usize) {
        if self.number() >= 0 {
            self.pass_some(peek, count);
        }
    }

    #[cold]
    fn pass_some(&self, peek: bool, count: usize) {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let after = |now: i32| {
            let moved = if peek { now.wrapping_add(count) } else { now.saturating_sub(count) };
            (now >= 0).then_some(moved.max(0))
        };
        // Fails only if it is off by now.
        let _was = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
    }
}

/// What a queue of datagrams that MSG_PEEK looks through holds.
pub trait Peekable {
    /// Its bytes.
    fn bytes(&self) -> &[u8];
    /// Whether MSG_PEEK has seen that it is empty.
    fn is_seen(&self) -> bool;
    /// It has.
    fn see(&mut self);
}

/// What MSG_PEEK looks at: the datagram that has the byte at this offset, and how many of its bytes are before that; without an offset
/// the first. With one, an empty datagram that was seen, with or without, is passed.
pub fn peeked<D: Peekable>(queue: &mut VecDeque<D>, offset: Option<usize>) -> Option<(&D, usize)> {
    let mut skip = offset.unwrap_or(0);
    let datagram = queue.iter_mut().find(|datagram| {
        let len = datagram.bytes().len();
        let is_passed = offset.is_some() && skip >= len && (skip > 0 || datagram.is_seen());
        skip -= if is_passed { len } else { 0 };
        !is_passed
    })?;
    if datagram.bytes().is_empty() {
        datagram.see();
    }
    Some((datagram, skip))
}
