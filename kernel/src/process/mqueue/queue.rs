//! [`Queue`]: a queue, which is an inode of the file system of queues.
//!
//! Owns the messages, whose table grows with them: its user is charged for all that there may be when the queue is made, but a table of
//! megabytes in one piece is not always to be had. Never tells, wakes a poll or touches a time with the state locked. Locks: a `Stream` for the state.

use super::limits::{self, Number};
use super::message::Message;
use super::registration::Registration;
use super::waiter::Waiters;
use crate::mm::fallible::try_arc;
use crate::mm::kernel_memory_low;
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Pace, SpinLock, WaitQueue, level};
use crate::vfs::per_user::Charge;
use crate::vfs::{Cred, DevId, FileOps, Inode, InodeAttr, Metadata, Owner, SetAttr, Timestamp};
use abi::fs::{OpenFlags, S_IFREG};
use abi::ipc::MqAttr;
use abi::{Errno, Result};
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// How long a queue's file says it is, as on Linux.
const LENGTH: u64 = 80;

/// Messages that a queue takes, and bytes of each.
#[derive(Clone, Copy)]
pub struct Shape {
    pub most: i64,
    pub size: i64,
}

/// A queue.
pub struct Queue {
    _counted: Counted,
    _number: Number,
    _charge: Charge,
    attr: InodeAttr,
    /// Relaxed: for show.
    length: AtomicU64,
    pub(super) most: usize,
    pub(super) size: usize,
    pub(super) state: SpinLock<State, level::Stream>,
    /// Whoever polls it.
    pub(super) changed: WaitQueue,
}

/// What changes of it.
pub(super) struct State {
    messages: BinaryHeap<Message>,
    /// Bytes of these.
    pub bytes: u64,
    next: u64,
    pub receivers: Waiters,
    pub senders: Waiters,
    pub registered: Option<Registration>,
}

impl State {
    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Makes room for one message more: `ENOMEM`.
    pub fn make_room(&mut self) -> Result<()> {
        self.messages.try_reserve(1).map_err(|_| Errno::ENOMEM)
    }

    /// Keeps a message, for which there is room: it was made, or one was taken.
    #[expect(clippy::disallowed_methods, reason = "the caller has made room")]
    pub fn keep(&mut self, message: Message) {
        self.bytes += message.data.len() as u64;
        self.messages.push(message.in_turn(self.next));
        self.next += 1;
    }

    /// Takes the first of those of the highest priority.
    pub fn take(&mut self) -> Option<Message> {
        let message = self.messages.pop()?;
        self.bytes -= message.data.len() as u64;
        Some(message)
    }
}

impl Queue {
    /// An empty one. EINVAL, ENOSPC, EMFILE for what the caller may not have.
    pub fn new(dev: DevId, mode: u32, shape: Option<Shape>, cred: &Cred) -> Result<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(2);
        if kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let number = Number::take(cred)?;
        let (most, size) = shape.map_or_else(limits::defaults, |shape| (shape.most, shape.size));
        let (most, size) = limits::check(most, size, cred)?;
        let charge = limits::charge(most, size, cred)?;
        let owner = Owner { uid: cred.fsuid, gid: cred.fsgid };
        // Relaxed: only uniqueness matters.
        let ino = NEXT.fetch_add(1, Ordering::Relaxed);
        let mode = S_IFREG | mode & 0o7777;
        try_arc(Self {
            _counted: Counted::new(Kind::PosixQueue),
            _number: number,
            _charge: charge,
            attr: InodeAttr::new(dev, ino, mode, owner, DevId::NONE, Timestamp::now()),
            length: AtomicU64::new(LENGTH),
            most,
            size,
            state: SpinLock::new(State {
                messages: BinaryHeap::new(),
                bytes: 0,
                next: 0,
                receivers: Waiters::default(),
                senders: Waiters::default(),
                registered: None,
            }),
            changed: WaitQueue::new(),
        })
    }

    /// What mq_getattr tells of it but for the flags, which an open file has.
    pub fn told(&self) -> MqAttr {
        MqAttr {
            maxmsg: self.most as i64,
            msgsize: self.size as i64,
            curmsgs: self.state.lock().len() as i64,
            ..MqAttr::default()
        }
    }

    /// Sets all its times, but that of its making.
    pub(super) fn touch(&self) {
        let now = Timestamp::now();
        self.attr.update_times(|times| {
            (times.atime, times.mtime, times.ctime) = (now, now, now);
        });
    }

    /// It was looked at, or somebody is to be told of it.
    pub fn note_access(&self) {
        let now = Timestamp::now();
        self.attr.update_times(|times| (times.atime, times.ctime) = (now, now));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let messages = core::mem::take(&mut self.state.get_mut().messages);
        messages.into_vec().into_iter().paced().for_each(drop);
    }
}

impl Inode for Queue {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }

    fn meta(&self) -> Metadata {
        Metadata { size: self.size(), ..self.attr.metadata() }
    }

    fn size(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        // Linux leaves it at the least that a file system has.
        if change.size.is_some_and(|size| size > i32::MAX as u64) {
            return Err(Errno::EFBIG);
        }
        let applied = self.attr.apply(change);
        // As on Linux, where it is shown from then on, and means nothing.
        if let Some(size) = change.size.filter(|_| applied) {
            self.length.store(size, Ordering::Relaxed);
        }
        Ok(applied)
    }

    fn open(self: Arc<Self>, _: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(self)
    }

    fn permission(&self, _: &Cred, want: u32) -> Result<()> {
        // Nothing of this file system is executed.
        if want & crate::vfs::namei::perm::EXEC != 0 { Err(Errno::EACCES) } else { Ok(()) }
    }
}
