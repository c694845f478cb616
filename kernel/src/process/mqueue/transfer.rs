//! mq_timedsend and mq_timedreceive.
//!
//! Owns nothing. Never sleeps with a queue locked, nor loses a message but to a reader who cannot be given it. Locks: the
//! queue's state.

use super::message::Message;
use super::queue::{Queue, State};
use super::waiter::{Place, Waiter, Waiters};
use crate::mm::kernel_memory_low;
use crate::sync::wait::WaitError;
use crate::sync::{SpinGuard, level};
use crate::time::Nanos;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// How long a call waits where it has to.
#[derive(Clone, Copy)]
pub enum Patience {
    None,
    /// Until the wall clock shows this.
    Until(Nanos),
    Endless,
}

impl Patience {
    fn until(self) -> Result<Option<Nanos>> {
        match self {
            Self::None => Err(Errno::EAGAIN),
            Self::Until(at) => Ok(Some(at)),
            Self::Endless => Ok(None),
        }
    }
}

type Locked<'a> = SpinGuard<'a, State, level::Stream>;

impl Queue {
    /// EMSGSIZE for a message of so many bytes.
    pub fn check_size(&self, size: usize) -> Result<()> {
        if size > self.size { Err(Errno::EMSGSIZE) } else { Ok(()) }
    }

    /// EMSGSIZE for a buffer that the longest message would not fit into.
    pub fn check_room(&self, room: usize) -> Result<()> {
        if room < self.size { Err(Errno::EMSGSIZE) } else { Ok(()) }
    }

    /// Gives a message to the first who waits for one, or keeps it, or waits for room. EAGAIN, ETIMEDOUT, ENOMEM.
    pub fn send(&self, priority: u32, data: Vec<u8>, patience: Patience) -> Result<()> {
        if kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let message = Message::new(priority, data);
        let mut state = self.state.lock();
        if state.len() == self.most {
            let until = patience.until()?;
            let (place, waiter) = state.senders.enter(Some(message))?;
            return self.wait(state, place, &waiter, until, |state| &mut state.senders);
        }
        if let Some(receiver) = state.receivers.pop() {
            receiver.give(message);
            drop(state);
        } else {
            state.make_room()?;
            state.keep(message);
            let told = if state.len() == 1 { state.registered.take() } else { None };
            drop(state);
            if let Some(told) = told {
                told.tell();
            }
            self.changed.wake_all();
        }
        self.touch();
        Ok(())
    }

    /// The first message of the highest priority. EAGAIN, ETIMEDOUT, ENOMEM.
    pub fn receive(&self, patience: Patience) -> Result<Message> {
        let mut state = self.state.lock();
        let Some(message) = state.take() else {
            let until = patience.until()?;
            let (place, waiter) = state.receivers.enter(None)?;
            self.wait(state, place, &waiter, until, |state| &mut state.receivers)?;
            // Who let it go on has given it one.
            return waiter.take().ok_or(Errno::EAGAIN);
        };
        // There is room for the message of the first who waits for it.
        let sender = state.senders.pop();
        if let Some(sent) = sender.as_ref().and_then(|sender| sender.take()) {
            state.keep(sent);
        }
        drop(state);
        match sender {
            Some(sender) => sender.finish(),
            None => self.changed.wake_all(),
        }
        self.touch();
        Ok(message)
    }

    /// Waits as one that stands in a list, and is taken off it if nobody lets it go on.
    fn wait(
        &self,
        state: Locked<'_>,
        place: Place,
        waiter: &Waiter,
        until: Option<Nanos>,
        list: impl FnOnce(&mut State) -> &mut Waiters,
    ) -> Result<()> {
        drop(state);
        let Err(why) = waiter.wait(until) else { return Ok(()) };
        let mut state = self.state.lock();
        let left = list(&mut state).leave(place);
        drop(state);
        match (left, why) {
            // Somebody took it off the list before: its message has gone from hand to hand.
            (None, _) => Ok(()),
            (Some(_), WaitError::Interrupted) => Err(Errno::ERESTARTSYS),
            (Some(_), WaitError::TimedOut) => Err(Errno::ETIMEDOUT),
        }
    }
}
