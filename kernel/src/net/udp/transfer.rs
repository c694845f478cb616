//! Sending and receiving datagrams.

use super::udp::Udp;
use super::ways::Ways;
use crate::mm::fallible::{TryVec, try_copy};
use crate::mm::{Sink, Source};
use crate::net::addr::{Class, Family, LO_MTU, Name, class, decode_v4, family_of};
use crate::net::control::{self, PacketInfo, Wishes};
use crate::net::count::{self, Datagrams, Flow};
use crate::net::filter::{Shape, Way};
use crate::net::inbox::report::{self, Origin, Report, Told};
use crate::net::inbox::{Datagram, Taken};
use crate::net::option::{Options, known, more};
use crate::net::socket::{Incoming, Outgoing, copy_in};
use crate::net::{ports, raw};
use crate::time;
use crate::vfs::PollEvents;
use crate::vfs::notify::Reason;
use abi::net::{AF_INET, AF_INET6, IPPROTO_UDP, IPPROTO_UDPLITE, UDP_CORK};
use abi::socket::{AF_UNSPEC, MsgFlags, SOL_SOCKET};
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// The longest datagrams, without headers.
const MAX_V4: usize = 65_507;
const MAX_V6: usize = 65_527;
const UDP_HEADER: usize = 8;

impl Udp {
    /// The name that a datagram goes to: EDESTADDRREQ if neither the caller nor `connect` has said.
    fn send_name(&self, to: Option<&[u8]>) -> Result<Name> {
        let state = self.state.lock();
        let peer = state.peer.map(|addr| Name { addr, family: self.family, scope: 0 });
        drop(state);
        let Some(bytes) = to else { return peer.ok_or(Errno::EDESTADDRREQ) };
        let name = match (self.family, family_of(bytes)?) {
            (Family::V6, AF_UNSPEC) => return peer.ok_or(Errno::EDESTADDRREQ),
            (Family::V4, AF_UNSPEC) => decode_v4(bytes)?,
            (Family::V6, family) if family != AF_INET && family != AF_INET6 => {
                return Err(Errno::EINVAL);
            }
            _ => Name::decode_either(self.family, bytes)?,
        };
        if name.addr.port() == 0 { Err(Errno::EINVAL) } else { Ok(name) }
    }

    pub(super) fn send_datagram(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        let len = src.remaining();
        if len > 0xffff && self.family == Family::V4 {
            return Err(Errno::EMSGSIZE);
        }
        if how.flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.is_corked(how.flags) {
            return self.send_part(src, how);
        }
        let ways = self.ways(len, how)?;
        let datagram = self.prepare(src, &ways)?;
        self.tell_uncopied(u32::from(self.is_uncopied(how.flags)));
        self.carry(ways.to, datagram, ways.flow);
        Ok(len)
    }

    /// Whether the sender is to be told when the bytes of this call may be used again.
    fn is_uncopied(&self, flags: MsgFlags) -> bool {
        flags.contains(MsgFlags::ZEROCOPY)
            && self.options.is_on(const { known(SOL_SOCKET, more::ZEROCOPY) })
    }

    /// Tells that of so many calls, before the datagram is anywhere, as on Linux.
    #[inline]
    fn tell_uncopied(&self, calls: u32) {
        if calls > 0 {
            self.state.lock().inbox.push_sends(calls);
            self.tell_error();
        }
    }

    /// Where a datagram goes, and how.
    fn ways(&self, len: usize, how: &Outgoing<'_>) -> Result<Ways> {
        self.bind_any()?;
        let name = self.send_name(how.to)?;
        let v6 = name.addr.is_ipv6();
        let wishes = control::wishes(how.control, v6)?;
        let (to, source) = self.destination(name)?;
        self.check_length(len, to)?;
        let from = self.source(to, source, &wishes)?;
        let (hops, class) = wishes.marks(&self.options, v6);
        let flow = Flow { v6, lite: self.protocol == IPPROTO_UDPLITE };
        Ok(Ways { to, from, hops, class, flow, uncopied: 0 })
    }

    /// # Errors
    /// `EMSGSIZE` if a packet cannot be that long.
    fn check_length(&self, len: usize, to: SocketAddr) -> Result<()> {
        if len > if to.is_ipv6() { MAX_V6 } else { MAX_V4 } {
            self.too_long(to);
            return Err(Errno::EMSGSIZE);
        }
        Ok(())
    }

    /// A datagram of what is to be sent.
    fn prepare(&self, src: &mut Source<'_>, ways: &Ways) -> Result<Datagram> {
        let bytes = copy_in(src, src.remaining()).inspect_err(|error| {
            if *error == Errno::ENOBUFS {
                count::datagrams(Datagrams::NoMemory, ways.flow);
            }
        })?;
        let mut state = self.state.lock();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.inbox.is_write_shut() {
            return Err(Errno::EPIPE);
        }
        drop(state);
        let Ways { to, from, hops, class, .. } = *ways;
        let info = PacketInfo { to, hops, class, time: time::realtime().0 };
        Ok(Datagram::new(bytes, from, info))
    }

    /// Takes a datagram over the loopback, to the socket that it is for.
    fn carry(&self, to: SocketAddr, sent: Datagram, flow: Flow) {
        let packet = (sent.bytes.len() + if flow.v6 { 48 } else { 28 }) as u64;
        count::datagrams(Datagrams::Sent, flow);
        count::packets(flow.v6, sent.info.class, 1, packet);
        let to_all = class(to.ip()) == Class::Broadcast;
        if to_all {
            count::broadcast(packet);
        }
        match ports::receiver(self.protocol, to, sent.from) {
            Some(receiver) => receiver.enqueue(sent, flow, &self.options),
            // Nobody answers what was sent to all.
            None if to_all => count::datagrams(Datagrams::Ignored, flow),
            None => {
                count::datagrams(Datagrams::NoPort, flow);
                self.unreachable(to, sent);
            }
        }
    }

    /// The datagram does not fit into a packet: a sender that asks for reports gets one.
    fn too_long(&self, to: SocketAddr) {
        let v6 = to.is_ipv6();
        if !report::wanted(&self.options, v6) {
            return;
        }
        let mut state = self.state.lock();
        // As on Linux, IPv4 tells the port of a connected socket only.
        let port = if v6 { to.port() } else { state.peer.map_or(0, |peer| peer.port()) };
        let report = Report {
            errno: Errno::EMSGSIZE,
            origin: Origin::Local,
            info: if v6 { LO_MTU as u32 } else { 65_535 },
            to: SocketAddr::new(to.ip(), port),
            bytes: Vec::new(),
        };
        state.inbox.push_report(report, self.options.receive_buffer());
        drop(state);
        self.tell_error();
    }

    fn source(&self, to: SocketAddr, source: IpAddr, wishes: &Wishes) -> Result<SocketAddr> {
        let state = self.state.lock();
        let own = (!state.local.ip().is_unspecified()).then_some(state.local.ip());
        let addr = wishes.from.or(own).unwrap_or(source);
        if wishes.from.is_some() && class(addr) != Class::Local {
            return Err(Errno::EINVAL);
        }
        if addr.is_ipv4() != to.is_ipv4() {
            return Err(Errno::ENETUNREACH);
        }
        Ok(SocketAddr::new(addr, state.local.port()))
    }

    /// Nobody has the port, as an ICMP message would say: a sender that is connected to it gets the error with its next call, and so
    /// does one without peer that asks for reports. Raw sockets see the message.
    fn unreachable(&self, to: SocketAddr, sent: Datagram) {
        let v6 = to.is_ipv6();
        raw::tell_unreachable(self.protocol, to, &sent);
        let reports = report::wanted(&self.options, v6);
        let mut state = self.state.lock();
        match state.peer {
            Some(peer) if peer != to => return,
            None if !reports => return,
            _ => {}
        }
        // Without memory for the report, the error alone is told.
        if reports && let Ok(bytes) = try_copy(report::quoted(&sent.bytes, v6)) {
            // What Linux's ICMP messages have: internetwork control, and the default time to live.
            let class = if v6 { 0 } else { sent.info.class | 0xc0 };
            let info = PacketInfo { to: sent.from, hops: 64, class, time: sent.info.time };
            let report = Report {
                errno: Errno::ECONNREFUSED,
                origin: Origin::Refused(to.ip(), info),
                info: 0,
                to,
                bytes,
            };
            state.inbox.push_report(report, self.options.receive_buffer());
        }
        state.error = Some(Errno::ECONNREFUSED);
        drop(state);
        self.tell_error();
    }

    pub(super) fn tell_error(&self) {
        self.for_reading.wake_all();
        self.options.listeners.tell(Reason::Error);
    }

    /// Takes a datagram in; without room or memory it is lost.
    fn enqueue(&self, mut datagram: Datagram, flow: Flow, sender: &Options) {
        let shape = || {
            let Datagram { from, info: PacketInfo { to, hops, class, .. }, .. } = datagram;
            let way = Way { protocol: self.protocol, from, to, hops, class };
            let mark = sender.get(const { known(SOL_SOCKET, more::MARK) }).cast_unsigned();
            Shape::udp(&way, datagram.bytes.len(), mark)
        };
        match self.options.filter.admits(&datagram.bytes, UDP_HEADER, shape) {
            None => return count::datagrams(Datagrams::Filtered, flow),
            // What is cut off takes no memory: only what is left counts.
            Some(taken) if taken < datagram.bytes.len() => match try_copy(&datagram.bytes[..taken])
            {
                Ok(bytes) => datagram.bytes = bytes,
                Err(_) => return count::datagrams(Datagrams::NoRoom, flow),
            },
            Some(_) => {}
        }
        let mut state = self.state.lock();
        if state.port.is_none() || !state.inbox.push(datagram, self.options.receive_buffer()) {
            count::datagrams(Datagrams::NoRoom, flow);
            return;
        }
        drop(state);
        self.for_reading.wake_events(PollEvents::READABLE.bits());
        self.options.listeners.tell(Reason::In);
    }

    pub(super) fn receive_datagram(
        &self,
        dst: &mut Sink<'_>,
        flags: MsgFlags,
        nonblock: bool,
    ) -> Result<Incoming> {
        if flags.contains(MsgFlags::ERRQUEUE) {
            let (told, control) = self.next_told()?;
            return told.read(dst, self.family, control);
        }
        let peek = flags.contains(MsgFlags::PEEK);
        let Some((datagram, control)) = self.next(nonblock, peek)? else {
            return Ok(Incoming::default());
        };
        let got = datagram.read(dst, self.family, &self.options, control);
        if let Ok(got) = &got {
            let counts_all = flags.contains(MsgFlags::TRUNC);
            self.peek_offset.pass(peek, if counts_all { got.full } else { got.bytes });
        }
        if got.is_ok() && !peek {
            let v6 = datagram.info.to.is_ipv6();
            let lite = self.protocol == IPPROTO_UDPLITE;
            count::datagrams(Datagrams::Received, Flow { v6, lite });
        }
        got
    }

    /// Takes what is to be told first. SO_ERROR then has the error of the next report if an ICMP message told it; else none, or
    /// after what no such message told what it had.
    fn next_told(&self) -> Result<Taken<Told>> {
        let mut state = self.state.lock();
        let taken = state.inbox.pop_told(self.family, &self.options)?;
        match state.inbox.first_told().and_then(Told::refusal) {
            None if taken.0.refusal().is_none() => {}
            error => state.error = error,
        }
        Ok(taken)
    }

    /// The first datagram, taken out or copied, waiting for one; `None` when nothing more is to be received.
    fn next(&self, nonblock: bool, peek: bool) -> Result<Option<Taken<Datagram>>> {
        let take = || {
            let mut state = self.state.lock();
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            state.inbox.next(nonblock, peek, self.peek_offset.of(peek), &self.options)
        };
        self.options.timeouts().begin_receive().take(&self.for_reading, nonblock, take)
    }
}

/// Datagrams of several calls.
impl Udp {
    /// Whether the bytes of this call are not a datagram of their own.
    fn is_corked(&self, flags: MsgFlags) -> bool {
        self.cork.has_any() || flags.contains(MsgFlags::MORE) || self.corks()
    }

    fn corks(&self) -> bool {
        self.options.is_on(const { known(IPPROTO_UDP, UDP_CORK) })
    }

    /// Begins a datagram, or adds to the one that was begun, and sends it if this is its end.
    fn send_part(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        let len = src.remaining();
        let mut held = self.cork.lock();
        let has_bytes = len > 0 || held.is_none();
        let added = match held.as_mut() {
            Some((ways, datagram)) => {
                self.check_name(how.to, ways)?;
                self.add(src, ways, datagram)
            }
            None => self.begin(src, how).map(|begun| *held = Some(begun)),
        };
        if added.is_err() {
            // As on Linux, all of it is lost, and told of what was sent before.
            if let Some((ways, _)) = held.take() {
                self.tell_uncopied(ways.uncopied);
            }
            self.cork.note(&held);
            return added.map(|()| len);
        }
        if let Some((ways, _)) = held.as_mut() {
            ways.uncopied += u32::from(has_bytes && self.is_uncopied(how.flags));
        }
        if !how.flags.contains(MsgFlags::MORE) && !self.corks() {
            self.end(held.take());
        }
        self.cork.note(&held);
        added.map(|()| len)
    }

    /// Sends what was put together: UDP_CORK was switched off.
    pub(super) fn uncork(&self) {
        let mut held = self.cork.lock();
        self.end(held.take());
        self.cork.note(&held);
    }

    fn begin(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<(Ways, Datagram)> {
        let ways = self.ways(src.remaining(), how)?;
        let datagram = self.prepare(src, &ways)?;
        Ok((ways, datagram))
    }

    /// The name that a later part is sent to counts for nothing; but a socket of IPv6 takes none of IPv4 for the datagram of the
    /// other family.
    fn check_name(&self, name: Option<&[u8]>, ways: &Ways) -> Result<()> {
        match name {
            Some(bytes) if self.family == Family::V6 && family_of(bytes)? != AF_UNSPEC => {
                let v6 = Name::decode_either(Family::V6, bytes)?.addr.is_ipv6();
                if ways.flow.v6 && !v6 { Err(Errno::EINVAL) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn add(&self, src: &mut Source<'_>, ways: &Ways, datagram: &mut Datagram) -> Result<()> {
        let len = src.remaining();
        self.check_length(datagram.bytes.len().saturating_add(len), ways.to)?;
        let bytes = copy_in(src, len)?;
        datagram.bytes.try_extend_from_slice(&bytes).map_err(|_| Errno::ENOBUFS)
    }

    fn end(&self, whole: Option<(Ways, Datagram)>) {
        if let Some((ways, mut datagram)) = whole {
            datagram.info.time = time::realtime().0;
            self.tell_uncopied(ways.uncopied);
            self.carry(ways.to, datagram, ways.flow);
        }
    }
}
