//! mq_notify: asking to be told of the first message, and the end of that.
//!
//! Owns nothing. Never tells with the queue locked. Locks: the queue's state.

use super::queue::Queue;
use super::registration::{How, Registration};
use crate::process::current;
use abi::{Errno, Result};

impl Queue {
    /// The running process is to be told of the next first message: EBUSY while another one is, or it is already.
    pub fn register(&self, how: How) -> Result<()> {
        let registration = Registration::new(&current(), how);
        let mut state = self.state.lock();
        if state.registered.is_some() {
            drop(state);
            return Err(Errno::EBUSY);
        }
        state.registered = Some(registration);
        drop(state);
        self.note_access();
        Ok(())
    }

    /// The running process is not to be told any more: whether it was to be.
    pub fn unregister(&self) -> bool {
        let task = current();
        let mut state = self.state.lock();
        let mine = state.registered.take_if(|registered| registered.is_of(task.process()));
        drop(state);
        let was = mine.is_some();
        if let Some(mine) = mine {
            mine.remove();
        }
        was
    }
}
