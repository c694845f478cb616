//! Raw sockets: whole messages of one protocol above IP, received with the IP header on IPv4. Those of [`Style::Ping`] only send
//! echo requests, and get the answers to them (`ping`).
//!
//! Owns the list of them all. A message goes straight into the queues of the sockets of its protocol; an echo
//! request is also answered, as any host does. What TCP and UDP send is no packet here, so raw sockets do not see it
//! (docs/decisions/0004). Locks: a socket's state is a `Stream`; never two sockets.

use super::ident::Ident;
use super::part::Part;
use crate::mm::fallible::{try_arc, try_copy};
use crate::mm::{Sink, Source};
use crate::net::addr::{Class, Family, Name, class, encode, encode_peer, family_of, route};
use crate::net::cork::Cork;
use crate::net::count;
use crate::net::inbox::Inbox;
use crate::net::inbox::report;
use crate::net::list::List;
use crate::net::name::SockName;
use crate::net::option::{Options, bytes_of, known, more, number};
use crate::net::options;
use crate::net::socket::{Incoming, NetSocket, Outgoing, Who};
use crate::sync::{PollTable, SpinLock, WaitQueue, level};
use crate::vfs::PollEvents;
use abi::net::{IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_IP, IPPROTO_RAW, SOL_RAW, ip};
use abi::socket::{AF_UNSPEC, MsgFlags, SOCK_DGRAM, SOCK_RAW, SOL_SOCKET, so};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};

/// `ICMP_FILTER` and `ICMP6_FILTER`.
const FILTER: i32 = 1;
/// `IPV6_CHECKSUM`.
const CHECKSUM: i32 = 7;

/// Relaxed: only uniqueness matters.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The place of a new socket: its protocol, and which it is, of more than there will be for years.
fn place(protocol: i32) -> u64 {
    let protocol = u64::from(protocol.unsigned_abs() as u16);
    protocol << 48 | NEXT.fetch_add(1, Ordering::Relaxed)
}

/// All of them.
pub(super) static ALL: List<Raw> = List::new();

/// One socket.
pub struct Raw {
    pub(super) style: Style,
    pub(super) family: Family,
    pub(super) protocol: i32,
    /// In the list of all.
    pub(super) place: u64,
    /// Whose it is, for /proc.
    pub(super) uid: u32,
    pub(super) options: Options,
    pub(super) state: SpinLock<State, level::Stream>,
    pub(super) for_reading: WaitQueue,
    /// The message that is being put together.
    pub(super) cork: Cork<Part>,
}

/// What a socket may send and gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Raw,
    Ping,
}

pub(super) struct State {
    /// The identifier of a ping socket, once it has one.
    pub(super) ident: Option<Ident>,
    /// The address that it is bound to, or else all.
    pub(super) local: IpAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) inbox: Inbox,
    /// One bit for each type of ICMP message that is not wanted.
    pub(super) filter: Vec<u8>,
    /// The sender writes the IP header.
    pub(super) header_included: bool,
    pub(super) closed: bool,
}

/// A new socket: EPERM without CAP_NET_RAW.
pub fn create(family: Family, protocol: i32, who: Who) -> Result<Arc<dyn NetSocket>> {
    if protocol == IPPROTO_IP {
        return Err(Errno::EPROTONOSUPPORT);
    }
    if !who.raw {
        return Err(Errno::EPERM);
    }
    make(family, protocol, Style::Raw, who.uid)
}

/// A new socket of that style, for a caller that may have it.
pub(super) fn make(
    family: Family,
    protocol: i32,
    style: Style,
    uid: u32,
) -> Result<Arc<dyn NetSocket>> {
    let filter = if family == Family::V4 { 4 } else { 32 };
    let socket = try_arc(Raw {
        style,
        family,
        protocol,
        place: place(protocol),
        uid,
        options: Options::for_datagrams(),
        state: SpinLock::new(State {
            ident: None,
            local: family.any(),
            peer: None,
            inbox: Inbox::default(),
            filter: try_copy(&[0; 32][..filter])?,
            header_included: protocol == IPPROTO_RAW && family == Family::V4,
            closed: false,
        }),
        for_reading: WaitQueue::new(),
        cork: Cork::new(),
    })?;
    if style == Style::Ping {
        // As Linux has them share their identifiers.
        socket.options.keep(SOL_SOCKET, so::REUSEADDR, 1)?;
    }
    ALL.add(socket.place, &socket)?;
    Ok(socket)
}

impl Drop for Raw {
    fn drop(&mut self) {
        ALL.remove(self.place);
    }
}

impl Raw {
    /// Where a message to `name` goes, and the address it comes from.
    pub(super) fn destination(&self, name: Name) -> Result<(IpAddr, IpAddr)> {
        let to = name.addr.ip();
        if to.is_ipv4() != (self.family == Family::V4) {
            return Err(Errno::ENETUNREACH);
        }
        if class(to) == Class::Broadcast
            && !self.options.is_on(const { known(SOL_SOCKET, so::BROADCAST) })
        {
            // A ping socket looks for a route first, and there is none.
            let is_raw = self.style == Style::Raw;
            return Err(if is_raw { Errno::EACCES } else { Errno::ENETUNREACH });
        }
        route(to, || self.state.lock().local).inspect_err(|_| {
            // As on Linux, of IPv6 alone.
            if to.is_ipv6() {
                count::ip(count::Ip::NoRoutes, true);
            }
        })
    }

    fn is_filter(&self, level: i32, option: i32) -> bool {
        if self.style == Style::Ping {
            return false;
        }
        let own = if self.family == Family::V4 { SOL_RAW } else { IPPROTO_ICMPV6 };
        level == own && option == FILTER
    }

    /// Whether it is a raw socket of that family: only those have the options about headers.
    pub(super) fn is_raw_of(&self, family: Family) -> bool {
        self.style == Style::Raw && self.family == family
    }

    fn has_filter(&self) -> bool {
        matches!(
            (self.family, self.protocol),
            (Family::V4, IPPROTO_ICMP) | (Family::V6, IPPROTO_ICMPV6)
        )
    }
}

impl NetSocket for Raw {
    fn domain(&self) -> u16 {
        self.family.number()
    }
    fn kind(&self) -> u32 {
        match self.style {
            Style::Raw => SOCK_RAW,
            Style::Ping => SOCK_DGRAM,
        }
    }
    fn protocol(&self) -> i32 {
        self.protocol
    }
    fn options(&self) -> &Options {
        &self.options
    }

    fn bind(&self, name: &[u8], _who: Who) -> Result<()> {
        let name = Name::decode(self.family, name)?.addr;
        let addr = name.ip();
        let fits = addr.is_ipv4() == (self.family == Family::V4);
        if !fits || matches!(class(addr), Class::Foreign | Class::LinkLocal) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if self.style == Style::Raw {
            self.state.lock().local = addr;
            return Ok(());
        }
        if self.state.lock().ident.is_some() {
            return Err(Errno::EINVAL);
        }
        let share = self.options.is_on(const { known(SOL_SOCKET, so::REUSEADDR) });
        let ident = Ident::take(name.port(), share, true)?;
        let mut state = self.state.lock();
        // Another thread may have been faster.
        if state.ident.is_some() {
            drop(state);
            return Err(Errno::EINVAL);
        }
        (state.local, state.ident) = (addr, Some(ident));
        Ok(())
    }

    fn connect(&self, name: &[u8], _nonblock: bool) -> Result<()> {
        if family_of(name)? == AF_UNSPEC {
            let mut state = self.state.lock();
            state.peer = None;
            state.local = self.family.any();
            let ident = state.ident.take_if(|ident| !ident.chosen);
            drop(state);
            drop(ident);
            return Ok(());
        }
        if self.style == Style::Ping {
            self.ident()?;
        }
        let name = Name::decode(self.family, name)?;
        let (to, source) = self.destination(name)?;
        let mut state = self.state.lock();
        if state.local.is_unspecified() {
            state.local = source;
        }
        state.peer = Some(SocketAddr::new(to, name.addr.port()));
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

    /// In place of a port it has the protocol, or on a ping socket the identifier.
    fn name(&self) -> SockName {
        let state = self.state.lock();
        let port = match self.style {
            Style::Raw => u16::try_from(self.protocol).unwrap_or(0),
            Style::Ping => state.ident.as_ref().map_or(0, Ident::number),
        };
        let local = state.local;
        drop(state);
        encode(self.family, SocketAddr::new(local, port))
    }

    fn peer_name(&self) -> Result<SockName> {
        let peer = self.state.lock().peer;
        encode_peer(self.family, peer)
    }

    fn send(&self, src: &mut Source<'_>, how: &Outgoing<'_>) -> Result<usize> {
        self.send_message(src, how)
    }

    fn receive(&self, dst: &mut Sink<'_>, flags: MsgFlags, nonblock: bool) -> Result<Incoming> {
        self.receive_message(dst, flags, nonblock)
    }

    fn take_error(&self) -> Option<Errno> {
        None
    }

    fn set_option(&self, level: i32, option: i32, value: &[u8]) -> Result<()> {
        if self.is_filter(level, option) {
            if !self.has_filter() {
                return Err(Errno::EOPNOTSUPP);
            }
            let filter = &mut self.state.lock().filter;
            let len = value.len().min(filter.len());
            filter[..len].copy_from_slice(&value[..len]);
            return Ok(());
        }
        match (level, option) {
            (IPPROTO_IP, ip::HDRINCL) if self.style == Style::Ping => Err(Errno::ENOPROTOOPT),
            (SOL_SOCKET, more::ZEROCOPY) => number(value).and(Err(Errno::EOPNOTSUPP)),
            (SOL_SOCKET, _) => self.options.set_socket(option, value),
            // Where the checksum of an ICMPv6 message stands is known.
            (SOL_RAW, CHECKSUM)
                if self.is_raw_of(Family::V6) && self.protocol == IPPROTO_ICMPV6 =>
            {
                match number(value)? {
                    2 => Ok(()),
                    _ => Err(Errno::EINVAL),
                }
            }
            (IPPROTO_IP, ip::HDRINCL) if self.is_raw_of(Family::V4) => {
                self.state.lock().header_included = number(value)? != 0;
                Ok(())
            }
            _ => {
                options::set_ip(&self.options, self.family, level, option, value, false)?;
                if report::is_ended_by(level, option, value) {
                    let reports = self.state.lock().inbox.take_reports();
                    drop(reports);
                }
                Ok(())
            }
        }
    }

    fn get_option(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>> {
        if self.is_filter(level, option) {
            if !self.has_filter() {
                return Err(Errno::EOPNOTSUPP);
            }
            return Ok(self.state.lock().filter.clone());
        }
        match (level, option) {
            (SOL_SOCKET, _) => self.options.get_socket(option),
            (IPPROTO_IP, ip::HDRINCL) if self.is_raw_of(Family::V4) => {
                Ok(bytes_of(self.state.lock().header_included.into())?)
            }
            _ => {
                let connected = self.state.lock().peer.is_some();
                options::get_ip(&self.options, self.family, level, option, room, connected)
            }
        }
    }

    fn poll(&self, table: &mut PollTable) -> PollEvents {
        table.watch(&self.for_reading);
        self.state.lock().inbox.readiness()
    }

    fn readable_bytes(&self) -> Result<usize> {
        Ok(self.state.lock().inbox.first_len())
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let gone = (state.inbox.take_all(), state.ident.take());
        drop(state);
        drop(gone);
    }
}
