//! AF_NETLINK: NETLINK_ROUTE, by which programs ask for interfaces, addresses and routes, and NETLINK_KOBJECT_UEVENT, by which they
//! hear of devices.
//!
//! A request is answered at once, into the socket's own queue. Owns the queues, the set of port numbers and the list of sockets that
//! hear of devices. Never announces an interface, address or route: none ever changes; events of devices come from `fs::uevent`.
//! Locks: `Stream` for a queue; the set of port numbers, which may be taken inside it, and the list are a `Leaf` each.

use super::message::{HEADER, MULTI, Queued, error_message, put_message};
use super::route;
use crate::mm::fallible::{TryGrow, TryMap, TrySlice, try_arc, try_copy};
use crate::mm::{Sink, Source};
use crate::net::filter::Shape;
use crate::net::name::SockName;
use crate::net::option::{Options, known};
use crate::net::socket::{Control, Incoming, NetSocket, Outgoing, Who, copy_in};
use crate::random;
use crate::sync::pace::Pace;
use crate::sync::{PollTable, SpinLock, WaitQueue, cond_resched, level};
use crate::vfs::PollEvents;
use crate::vfs::notify::Reason;
use abi::net::{AF_NETLINK, NETLINK_ROUTE, NlMsgHdr, SockaddrNl, netlink};
use abi::socket::{MsgFlags, SCM_CREDENTIALS, SOCK_DGRAM, SOCK_RAW, SOL_SOCKET, so};
use abi::{Errno, Result};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::any::Any;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromBytes;

/// Events of devices: what a write to a `uevent` file announces.
const NETLINK_KOBJECT_UEVENT: i32 = 15;

/// Flags and types of a message.
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const TYPE_DONE: u16 = 3;
const FIRST_REQUEST: u16 = 16;
/// Protocols and port numbers that are taken: each protocol has its own numbers.
static PORTS: SpinLock<BTreeMap<(i32, u32), ()>, level::Leaf> = SpinLock::new(BTreeMap::new());

/// The port numbers that a socket may be given whose process has one already, as on Linux.
const OTHER_PORTS: RangeInclusive<u32> = 0x8000_0000..=u32::MAX - 4096;
const OTHER_PORTS_COUNT: u32 = *OTHER_PORTS.end() - *OTHER_PORTS.start() + 1;

/// The sockets that may hear of devices.
static LISTENERS: SpinLock<BTreeMap<u64, Weak<Netlink>>, level::Leaf> =
    SpinLock::new(BTreeMap::new());
/// The next key of the list. Relaxed: only uniqueness matters.
static NEXT_LISTENER: AtomicU64 = AtomicU64::new(1);
/// The group that hears of devices from the kernel.
const KERNEL_GROUP: u32 = 1;

/// Gives an event of a device to every socket that listens. One that has no room for it loses it, and reports ENOBUFS.
pub fn carry(event: &[u8]) {
    let mut after = 0;
    loop {
        let listeners = LISTENERS.lock();
        let next = listeners.range(after + 1..).next();
        let Some((key, socket)) = next.map(|(key, weak)| (*key, weak.upgrade())) else { return };
        drop(listeners);
        after = key;
        if let Some(socket) = socket {
            let hears = socket.state.lock().groups & u64::from(KERNEL_GROUP) != 0;
            if hears && event.try_owned().and_then(|event| socket.reply(event)).is_err() {
                socket.state.lock().lose();
            }
        }
    }
}

/// One socket.
pub struct Netlink {
    kind: u32,
    pub(super) protocol: i32,
    who: Who,
    pub(super) options: Options,
    pub(super) state: SpinLock<State, level::Stream>,
    pub(super) for_reading: WaitQueue,
    /// For those who wait until a note has room.
    pub(super) for_notes: WaitQueue,
    /// Its key in the list of those that may hear of devices; 0 for none.
    listener: u64,
}

pub(super) struct State {
    port: Option<u32>,
    /// One bit for each group, from the first on.
    pub groups: u64,
    /// It was asked to join or to leave one: only then LIST_MEMBERSHIPS tells of them.
    pub has_groups: bool,
    /// One bit for each option that is on.
    pub wishes: u32,
    peer: (u32, u32),
    pub queue: VecDeque<Queued>,
    pub held: usize,
    /// Notes that are to be told: the queue has room for them, and `held` counts them.
    pub notes: usize,
    pub closed: bool,
    error: Option<Errno>,
}

impl State {
    /// A message found no room. Who does not want to know (NETLINK_NO_ENOBUFS) does not hear of it.
    fn lose(&mut self) {
        if self.wishes & 1 << netlink::NO_ENOBUFS == 0 {
            self.error = Some(Errno::ENOBUFS);
        }
    }
}

/// A new socket.
pub fn create(kind: u32, protocol: i32, who: Who) -> Result<Arc<dyn NetSocket>> {
    if kind != SOCK_RAW && kind != SOCK_DGRAM {
        return Err(Errno::ESOCKTNOSUPPORT);
    }
    if protocol != NETLINK_ROUTE && protocol != NETLINK_KOBJECT_UEVENT {
        return Err(Errno::EPROTONOSUPPORT);
    }
    let state = State {
        port: None,
        groups: 0,
        has_groups: false,
        wishes: 0,
        peer: (0, 0),
        queue: VecDeque::new(),
        held: 0,
        notes: 0,
        closed: false,
        error: None,
    };
    let hears_devices = protocol == NETLINK_KOBJECT_UEVENT;
    let listener = if hears_devices { NEXT_LISTENER.fetch_add(1, Ordering::Relaxed) } else { 0 };
    let socket = try_arc(Netlink {
        kind,
        protocol,
        who,
        options: Options::for_datagrams(),
        state: SpinLock::new(state),
        for_reading: WaitQueue::new(),
        for_notes: WaitQueue::new(),
        listener,
    })?;
    if hears_devices {
        LISTENERS.lock().try_put(listener, Arc::downgrade(&socket))?;
    }
    Ok(socket)
}

fn decode(name: &[u8]) -> Result<SockaddrNl> {
    let (addr, _) = SockaddrNl::read_from_prefix(name).map_err(|_| Errno::EINVAL)?;
    if addr.family == AF_NETLINK { Ok(addr) } else { Err(Errno::EINVAL) }
}

fn encode(pid: u32, groups: u32) -> SockName {
    let name: [u8; size_of::<SockaddrNl>()] =
        zerocopy::transmute!(SockaddrNl { family: AF_NETLINK, pad: 0, pid, groups });
    SockName::of(&name, &ArrayVec::<u8, 0>::new(), &[])
}

impl Netlink {
    /// Takes a port number if it has none: the one asked for, or for 0 the process's number if it is free, else any free one.
    fn claim(&self, asked: u32) -> Result<()> {
        if asked != 0 {
            return self.take(&[asked]);
        }
        match self.take(&[self.who.pid.cast_unsigned()]) {
            // As on Linux any of two thousand million others: so nobody can take those that would be tried first.
            Err(Errno::EADDRINUSE) => {
                let drawn: [u64; 16] = random::secret_words();
                let others =
                    drawn.map(|word| OTHER_PORTS.start() + word as u32 % OTHER_PORTS_COUNT);
                self.take(&others)
            }
            taken => taken,
        }
    }

    /// Takes the first of these port numbers that is free, if it has none.
    fn take(&self, candidates: &[u32]) -> Result<()> {
        let mut state = self.state.lock();
        if state.port.is_some() {
            return Ok(());
        }
        let mut ports = PORTS.lock();
        let is_free = |port: &&u32| !ports.contains_key(&(self.protocol, **port));
        let port = *candidates.iter().find(is_free).ok_or(Errno::EADDRINUSE)?;
        ports.try_put((self.protocol, port), ())?;
        state.port = Some(port);
        Ok(())
    }

    /// Answers all requests in a message.
    fn answer(&self, mut bytes: &[u8], port: u32) -> Result<()> {
        while let Ok((header, _)) = NlMsgHdr::read_from_prefix(bytes) {
            cond_resched();
            let len = header.len as usize;
            if len < HEADER || len > bytes.len() {
                return Ok(());
            }
            let body = &bytes[HEADER..len];
            if header.flags & REQUEST != 0 && header.kind >= FIRST_REQUEST {
                self.answer_one(&header, body, port)?;
            } else if header.flags & ACK != 0 {
                self.reply(error_message(&header, body, None, port)?)?;
            }
            bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(())
    }

    fn answer_one(&self, header: &NlMsgHdr, body: &[u8], port: u32) -> Result<()> {
        let reply = NlMsgHdr { pid: port, seq: header.seq, ..NlMsgHdr::default() };
        let dump = header.flags & DUMP == DUMP;
        match route::answer(header.kind, dump, body, reply, self.who) {
            Ok(mut messages) => {
                if dump {
                    let done = NlMsgHdr { kind: TYPE_DONE, flags: MULTI, ..reply };
                    put_message(&mut messages, done, &0i32.to_ne_bytes())?;
                }
                if !messages.is_empty() {
                    self.reply(messages)?;
                }
                if header.flags & ACK != 0 && !dump {
                    self.reply(error_message(header, body, None, port)?)?;
                }
                Ok(())
            }
            Err(error) if self.state.lock().wishes & 1 << netlink::CAP_ACK != 0 => {
                self.reply(error_message(header, &[], Some(error), port)?)
            }
            Err(error) => self.reply(error_message(header, body, Some(error), port)?),
        }
    }

    fn reply(&self, mut message: Vec<u8>) -> Result<()> {
        let cost = message.len();
        match self.options.filter.admits(&message, 1, Shape::bare) {
            None => return Ok(()),
            Some(taken) => message.truncate(taken),
        }
        let mut state = self.state.lock();
        if state.held + cost > self.options.receive_buffer() {
            state.lose();
            return Ok(());
        }
        let notes = state.notes;
        state.queue.try_room(notes + 1)?;
        state.queue.try_push(Queued { bytes: message, cost })?;
        state.held += cost;
        drop(state);
        self.for_reading.wake_events(PollEvents::READABLE.bits());
        self.options.listeners.tell(Reason::In);
        Ok(())
    }

    /// The first message, taken out or copied, waiting for one, and its control data.
    fn next(&self, nonblock: bool, peek: bool) -> Result<(Vec<u8>, Vec<Control>)> {
        let take = || {
            let mut state = self.state.lock();
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            let first = state.queue.front()?;
            // What can fail comes first: a message that was taken is given.
            let copy = peek.then(|| try_copy(&first.bytes)).transpose();
            let (copy, control) = match copy.and_then(|copy| Ok((copy, self.control()?))) {
                Ok(both) => both,
                Err(error) => return Some(Err(error)),
            };
            let message = match copy {
                Some(copy) => copy,
                None => {
                    let message = state.queue.pop_front()?;
                    state.held -= message.cost;
                    message.bytes
                }
            };
            Some(Ok((message, control)))
        };
        let taken = self.options.timeouts().begin_receive().take(&self.for_reading, nonblock, take);
        self.for_notes.wake_all();
        taken
    }

    /// The control data of a message.
    fn control(&self) -> Result<Vec<Control>> {
        let mut control = Vec::new();
        if self.options.is_on(const { known(SOL_SOCKET, so::PASSCRED) }) {
            // Process 0, user 0 and group 0: the kernel.
            let data = [0u8; 12].try_owned()?;
            control.try_push(Control { level: SOL_SOCKET, kind: SCM_CREDENTIALS, data })?;
        }
        Ok(control)
    }
}

impl NetSocket for Netlink {
    fn domain(&self) -> u16 {
        AF_NETLINK
    }
    fn kind(&self) -> u32 {
        self.kind
    }
    fn protocol(&self) -> i32 {
        self.protocol
    }
    fn options(&self) -> &Options {
        &self.options
    }

    fn bind(&self, name: &[u8], _who: Who) -> Result<()> {
        let addr = decode(name)?;
        if self.state.lock().port.is_some_and(|port| port != addr.pid) {
            return Err(Errno::EINVAL);
        }
        self.claim(addr.pid)?;
        let mut state = self.state.lock();
        state.has_groups |= addr.groups != 0;
        state.groups = state.groups & !u64::from(u32::MAX) | u64::from(addr.groups);
        Ok(())
    }

    fn connect(&self, name: &[u8], _nonblock: bool) -> Result<()> {
        if crate::net::addr::family_of(name)? == abi::socket::AF_UNSPEC {
            self.state.lock().peer = (0, 0);
            return Ok(());
        }
        let addr = decode(name)?;
        if addr.pid != 0 && !self.who.admin {
            return Err(Errno::EPERM);
        }
        self.claim(0)?;
        self.state.lock().peer = (addr.pid, addr.groups);
        Ok(())
    }

    fn shut_down(&self, _read: bool, _write: bool) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn name(&self) -> SockName {
        let state = self.state.lock();
        encode(state.port.unwrap_or(0), state.groups as u32)
    }

    fn peer_name(&self) -> Result<SockName> {
        let (pid, groups) = self.state.lock().peer;
        Ok(encode(pid, groups))
    }

    fn send(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        if how.flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        if src.remaining() == 0 {
            return Err(Errno::ENODATA);
        }
        let to = match how.to {
            Some(name) => decode(name)?.pid,
            None => self.state.lock().peer.0,
        };
        if to != 0 || self.protocol != NETLINK_ROUTE {
            // The only one to talk to is the kernel.
            return Err(if self.who.admin { Errno::ECONNREFUSED } else { Errno::EPERM });
        }
        self.claim(0)?;
        let len = src.remaining();
        if len > self.options.send_buffer() - 32 {
            return Err(Errno::EMSGSIZE);
        }
        let bytes = copy_in(src, len)?;
        let port = self.state.lock().port.unwrap_or(0);
        self.answer(&bytes, port)?;
        Ok(len)
    }

    fn receive(&self, dst: &mut Sink<'_>, flags: MsgFlags, nonblock: bool) -> Result<Incoming> {
        if flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        let (message, control) = self.next(nonblock, flags.contains(MsgFlags::PEEK))?;
        let full = message.len();
        let wanted = full.min(dst.remaining());
        let bytes = if wanted == 0 { 0 } else { dst.put(&message[..wanted])? };
        if bytes < wanted {
            return Err(Errno::EFAULT);
        }
        let hears_devices = self.listener != 0;
        let from = Some(encode(0, if hears_devices { KERNEL_GROUP } else { 0 }));
        Ok(Incoming { bytes, full, from, control, ..Incoming::default() })
    }

    fn take_error(&self) -> Option<Errno> {
        self.state.lock().error.take()
    }

    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> Result<()> {
        self.set(level, option, value)
    }

    fn get_option(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>> {
        self.get(level, option, room)
    }

    fn poll(&self, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_reading);
        let state = self.state.lock();
        let mut ready = PollEvents::WRITABLE | PollEvents::WRBAND;
        if !state.queue.is_empty() {
            ready |= PollEvents::READABLE;
        }
        if state.error.is_some() {
            ready |= PollEvents::ERR;
        }
        ready
    }

    fn readable_bytes(&self) -> Result<usize> {
        Err(Errno::ENOTTY)
    }
    fn unsent_bytes(&self) -> Result<usize> {
        Err(Errno::ENOTTY)
    }

    fn concrete(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self)
    }

    fn close(&self) {
        let mut state = self.state.lock();
        let port = state.port.take();
        state.closed = true;
        let queue = core::mem::take(&mut state.queue);
        drop(state);
        self.for_notes.wake_all();
        if let Some(port) = port {
            PORTS.lock().remove(&(self.protocol, port));
        }
        queue.into_iter().paced().for_each(drop);
        if self.listener != 0 {
            LISTENERS.lock().remove(&self.listener);
        }
    }
}
