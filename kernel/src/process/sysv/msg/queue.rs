//! [`Queue`]: a message queue, from msgget to IPC_RMID.
//!
//! Owns the table of queues, and how many messages and bytes all of them hold. Never sleeps with a queue locked: who has to
//! wait is listed in it, and told by who lets it go on. Locks: a queue's own, which sleeps, since the search for a
//! message may be long; then `SysvTable` for the table, or `Leaf` for what one receiver is told.

use crate::base::setting::Setting;
use crate::mm::fallible::Room;
use crate::mm::kernel_memory_low;
use crate::process::current;
use crate::process::sysv::limits::{MSG_MNB, MSG_MNI, MSG_NEXT_ID};
use crate::process::sysv::now;
use crate::process::sysv::perm::{self, Perm};
use crate::process::sysv::table::{Object, Table, find_or_make};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Mutex, MutexGuard, Pace, SpinGuard, SpinLock, WaitQueue, cond_resched, level};
use crate::vfs::Cred;
use abi::ipc::{IPC_PRIVATE, MsqidDs};
use abi::{Errno, Result};
use alea_sysv::message::Wanted;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

static QUEUES: SpinLock<Table<Queue>, level::SysvTable> = SpinLock::new(Table::new());

/// Of all queues. Relaxed: figures for MSG_INFO.
pub(super) static MESSAGES: AtomicI64 = AtomicI64::new(0);
pub(super) static BYTES: AtomicI64 = AtomicI64::new(0);

/// A message.
pub struct Message {
    pub kind: i64,
    pub data: Vec<u8>,
}

/// A queue.
pub struct Queue {
    _counted: Counted,
    id: i32,
    state: Mutex<State>,
}

/// What changes of a queue. Times are in seconds, since 1970.
pub(super) struct State {
    pub perm: Perm,
    pub messages: VecDeque<Message>,
    /// Bytes of these, and how many there may be; there may be as many messages, too.
    pub bytes: u64,
    pub most: u64,
    pub stime: i64,
    pub rtime: i64,
    pub ctime: i64,
    pub lspid: i32,
    pub lrpid: i32,
    pub receivers: VecDeque<Arc<Receiver>>,
    pub senders: VecDeque<Arc<Sender>>,
    /// It is out of the table.
    pub gone: bool,
}

impl perm::State for State {
    fn perm(&self) -> &Perm {
        &self.perm
    }
    fn is_gone(&self) -> bool {
        self.gone
    }
}

/// What ends a receiver's wait.
pub(super) enum Told {
    Message(Message),
    Failed(Errno),
    /// Something has changed: it is to look again.
    Again,
}

/// A thread that waits for a message.
pub(super) struct Receiver {
    pub wanted: Wanted,
    /// It takes no longer ones.
    pub most: usize,
    pub pid: i32,
    pub told: SpinLock<Option<Told>, level::Leaf>,
    pub queue: WaitQueue,
}

/// A thread that waits for room.
pub(super) struct Sender {
    pub size: u64,
    /// It is no longer listed, and is to look again.
    pub called: AtomicBool,
    pub queue: WaitQueue,
}

impl Object for Queue {
    fn id(&self) -> i32 {
        self.id
    }
}

impl Receiver {
    pub fn tell(&self, what: Told) {
        *self.told.lock() = Some(what);
        self.queue.wake_all();
    }
}

impl Sender {
    pub fn call(&self) {
        // Release: pairs with the Acquire of the waiter, which then locks the queue anyway.
        self.called.store(true, Ordering::Release);
        self.queue.wake_all();
    }
}

impl State {
    /// Whether a message of `size` bytes fits.
    pub fn fits(&self, size: u64) -> bool {
        self.bytes.saturating_add(size) <= self.most && (self.messages.len() as u64) < self.most
    }

    /// Counts messages in or out.
    pub fn count(&mut self, messages: i64, bytes: i64) {
        self.bytes = self.bytes.wrapping_add_signed(bytes);
        MESSAGES.fetch_add(messages, Ordering::Relaxed);
        BYTES.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Lets senders look again for whom there is room now.
    pub fn call_senders(&mut self) {
        let waiting = self.senders.len();
        for _ in (0..waiting).paced() {
            let Some(sender) = self.senders.pop_front() else { return };
            if self.fits(sender.size) {
                sender.call();
            } else {
                // There is room: it was there just now.
                self.keep(sender);
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "one was taken out before")]
    fn keep(&mut self, sender: Arc<Sender>) {
        self.senders.push_back(sender);
    }

    /// Ends the wait of all receivers.
    pub fn tell_receivers(&mut self, what: impl Fn() -> Told) {
        for receiver in core::mem::take(&mut self.receivers) {
            cond_resched();
            receiver.tell(what());
        }
    }
}

impl Queue {
    /// Its state, gone or not.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Its state, if the caller may do what `wanted` asks for: `EACCES`, `EIDRM`.
    pub(super) fn lock_for(&self, wanted: u32) -> Result<MutexGuard<'_, State>> {
        perm::lock_for(&self.state, wanted)
    }

    /// What msgctl tells of it to whom `check` lets; `EIDRM`.
    pub fn told(&self, check: impl FnOnce(&Perm) -> Result<()>) -> Result<MsqidDs> {
        let state = perm::lock_if(&self.state, check)?;
        Ok(MsqidDs {
            perm: state.perm.to_abi(self.id),
            stime: state.stime,
            rtime: state.rtime,
            ctime: state.ctime,
            cbytes: state.bytes,
            qnum: state.messages.len() as u64,
            qbytes: state.most,
            lspid: state.lspid,
            lrpid: state.lrpid,
            unused: [0; 2],
        })
    }
}

/// All queues, locked.
pub(super) fn all() -> SpinGuard<'static, Table<Queue>, level::SysvTable> {
    QUEUES.lock()
}

/// Visits the queues in order; nothing is locked meanwhile.
pub fn for_each(mut visit: impl FnMut(&Queue) -> Result<()>) -> Result<()> {
    let mut from = 0;
    loop {
        cond_resched();
        let found = all().first_from(from);
        let Some((index, queue)) = found else { return Ok(()) };
        visit(&queue)?;
        from = index + 1;
    }
}

/// msgget: the identifier. Errors as msgget(2).
pub fn get(key: i32, flags: u32) -> Result<i32> {
    let cred = current().cred_arc();
    let found = |queue: &Queue| {
        let state = queue.lock();
        if state.gone {
            return Ok(None);
        }
        state.perm.check(&cred, flags).map(|()| Some(queue.id))
    };
    find_or_make(key, flags, || all().by_key(key), found, || make(key, flags, &cred))
}

/// Makes a queue; `None` if the key is taken by now.
fn make(key: i32, flags: u32, cred: &Cred) -> Result<Option<i32>> {
    if kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let state = Mutex::new(State {
        perm: Perm::new(key, flags, cred),
        messages: VecDeque::new(),
        bytes: 0,
        most: MSG_MNB.get() as u64,
        stime: 0,
        rtime: 0,
        ctime: now(),
        lspid: 0,
        lrpid: 0,
        receivers: VecDeque::new(),
        senders: VecDeque::new(),
        gone: false,
    });
    let room = Room::new()?;
    let mut queues = all();
    if key != IPC_PRIVATE && queues.by_key(key).is_some() {
        return Ok(None);
    }
    let make = |id| Queue { _counted: Counted::new(Kind::MessageQueue), id, state };
    let wish = MSG_NEXT_ID.get();
    let queue = queues.add(key, MSG_MNI.get(), wish, room, make)?;
    if wish >= 0 {
        MSG_NEXT_ID.set(-1);
    }
    Ok(Some(queue.id))
}
