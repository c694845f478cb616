//! Sending and receiving on raw sockets.
//!
//! Owns the identification numbers of IPv4 packets. Never copies user memory under a spinlock. Locks: those of `raw`.

use super::ident::Ident;
use super::packet::{
    HEADER, MAX, Message, complete, echo, ends, seal_icmp6, tally, tally_unreachable, unreachable,
    with_header,
};
use super::part::{Ends, Part};
use super::raw::{ALL, Raw, Style};
use crate::mm::fallible::{TryGrow, TryVec, try_copy};
use crate::mm::{Sink, Source};
use crate::net::addr::{Family, Name, decode_v4, family_of};
use crate::net::control::{self, PacketInfo};
use crate::net::filter::{Shape, Way};
use crate::net::inbox::report::{self, Origin, Report};
use crate::net::inbox::{Datagram, Taken};
use crate::net::option::{Known, Options, known, more};
use crate::net::socket::{Incoming, Outgoing, copy_in};
use crate::sync::Pace;
use crate::time;
use crate::vfs::PollEvents;
use crate::vfs::notify::Reason;
use abi::net::{IPPROTO_ICMP, IPPROTO_ICMPV6};
use abi::socket::{AF_UNSPEC, MsgFlags, SOL_SOCKET};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU16, Ordering};

/// The time to live of what this machine answers.
const TTL: u8 = 64;

/// SO_MARK.
const MARK: Known = known(SOL_SOCKET, more::MARK);

/// The identification of the next IPv4 packet. Relaxed: any number does.
static NEXT_NUMBER: AtomicU16 = AtomicU16::new(1);

/// How many raw sockets of a family there are, without ping sockets.
pub fn count(family: Family) -> Result<usize> {
    let mut count = 0;
    ALL.for_each(|socket| {
        count += usize::from(socket.family == family && socket.style == Style::Raw);
    })?;
    Ok(count)
}

/// A socket, as /proc shows it.
pub struct Shown {
    /// In place of a port: the protocol, or the identifier of a ping socket.
    pub number: u16,
    pub local: SocketAddr,
    pub peer: Option<SocketAddr>,
    pub held: usize,
    pub uid: u32,
    pub inode: u64,
}

/// A window of the sockets of a family and style, by number, and where the next begins; the first is at 0. Ping sockets are there
/// once they have a number, and in its order within a window.
pub fn shown(family: Family, style: Style, from: u64) -> Result<(Vec<Shown>, Option<u64>)> {
    let mut all = Vec::new();
    let (sockets, next) = ALL.window(from)?;
    let is_one = |socket: &&Arc<Raw>| socket.family == family && socket.style == style;
    for socket in sockets.iter().filter(is_one).paced() {
        let state = socket.state.lock();
        let number = match style {
            Style::Raw => u16::try_from(socket.protocol).ok(),
            Style::Ping => state.ident.as_ref().map(Ident::number),
        };
        let port = |peer: SocketAddr| if style == Style::Raw { 0 } else { peer.port() };
        let closed = state.closed || number.is_none();
        let number = number.unwrap_or(0);
        let shown = Shown {
            number,
            local: SocketAddr::new(state.local, number),
            peer: state.peer.map(|peer| SocketAddr::new(peer.ip(), port(peer))),
            held: state.inbox.held(),
            uid: socket.uid,
            inode: socket.options.inode(),
        };
        drop(state);
        if !closed {
            all.try_push(shown)?;
        }
    }
    all.sort_by_key(|shown| shown.number);
    Ok((all, next))
}

/// Gives a message to all sockets that want it; `whole` is it with its IPv4 header.
fn deliver(message: &Message<'_>, whole: &[u8], (hops, class): (u8, u8), sender: Option<&Options>) {
    let now = time::realtime().0;
    tally(message, whole, class);
    let give = |socket: &Raw, shown: &[u8]| {
        // As Linux does, whatever lies where others have their port.
        let port = message.body.get(2..4).map_or(0, |at| u16::from_be_bytes([at[0], at[1]]));
        let info = PacketInfo { to: SocketAddr::new(message.to, port), hops, class, time: now };
        let from = SocketAddr::new(message.from, 0);
        let marked = || sender.map_or(0, |sender| sender.get(MARK).cast_unsigned());
        let shape = || socket.shape(message, shown, (hops, class), marked());
        let Some(taken) = socket.options.filter.admits(shown, 1, shape) else { return };
        if let Ok(bytes) = try_copy(&shown[..taken]) {
            socket.enqueue(Datagram::new(bytes, from, info));
        }
    };
    let ident = message.answers();
    let mut answered: Option<(u64, Arc<Raw>)> = None;
    let told = ALL.for_each(|socket| {
        if socket.wants(message) {
            give(socket, whole);
        }
        let serial = ident.and_then(|ident| socket.is_answered_by(ident, message.to));
        if let Some(serial) = serial
            && answered.as_ref().is_none_or(|(most, _)| serial > *most)
        {
            answered = Some((serial, socket.clone()));
        }
    });
    // Without memory it is lost for those that are left, as on a bad line.
    if let (Ok(()), Some((_, socket))) = (told, answered) {
        give(&socket, message.body);
    }
}

/// Sends a message over the loopback, and answers it if it is an echo request.
fn transmit(message: &Message<'_>, whole: &[u8], marks: (u8, u8), sender: &Options) {
    deliver(message, whole, marks, Some(sender));
    let Some(answer) = echo(message) else { return };
    let answer =
        Message { protocol: message.protocol, from: message.to, to: message.from, body: &answer };
    if let Ok(whole) = with_header(&answer, TTL, marks.1) {
        deliver(&answer, &whole, (TTL, marks.1), None);
    }
}

/// Shows the raw sockets of ICMP the message that nobody has the port of a datagram.
pub fn tell_unreachable(protocol: i32, to: SocketAddr, sent: &Datagram) {
    if ALL.is_empty() {
        return tally_unreachable(sent, to.is_ipv6());
    }
    // Without memory it is lost, as on a bad line.
    let Ok(body) = unreachable(protocol, to, sent) else { return };
    let (own, from) = (to.ip(), sent.from.ip());
    let v6 = own.is_ipv6();
    let message = Message {
        protocol: if v6 { IPPROTO_ICMPV6 } else { IPPROTO_ICMP },
        from: own,
        to: from,
        body: &body,
    };
    // Internetwork control.
    let class = if v6 { 0 } else { sent.info.class | 0xc0 };
    if let Ok(whole) = with_header(&message, TTL, class) {
        deliver(&message, &whole, (TTL, class), None);
    }
}

impl Raw {
    fn wants(&self, message: &Message<'_>) -> bool {
        if self.style != Style::Raw || self.protocol != message.protocol {
            return false;
        }
        let state = self.state.lock();
        let bound = state.local.is_unspecified() || state.local == message.to;
        let from_peer = state.peer.is_none_or(|peer| peer.ip() == message.from);
        let kind = message.body.first().copied().unwrap_or(0);
        let bit =
            state.filter.get(usize::from(kind / 8)).is_some_and(|b| b & (1 << (kind % 8)) != 0);
        let one_family = message.to.is_ipv4() == (self.family == Family::V4);
        one_family && bound && from_peer && !bit && !state.closed
    }

    /// What stands before the bytes that it is shown of a message: the header of IP, unless it is among them.
    fn shape(
        &self,
        message: &Message<'_>,
        shown: &[u8],
        (hops, class): (u8, u8),
        mark: u32,
    ) -> Shape {
        if self.is_raw_of(Family::V4) {
            return Shape::with_ip(shown, mark);
        }
        let at = |ip| SocketAddr::new(ip, 0);
        let (from, to) = (at(message.from), at(message.to));
        let way = Way { protocol: message.protocol, from, to, hops, class };
        Shape::ip(&way, message.body.len(), mark)
    }

    fn enqueue(&self, packet: Datagram) {
        let mut state = self.state.lock();
        if state.closed || !state.inbox.push(packet, self.options.receive_buffer()) {
            return;
        }
        drop(state);
        self.for_reading.wake_events(PollEvents::READABLE.bits());
        self.options.listeners.tell(Reason::In);
    }

    /// The name that a message goes to: EDESTADDRREQ if neither the caller nor `connect` has said.
    fn send_name(&self, to: Option<&[u8]>) -> Result<Name> {
        let Some(bytes) = to else {
            let addr = self.state.lock().peer.ok_or(Errno::EDESTADDRREQ)?;
            return Ok(Name { addr, family: self.family, scope: 0 });
        };
        if self.family == Family::V4 && family_of(bytes)? == AF_UNSPEC {
            return decode_v4(bytes);
        }
        Name::decode(self.family, bytes)
    }

    pub(super) fn send_message(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        let len = src.remaining();
        if len > MAX {
            return Err(Errno::EMSGSIZE);
        }
        // As on Linux, a ping socket looks at the request before the flags and the name.
        let request = match self.style {
            Style::Ping => Some(self.request(src, len, how.flags)?),
            Style::Raw => None,
        };
        if how.flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        let name = self.send_name(how.to)?;
        let v6 = self.family == Family::V6;
        let wishes = control::wishes(how.control, v6)?;
        let (to, source) = self.destination(name)?;
        let (local, written) = {
            let state = self.state.lock();
            (state.local, state.header_included)
        };
        let own = if local.is_unspecified() { source } else { local };
        let from = wishes.from.unwrap_or(own);
        let (hops, class) = wishes.marks(&self.options, v6);
        if written {
            return self.send_packet(src, len, from);
        }
        if self.protocol == IPPROTO_ICMP && !v6 && len < 2 {
            // Linux looks at the type and the code, and they are not there.
            return Err(Errno::EFAULT);
        }
        let more = how.flags.contains(MsgFlags::MORE);
        if self.style == Style::Raw && (more || self.cork.has_any()) {
            return self.send_part(src, (from, to), (hops, class), more);
        }
        self.check_length(len, to)?;
        let body = match request {
            Some(request) => request,
            None => copy_in(src, len)?,
        };
        self.send_body(body, (from, to), (hops, class))?;
        Ok(len)
    }

    /// # Errors
    /// `EMSGSIZE` if a packet cannot be that long.
    fn check_length(&self, len: usize, to: IpAddr) -> Result<()> {
        let most = if to.is_ipv6() { MAX } else { MAX - HEADER };
        if len <= most {
            return Ok(());
        }
        if to.is_ipv4() {
            self.too_long(to);
        }
        Err(Errno::EMSGSIZE)
    }

    fn send_body(
        &self,
        mut body: Vec<u8>,
        (from, to): Ends,
        (hops, class): (u8, u8),
    ) -> Result<()> {
        if self.protocol == IPPROTO_ICMPV6 && to.is_ipv6() {
            seal_icmp6(&mut body, from, to);
        }
        let message = Message { protocol: self.protocol, from, to, body: &body };
        transmit(&message, &with_header(&message, hops, class)?, (hops, class), &self.options);
        Ok(())
    }

    /// Begins a message, or adds to the one that was begun, and sends it unless there is more. The first call says how it goes,
    /// the last one from where to where.
    #[cold]
    fn send_part(
        &self,
        src: &mut Source<'_>,
        ends: Ends,
        marks: (u8, u8),
        more: bool,
    ) -> Result<usize> {
        let len = src.remaining();
        let mut held = self.cork.lock();
        let part = held.get_or_insert_with(|| Part { marks, body: Vec::new() });
        let added = self.add(src, part, ends.1);
        // As on Linux, all of it is lost by an error.
        let whole = if added.is_err() || !more { held.take() } else { None };
        self.cork.note(&held);
        drop(held);
        added?;
        if let Some(Part { marks, body }) = whole {
            self.send_body(body, ends, marks)?;
        }
        Ok(len)
    }

    fn add(&self, src: &mut Source<'_>, part: &mut Part, to: IpAddr) -> Result<()> {
        let len = src.remaining();
        self.check_length(part.body.len().saturating_add(len), to)?;
        let bytes = copy_in(src, len)?;
        part.body.try_extend_from_slice(&bytes).map_err(|_| Errno::ENOBUFS)
    }

    /// The message does not fit into a packet: a sender that asks for reports gets one.
    fn too_long(&self, to: IpAddr) {
        if !report::wanted(&self.options, false) {
            return;
        }
        let report = Report {
            errno: Errno::EMSGSIZE,
            origin: Origin::Local,
            info: MAX as u32,
            to: SocketAddr::new(to, 0),
            bytes: Vec::new(),
        };
        self.state.lock().inbox.push_report(report, self.options.receive_buffer());
        self.for_reading.wake_all();
        self.options.listeners.tell(Reason::Error);
    }

    /// Sends a packet whose header the program wrote.
    fn send_packet(&self, src: &mut Source<'_>, len: usize, source: IpAddr) -> Result<usize> {
        if len < HEADER {
            return Err(Errno::EINVAL);
        }
        let mut packet = copy_in(src, len)?;
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed).max(1);
        let header = complete(&mut packet, source, number)?;
        let (from, to) = ends(&packet);
        let body = packet.get(header..).unwrap_or_default();
        let message = Message { protocol: i32::from(packet[9]), from, to, body };
        transmit(&message, &packet, (packet[8], packet[1]), &self.options);
        Ok(len)
    }

    pub(super) fn receive_message(
        &self,
        dst: &mut Sink<'_>,
        flags: MsgFlags,
        nonblock: bool,
    ) -> Result<Incoming> {
        if flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        if flags.contains(MsgFlags::ERRQUEUE) {
            let taken = self.state.lock().inbox.pop_told(self.family, &self.options);
            let (told, control) = taken?;
            return told.read(dst, self.family, control);
        }
        let next = self.next(nonblock, flags.contains(MsgFlags::PEEK))?;
        let Some((packet, control)) = next else { return Ok(Incoming::default()) };
        packet.read(dst, self.family, &self.options, control)
    }

    /// The first message, taken out or copied, waiting for one; `None` when nothing more is to be received.
    fn next(&self, nonblock: bool, peek: bool) -> Result<Option<Taken<Datagram>>> {
        let take = || self.state.lock().inbox.next(nonblock, peek, None, &self.options);
        self.options.timeouts().begin_receive().take(&self.for_reading, nonblock, take)
    }
}
