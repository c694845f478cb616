//! UDP and UDP-Lite: datagrams go straight into the queue of the socket they are for.
//!
//! [`Udp`] is one socket. If no socket has the port of a datagram, the next call of a sender that is connected or asks
//! for reports gets an error, as after an ICMP message. Owns its queue, its port and its peer's name. Locks: `Stream`, never
//! of two sockets.

use super::ways::Ways;
use crate::mm::fallible::try_arc_cyclic;
use crate::mm::{Sink, Source};
use crate::net::addr::{
    Class, Family, Name, class, encode, encode_peer, family_of, needs_scope, route,
};
use crate::net::bind::check_bind;
use crate::net::cork::Cork;
use crate::net::count;
use crate::net::inbox::report;
use crate::net::inbox::{Datagram, Inbox};
use crate::net::name::SockName;
use crate::net::option::{Options, bytes_of, known, more, number};
use crate::net::options;
use crate::net::peek::PeekOffset;
use crate::net::ports::{self, Claim, Cover, Holder, Port};
use crate::net::socket::{Incoming, NetSocket, Outgoing, Who};
use crate::sync::{PollTable, SpinLock, WaitQueue, level};
use crate::vfs::PollEvents;
use abi::net::{IPPROTO_IPV6, IPPROTO_UDP, IPPROTO_UDPLITE, UDP_CORK, ipv6};
use abi::socket::{AF_UNSPEC, MsgFlags, SOCK_DGRAM, SOL_SOCKET, so};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// One socket.
pub struct Udp {
    me: Weak<Udp>,
    pub(super) family: Family,
    pub(super) protocol: i32,
    uid: u32,
    pub(super) options: Options,
    pub(super) state: SpinLock<State, level::Stream>,
    pub(super) for_reading: WaitQueue,
    pub(super) cork: Cork<(Ways, Datagram)>,
    pub(super) peek_offset: PeekOffset,
}

pub(super) struct State {
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) port: Option<Port>,
    /// Whether the port was asked for by number, and the address given to `bind`: then it survives a disconnect.
    port_chosen: bool,
    addr_chosen: bool,
    pub(super) inbox: Inbox,
    pub(super) error: Option<Errno>,
}

/// A new socket.
pub fn create(family: Family, protocol: i32, who: Who) -> Result<Arc<dyn NetSocket>> {
    Ok(try_arc_cyclic(|me| Udp {
        me: me.clone(),
        family,
        protocol,
        uid: who.uid,
        options: Options::for_datagrams(),
        state: SpinLock::new(State {
            local: family.nowhere(),
            peer: None,
            port: None,
            port_chosen: false,
            addr_chosen: false,
            inbox: Inbox::default(),
            error: None,
        }),
        for_reading: WaitQueue::new(),
        cork: Cork::new(),
        peek_offset: PeekOffset::new(),
    })?)
}

impl Udp {
    fn v6_only(&self) -> bool {
        self.family == Family::V6 && self.options.is_on(const { known(IPPROTO_IPV6, ipv6::V6ONLY) })
    }

    fn claim(&self, addr: IpAddr) -> Claim {
        Claim {
            protocol: self.protocol,
            family: self.family,
            cover: Cover::of(self.family, addr, self.v6_only()),
            reuse_addr: self.options.is_on(const { known(SOL_SOCKET, so::REUSEADDR) }),
            reuse_port: self.options.is_on(const { known(SOL_SOCKET, so::REUSEPORT) }),
            uid: self.uid,
            holder: Holder::Udp(self.me.clone()),
        }
    }

    /// Gives the socket a port if it has none.
    pub(super) fn bind_any(&self) -> Result<()> {
        let local = {
            let state = self.state.lock();
            if state.port.is_some() {
                return Ok(());
            }
            state.local.ip()
        };
        let port = match ports::claim(&self.claim(local), local, 0) {
            Err(Errno::EADDRINUSE) => return Err(Errno::EAGAIN),
            port => port?,
        };
        let mut state = self.state.lock();
        if state.port.is_none() {
            state.local.set_port(port.number());
            state.port = Some(port);
        }
        Ok(())
    }

    fn disconnect(&self) {
        let mut state = self.state.lock();
        state.peer = None;
        let addr = if state.addr_chosen { state.local.ip() } else { self.family.any() };
        state.local.set_ip(addr);
        let port = match &state.port {
            Some(port) if state.port_chosen => {
                let cover = Cover::of(self.family, addr, self.v6_only());
                port.set_peer(cover, addr, None);
                None
            }
            _ => state.port.take(),
        };
        if state.port.is_none() {
            state.local.set_port(0);
        }
        drop(state);
        drop(port);
    }

    /// For /proc: whether connected, and what the queue costs in bytes.
    pub fn summary(&self) -> (bool, usize) {
        let state = self.state.lock();
        (state.peer.is_some(), state.inbox.held())
    }

    /// The destination of a datagram or a connection to `name`, and the source address if the socket is bound to none.
    pub(super) fn destination(&self, name: Name) -> Result<(SocketAddr, IpAddr)> {
        if name.addr.is_ipv4() && self.v6_only() {
            return Err(Errno::ENETUNREACH);
        }
        let no_route = |_: &Errno| count::ip(count::Ip::NoRoutes, name.addr.is_ipv6());
        let own = || self.state.lock().local.ip();
        let (to, source) = route(name.addr.ip(), own).inspect_err(no_route)?;
        if class(to) == Class::Broadcast
            && !self.options.is_on(const { known(SOL_SOCKET, so::BROADCAST) })
        {
            return Err(Errno::EACCES);
        }
        Ok((SocketAddr::new(to, name.addr.port()), source))
    }
}

impl NetSocket for Udp {
    fn peek_offset(&self) -> Option<&PeekOffset> {
        Some(&self.peek_offset)
    }
    fn domain(&self) -> u16 {
        self.family.number()
    }
    fn kind(&self) -> u32 {
        SOCK_DGRAM
    }
    fn protocol(&self) -> i32 {
        self.protocol
    }
    fn options(&self) -> &Options {
        &self.options
    }

    fn bind(&self, name: &[u8], who: Who) -> Result<()> {
        let addr = check_bind(self.family, SOCK_DGRAM, name, &self.options, who)?;
        if self.state.lock().port.is_some() {
            return Err(Errno::EINVAL);
        }
        let port = ports::claim(&self.claim(addr.ip()), addr.ip(), addr.port())?;
        let mut state = self.state.lock();
        if state.port.is_some() {
            return Err(Errno::EINVAL);
        }
        state.port_chosen = addr.port() != 0;
        state.addr_chosen = !addr.ip().is_unspecified();
        state.local = SocketAddr::new(addr.ip(), port.number());
        state.port = Some(port);
        Ok(())
    }

    fn connect(&self, name: &[u8], _nonblock: bool) -> Result<()> {
        if family_of(name)? == AF_UNSPEC {
            self.disconnect();
            return Ok(());
        }
        self.bind_any()?;
        let name = Name::decode_either(self.family, name)?;
        if needs_scope(name.addr.ip()) && name.scope == 0 {
            return Err(Errno::EINVAL);
        }
        let (to, source) = self.destination(name)?;
        let mut state = self.state.lock();
        if !state.addr_chosen {
            state.local.set_ip(source);
        } else if state.local.is_ipv4() != to.is_ipv4() {
            return Err(Errno::ENETUNREACH);
        }
        state.peer = Some(to);
        let local = state.local.ip();
        if let Some(port) = &state.port {
            port.set_peer(Cover::of(self.family, local, true), local, Some(to));
        }
        Ok(())
    }

    fn shut_down(&self, read: bool, write: bool) -> Result<()> {
        let mut state = self.state.lock();
        state.inbox.shut_down(read, write);
        let connected = state.peer.is_some();
        drop(state);
        self.for_reading.wake_all();
        if connected { Ok(()) } else { Err(Errno::ENOTCONN) }
    }

    fn name(&self) -> SockName {
        encode(self.family, self.state.lock().local)
    }

    fn peer_name(&self) -> Result<SockName> {
        let peer = self.state.lock().peer;
        encode_peer(self.family, peer)
    }

    fn send(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        self.send_datagram(src, how)
    }

    fn receive(&self, dst: &mut Sink<'_>, flags: MsgFlags, nonblock: bool) -> Result<Incoming> {
        self.receive_datagram(dst, flags, nonblock)
    }

    fn take_error(&self) -> Option<Errno> {
        self.state.lock().error.take()
    }

    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> Result<()> {
        match level {
            SOL_SOCKET if option == more::ZEROCOPY && self.protocol == IPPROTO_UDPLITE => {
                number(value).and(Err(Errno::EOPNOTSUPP))
            }
            SOL_SOCKET => {
                self.options.set_socket(option, value)?;
                let addr = self.options.is_on(const { known(SOL_SOCKET, so::REUSEADDR) });
                let port = self.options.is_on(const { known(SOL_SOCKET, so::REUSEPORT) });
                if let Some(held) = &self.state.lock().port {
                    held.set_reuse(addr, port);
                }
                Ok(())
            }
            IPPROTO_UDP | IPPROTO_UDPLITE if level == self.protocol || level == IPPROTO_UDP => {
                let value = number(value)?;
                if option != UDP_CORK {
                    return self.options.keep(level, option, value);
                }
                self.options.keep(IPPROTO_UDP, option, value)?;
                if value == 0 {
                    self.uncork();
                }
                Ok(())
            }
            _ => {
                let bound = self.state.lock().port.is_some();
                options::set_ip(&self.options, self.family, level, option, value, bound)?;
                if report::is_ended_by(level, option, value) {
                    let reports = self.state.lock().inbox.take_reports();
                    drop(reports);
                }
                Ok(())
            }
        }
    }

    fn get_option(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>> {
        match level {
            SOL_SOCKET => self.options.get_socket(option),
            IPPROTO_UDP | IPPROTO_UDPLITE if level == self.protocol || level == IPPROTO_UDP => {
                let level = if option == UDP_CORK { IPPROTO_UDP } else { level };
                Ok(bytes_of(self.options.value(level, option).ok_or(Errno::ENOPROTOOPT)?)?)
            }
            _ => {
                let connected = self.state.lock().peer.is_some();
                options::get_ip(&self.options, self.family, level, option, room, connected)
            }
        }
    }

    fn poll(&self, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_reading);
        let state = self.state.lock();
        let mut ready = state.inbox.readiness();
        if state.error.is_some() {
            ready |= PollEvents::ERR;
        }
        ready
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.state.lock().inbox.first_len())
    }

    fn close(&self) {
        let mut state = self.state.lock();
        let port = state.port.take();
        let inbox = state.inbox.take_all();
        drop(state);
        drop((port, inbox));
    }
}
