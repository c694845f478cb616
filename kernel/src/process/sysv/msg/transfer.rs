//! msgsnd and msgrcv.
//!
//! Owns nothing. Never sleeps with a queue locked, nor loses a message that a receiver was told. Locks: the queue's, and `Leaf`
//! for what a receiver is told.

use super::queue::{Message, Queue, Receiver, Sender, State, Told, all};
use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::mm::kernel_memory_low;
use crate::process::current;
use crate::process::sysv::limits::MSG_MAX;
use crate::process::sysv::now;
use crate::sync::{Pace, SpinLock, WaitQueue, cond_resched};
use abi::{Errno, Result};
use alea_sysv::message::Wanted;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// What msgrcv asks for.
pub struct Receive {
    pub wanted: Wanted,
    /// Bytes that the caller takes.
    pub size: usize,
    /// MSG_NOERROR: what is longer is cut off.
    pub cuts: bool,
    pub no_wait: bool,
}

/// How long a message may be, in bytes.
pub fn most_bytes() -> usize {
    MSG_MAX.get() as usize
}

/// msgsnd. Errors as msgsnd(2).
pub fn send(id: i32, message: Message, no_wait: bool) -> Result<()> {
    if kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let queue = all().get(id)?;
    let size = message.data.len() as u64;
    loop {
        let mut state = queue.lock_for(0o222)?;
        if state.fits(size) {
            return put(&mut state, message);
        }
        if no_wait {
            return Err(Errno::EAGAIN);
        }
        let sender =
            try_arc(Sender { size, called: AtomicBool::new(false), queue: WaitQueue::new() })?;
        state.senders.try_push(sender.clone())?;
        drop(state);
        // Acquire: pairs with the Release of who calls.
        let called = || sender.called.load(Ordering::Acquire).then_some(());
        if sender.queue.wait_interruptible(called).is_err() {
            let mut state = queue.lock();
            leave(&mut state.senders, &sender);
            return Err(if state.gone { Errno::EIDRM } else { Errno::ERESTARTNOHAND });
        }
    }
}

/// Gives the message to the first receiver that takes it, or keeps it.
fn put(state: &mut State, message: Message) -> Result<()> {
    // Before anybody is told: what fails has changed nothing.
    state.messages.try_room(1)?;
    state.lspid = current().process().pid();
    state.stime = now();
    let mut at = 0;
    while let Some(receiver) = state.receivers.get(at) {
        cond_resched();
        if !receiver.wanted.takes(message.kind) {
            at += 1;
            continue;
        }
        let Some(receiver) = state.receivers.remove(at) else { break };
        if receiver.most < message.data.len() {
            receiver.tell(Told::Failed(Errno::E2BIG));
            continue;
        }
        state.lrpid = receiver.pid;
        state.rtime = now();
        receiver.tell(Told::Message(message));
        return Ok(());
    }
    let size = message.data.len() as i64;
    state.messages.try_push(message)?;
    state.count(1, size);
    Ok(())
}

/// msgrcv: the message, or with MSG_COPY a copy of it. Errors as msgrcv(2).
pub fn receive(id: i32, call: &Receive) -> Result<Message> {
    let queue = all().get(id)?;
    loop {
        let mut state = queue.lock_for(0o444)?;
        let kinds = state.messages.iter().map(|message| message.kind).paced();
        if let Some(at) = call.wanted.choose(kinds) {
            return take(&mut state, at, call);
        }
        if call.no_wait {
            return Err(Errno::ENOMSG);
        }
        let receiver = try_arc(Receiver {
            wanted: call.wanted,
            most: if call.cuts { usize::MAX } else { call.size },
            pid: current().process().pid(),
            told: SpinLock::new(None),
            queue: WaitQueue::new(),
        })?;
        state.receivers.try_push(receiver.clone())?;
        drop(state);
        match wait(&queue, &receiver) {
            Told::Message(message) => return Ok(message),
            Told::Failed(error) => return Err(error),
            Told::Again => {}
        }
    }
}

fn wait(queue: &Queue, receiver: &Arc<Receiver>) -> Told {
    let told = receiver.queue.wait_interruptible(|| receiver.told.lock().take());
    told.unwrap_or_else(|_| {
        let mut state = queue.lock();
        let told = receiver.told.lock().take();
        told.unwrap_or_else(|| {
            leave(&mut state.receivers, receiver);
            Told::Failed(Errno::ERESTARTNOHAND)
        })
    })
}

/// Takes the message at a place, or copies it.
fn take(state: &mut State, at: usize, call: &Receive) -> Result<Message> {
    let length = state.messages.get(at).map_or(0, |message| message.data.len());
    if call.size < length && !call.cuts {
        return Err(Errno::E2BIG);
    }
    if let Wanted::At(_) = call.wanted {
        return copy(state, at, call.size.min(most_bytes()));
    }
    let message = state.messages.remove(at).ok_or(Errno::ENOMSG)?;
    if state.messages.is_empty() {
        state.messages = VecDeque::new();
    }
    state.lrpid = current().process().pid();
    state.rtime = now();
    state.count(-1, -(length as i64));
    state.call_senders();
    Ok(message)
}

/// MSG_COPY: as on Linux, what is longer than `most` is not copied, not even a part of it.
fn copy(state: &State, at: usize, most: usize) -> Result<Message> {
    let message = state.messages.get(at).ok_or(Errno::ENOMSG)?;
    if message.data.len() > most {
        return Err(Errno::EINVAL);
    }
    let mut data = Vec::with_room(message.data.len())?;
    data.try_extend_from_slice(&message.data)?;
    Ok(Message { kind: message.kind, data })
}

fn leave<T>(list: &mut VecDeque<Arc<T>>, who: &Arc<T>) {
    if let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, who)) {
        list.remove(at);
    }
}
