//! [`Message`]: a message, and which of two is the first.
//!
//! Owns its bytes. Locks: none.

use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

/// A message: of all in a queue the greatest is the first.
pub struct Message {
    pub priority: u32,
    /// Its turn among those of its priority: it has one once it is in the queue.
    turn: Reverse<u64>,
    pub data: Vec<u8>,
}

impl Message {
    pub fn new(priority: u32, data: Vec<u8>) -> Self {
        Self { priority, turn: Reverse(0), data }
    }

    /// The same, with its turn.
    pub fn in_turn(self, turn: u64) -> Self {
        Self { turn: Reverse(turn), ..self }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        (self.priority, self.turn) == (other.priority, other.turn)
    }
}

impl Eq for Message {}

impl PartialOrd for Message {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Message {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.priority, self.turn).cmp(&(other.priority, other.turn))
    }
}
