//! Sending and receiving datagrams.

use super::{Datagram, Udp};
use crate::fs::PollEvents;
use crate::mm::iov::{Sink, Source};
use crate::net::addr::{Class, Family, Name, class, encode, family_of};
use crate::net::control::{self, Told, Wishes};
use crate::net::{Incoming, Outgoing, copy_in, ports};
use crate::time;
use abi::net::{AF_INET, AF_INET6, IPPROTO_IP, IPPROTO_IPV6, ip, ipv6};
use abi::socket::{AF_UNSPEC, MsgFlags};
use abi::{Errno, Result};
use core::net::{IpAddr, SocketAddr};

/// The longest datagrams.
const MAX_V4: usize = 65_507;
const MAX_V6: usize = 65_527;
/// What a datagram costs its receiver beside its bytes.
const OVERHEAD: usize = 768;

impl Udp {
    /// The name that a datagram goes to: EDESTADDRREQ if neither the caller nor `connect` has said.
    fn send_name(&self, to: Option<&[u8]>) -> Result<Name> {
        let state = self.state.lock();
        let peer = state.peer.map(|addr| Name { addr, family: self.family, scope: 0 });
        drop(state);
        let Some(bytes) = to else { return peer.ok_or(Errno::EDESTADDRREQ) };
        let name = match (self.family, family_of(bytes)?) {
            (Family::V6, AF_UNSPEC) => return peer.ok_or(Errno::EDESTADDRREQ),
            (Family::V4, AF_UNSPEC) => {
                let mut named = bytes.to_vec();
                named[..2].copy_from_slice(&AF_INET.to_ne_bytes());
                Name::decode(Family::V4, &named)?
            }
            (Family::V6, family) if family != AF_INET && family != AF_INET6 => {
                return Err(Errno::EINVAL);
            }
            _ => Name::decode_either(self.family, bytes)?,
        };
        if name.addr.port() == 0 { Err(Errno::EINVAL) } else { Ok(name) }
    }

    pub(super) fn send_datagram(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        let len = src.remaining();
        if len > 0xffff {
            return Err(Errno::EMSGSIZE);
        }
        if how.flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        self.bind_any()?;
        let name = self.send_name(how.to)?;
        let v6 = name.addr.is_ipv6();
        let wishes = control::wishes(how.control, v6)?;
        let (to, source) = self.destination(name)?;
        if len > if v6 { MAX_V6 } else { MAX_V4 } {
            return Err(Errno::EMSGSIZE);
        }
        let from = self.source(to, source, &wishes)?;
        let bytes = copy_in(src, len)?;
        {
            let mut state = self.state.lock();
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if state.write_shut {
                return Err(Errno::EPIPE);
            }
        }
        let (hops, class) = self.marks(v6, &wishes);
        let told = Told { to: to.ip(), hops, class, time: time::realtime().0 };
        match ports::receiver(self.protocol, to, from) {
            Some(receiver) => receiver.enqueue(Datagram { bytes, from, told }),
            None => self.unreachable(),
        }
        Ok(len)
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

    /// Time to live and class of service.
    fn marks(&self, v6: bool, wishes: &Wishes) -> (u8, u8) {
        let of = |level, option| {
            self.options.value(level, option).and_then(|v| u8::try_from(v).ok()).unwrap_or(0)
        };
        let (hops, class) = if v6 {
            (of(IPPROTO_IPV6, ipv6::UNICAST_HOPS), of(IPPROTO_IPV6, ipv6::TCLASS))
        } else {
            (of(IPPROTO_IP, ip::TTL), of(IPPROTO_IP, ip::TOS))
        };
        (wishes.hops.unwrap_or(hops), wishes.class.unwrap_or(class))
    }

    /// Nobody has the port: a connected sender is told with its next call.
    fn unreachable(&self) {
        let mut state = self.state.lock();
        if state.peer.is_none() {
            return;
        }
        state.error = Some(Errno::ECONNREFUSED);
        drop(state);
        self.for_reading.wake_all();
    }

    /// Takes a datagram in; without room or memory it is lost.
    fn enqueue(&self, datagram: Datagram) {
        let cost = datagram.bytes.len() + OVERHEAD;
        let mut state = self.state.lock();
        if state.port.is_none() || state.held + cost > self.options.receive_buffer() + OVERHEAD {
            return;
        }
        if state.queue.try_reserve(1).is_err() {
            return;
        }
        state.held += cost;
        state.queue.push_back(datagram);
        drop(state);
        self.for_reading.wake_events(PollEvents::READABLE.bits());
    }

    pub(super) fn receive_datagram(
        &self,
        dst: &mut Sink<'_>,
        flags: MsgFlags,
        nonblock: bool,
    ) -> Result<Incoming> {
        if flags.contains(MsgFlags::ERRQUEUE) {
            return Err(Errno::EAGAIN);
        }
        let peek = flags.contains(MsgFlags::PEEK);
        let Some(datagram) = self.next(nonblock)? else { return Ok(Incoming::default()) };
        let full = datagram.bytes.len();
        let wanted = full.min(dst.remaining());
        let put = if wanted == 0 { Ok(0) } else { dst.put(&datagram.bytes[..wanted]) };
        let mut got = Incoming {
            full,
            from: Some(encode(self.family, datagram.from)),
            control: control::tell(&self.options, &datagram.told),
            ..Incoming::default()
        };
        if peek {
            let mut state = self.state.lock();
            state.held += full + OVERHEAD;
            state.queue.push_front(datagram);
        }
        got.bytes = put?;
        if got.bytes < wanted { Err(Errno::EFAULT) } else { Ok(got) }
    }

    /// Takes the first datagram, waiting for one; `None` when nothing more is to be received.
    fn next(&self, nonblock: bool) -> Result<Option<Datagram>> {
        let take = || {
            let mut state = self.state.lock();
            if let Some(error) = state.error.take() {
                return Some(Err(error));
            }
            if let Some(datagram) = state.queue.pop_front() {
                state.held = state.held.saturating_sub(datagram.bytes.len() + OVERHEAD);
                return Some(Ok(Some(datagram)));
            }
            (state.read_shut && !nonblock).then_some(Ok(None))
        };
        self.options.timeouts().begin_receive().take(&self.for_reading, nonblock, take)
    }
}
