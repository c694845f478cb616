//! Binding, connecting, listening, accepting.

use super::close::count_reset;
use super::tcp::{Asking, GROWN_SEND_BUFFER, Role, Tcp};
use crate::mm::fallible::TryGrow;
use crate::net::addr::{Class, Family, Name, class, family_of, route};
use crate::net::bind::check_bind;
use crate::net::count;
use crate::net::limit::{self, TimeLimit};
use crate::net::option::{Options, known};
use crate::net::ports::{self, Claim, Cover, Holder};
use crate::net::socket::Who;
use crate::net::sysctl::tcp as sizes;
use crate::sync::Pace;
use crate::vfs::PollEvents;
use crate::vfs::notify::Reason;
use abi::net::{IPPROTO_IPV6, IPPROTO_TCP, ipv6};
use abi::socket::{AF_UNSPEC, SOCK_STREAM, SOL_SOCKET, so};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use core::net::{IpAddr, SocketAddr};

/// The options that only the SYN of each side has, in bytes.
const SYN_OPTIONS: u64 = 8;

/// What came of asking a listener.
enum Asked {
    Connected,
    /// The backlog is full: the listener will connect this socket when there is room.
    Full,
    /// A filter is in the way: the listener will look again when there is another one.
    KeptOut,
    Refused,
    /// The attempt is over.
    Over,
}

impl Tcp {
    fn v6_only(&self) -> bool {
        self.family == Family::V6 && self.options.is_on(const { known(IPPROTO_IPV6, ipv6::V6ONLY) })
    }

    fn claim(&self, addr: IpAddr) -> Claim {
        Claim {
            protocol: IPPROTO_TCP,
            family: self.family,
            cover: Cover::of(self.family, addr, self.v6_only()),
            reuse_addr: self.options.is_on(const { known(SOL_SOCKET, so::REUSEADDR) }),
            reuse_port: self.options.is_on(const { known(SOL_SOCKET, so::REUSEPORT) }),
            uid: self.uid,
            holder: Holder::Tcp(self.me.clone()),
        }
    }

    /// `bind`.
    pub(super) fn bind_to(&self, name: &[u8], who: Who) -> Result<()> {
        let addr = check_bind(self.family, SOCK_STREAM, name, &self.options, who)?;
        {
            let state = self.state.lock();
            if state.port.is_some() || !matches!(state.role, Role::Closed) {
                return Err(Errno::EINVAL);
            }
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

    /// `listen`.
    pub(super) fn begin_listening(&self, backlog: i32) -> Result<()> {
        let backlog = limit::backlog(backlog);
        if !self.try_backlog(backlog, false)? {
            let port = self.state.lock().port.as_ref().map(ports::Port::place);
            let place = port.map_or_else(|| self.bind_to_any(), Ok)?;
            ports::listen(place)?;
            if let Err(errno) = self.try_backlog(backlog, true) {
                ports::stop_listening(place);
                return Err(errno);
            }
        }
        self.admit();
        Ok(())
    }

    /// Whether it listens now, with this backlog: it did before, or `begins` to, its port having allowed it. EINVAL where it cannot
    /// begin to, which may come of what another thread has made of the socket meanwhile.
    fn try_backlog(&self, backlog: usize, begins: bool) -> Result<bool> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let may_begin = state.is_fresh() && !state.connecting;
        match &mut state.role {
            Role::Listener { backlog: old, .. } => *old = backlog,
            Role::Closed if may_begin && begins => {
                let (pending, waiting, kept_out) = Default::default();
                state.role = Role::Listener { backlog, pending, waiting, kept_out };
            }
            Role::Closed if may_begin => return Ok(false),
            _ => return Err(Errno::EINVAL),
        }
        Ok(true)
    }

    fn bind_to_any(&self) -> Result<ports::Place> {
        let port = ports::claim(&self.claim(self.family.any()), self.family.any(), 0)?;
        let place = port.place();
        let mut state = self.state.lock();
        if state.port.is_some() {
            return Err(Errno::EINVAL);
        }
        state.local.set_port(port.number());
        state.port = Some(port);
        Ok(place)
    }

    /// `accept`.
    pub(super) fn accept_next(&self, nonblock: bool) -> Result<Arc<Tcp>> {
        let take = || match &mut self.state.lock().role {
            Role::Listener { pending, .. } => pending.pop_front().map(Ok),
            _ => Some(Err(Errno::EINVAL)),
        };
        let limit = self.options.timeouts().begin_receive();
        let accepted = limit.take(&self.for_reading, nonblock, take)?;
        self.admit();
        Ok(accepted)
    }

    /// Connects the sockets that found the backlog full, as far as there is room now.
    pub(super) fn admit(&self) {
        let next = || match &mut self.state.lock().role {
            Role::Listener { pending, waiting, backlog, .. } if pending.len() <= *backlog => {
                waiting.pop_front()
            }
            _ => None,
        };
        for asking in core::iter::from_fn(next).paced() {
            // It is full again if another one was faster.
            if matches!(self.admit_one(asking), Ok(Asked::Full)) {
                return;
            }
        }
    }

    /// There is another filter: who was kept out asks again, each once.
    pub(super) fn admit_kept_out(&self) {
        let count = match &self.state.lock().role {
            Role::Listener { kept_out, .. } => kept_out.len(),
            _ => 0,
        };
        let next = || match &mut self.state.lock().role {
            Role::Listener { kept_out, .. } => kept_out.pop_front(),
            _ => None,
        };
        for asking in core::iter::from_fn(next).take(count).paced() {
            let _what_came = self.admit_one(asking);
        }
    }

    /// Connects one that has asked, or refuses it, or lets it wait again.
    fn admit_one(&self, (asking, attempt): Asking) -> Result<Asked> {
        let (Some(me), Some(asking)) = (self.me.upgrade(), asking.upgrade()) else {
            return Ok(Asked::Over);
        };
        let asked = asking.ask(&me, attempt);
        match asked {
            Ok(Asked::Connected) => asking.tell_connected(),
            Ok(Asked::Full | Asked::KeptOut | Asked::Over) => {}
            Ok(Asked::Refused) | Err(_) => asking.refuse(attempt),
        }
        asked
    }

    /// An attempt that has asked a listener for a connection is over.
    pub(super) fn ask_no_more(&self, (asked, attempt): (Option<Weak<Tcp>>, u64)) {
        let Some(listener) = asked.and_then(|listener| listener.upgrade()) else { return };
        let is_other = |asking: &Asking| asking.1 != attempt || !asking.0.ptr_eq(&self.me);
        if let Role::Listener { waiting, kept_out, .. } = &mut listener.state.lock().role {
            waiting.retain(is_other);
            kept_out.retain(is_other);
        }
    }

    /// `connect`.
    pub(super) fn connect_to(&self, name: &[u8], nonblock: bool) -> Result<()> {
        if family_of(name)? == AF_UNSPEC {
            self.disconnect();
            return Ok(());
        }
        let (connecting, fresh, before) = {
            let state = self.state.lock();
            (state.connecting, state.is_fresh(), state.disconnects)
        };
        let since = if connecting {
            if nonblock && matches!(self.state.lock().role, Role::Connecting) {
                return Err(Errno::EALREADY);
            }
            before
        } else {
            if !fresh {
                return Err(Errno::EISCONN);
            }
            let since = self.start_connecting(name)?;
            if nonblock {
                return Err(Errno::EINPROGRESS);
            }
            since
        };
        match self.wait_connected(self.options.timeouts().begin_send(), since) {
            Err(Errno::EAGAIN) => return Err(Errno::EINPROGRESS),
            outcome => outcome?,
        }
        self.outcome(since)
    }

    /// The outcome of a connection attempt that is over, and was begun when the socket had been disconnected so often: EPIPE if it was
    /// since, by another thread, whose next attempt has an outcome of its own.
    fn outcome(&self, since: u64) -> Result<()> {
        let mut state = self.state.lock();
        if state.disconnects != since {
            return Err(Errno::EPIPE);
        }
        state.connecting = false;
        if matches!(state.role, Role::Connected(_)) {
            state.joined = true;
            return Ok(());
        }
        let error = state.error.take().unwrap_or(Errno::ECONNABORTED);
        drop(state);
        self.disconnect_once(Some(since), true);
        Err(error)
    }

    /// Waits until the attempt to connect is over, or the socket has been disconnected more often than `since`.
    pub(super) fn wait_connected(&self, limit: TimeLimit, since: u64) -> Result<()> {
        limit.wait(&self.for_writing, || {
            let state = self.state.lock();
            let goes_on = matches!(state.role, Role::Connecting) && state.disconnects == since;
            (!goes_on).then_some(())
        })
    }

    /// Where a connection to `name` goes.
    fn destination(&self, name: &[u8]) -> Result<SocketAddr> {
        let name = Name::decode(self.family, name)?;
        match (class(name.addr.ip()), name.addr.ip()) {
            (Class::LinkLocal, _) if name.scope == 0 => return Err(Errno::EINVAL),
            (_, IpAddr::V4(_)) if self.v6_only() => return Err(Errno::ENETUNREACH),
            (Class::Multicast | Class::Broadcast, _) => return Err(Errno::ENETUNREACH),
            _ => {}
        }
        Ok(name.addr)
    }

    /// Begins to connect: how often the socket had been disconnected by then.
    fn start_connecting(&self, name: &[u8]) -> Result<u64> {
        let asked = self.destination(name)?;
        let no_route = |_: &Errno| count::ip(count::Ip::NoRoutes, asked.is_ipv6());
        let chosen = {
            let state = self.state.lock();
            state.addr_chosen.then_some(state.local.ip())
        };
        let own = || chosen.unwrap_or(self.family.any());
        let (ip, source) = route(asked.ip(), own).inspect_err(no_route)?;
        let to = SocketAddr::new(ip, asked.port());
        let source = chosen.unwrap_or(source);
        if source.is_ipv4() != to.is_ipv4() {
            return Err(Errno::ENETUNREACH);
        }
        let mut claim = self.claim(source);
        claim.cover = Cover::of(self.family, source, true);
        let bound = self.state.lock().port.is_some();
        let port = if bound { None } else { Some(ports::claim_for(&claim, source, to)?) };
        let mut state = self.state.lock();
        if !matches!(state.role, Role::Closed) {
            return Err(Errno::EALREADY);
        }
        match (port, &state.port) {
            (Some(port), None) => state.port = Some(port),
            (_, Some(own)) => own.set_peer(claim.cover, source, Some(to)),
            (None, None) => return Err(Errno::EADDRNOTAVAIL),
        }
        let number = state.port.as_ref().map_or(0, ports::Port::number);
        state.local = SocketAddr::new(source, number);
        state.peer = Some(to);
        state.role = Role::Connecting;
        state.connecting = true;
        state.attempt += 1;
        state.error = None;
        (state.read_shut, state.write_shut, state.fin) = (false, false, false);
        let (own, attempt, since) = (state.local, state.attempt, state.disconnects);
        drop(state);
        self.find_partner(to, own, attempt);
        Ok(since)
    }

    fn find_partner(&self, to: SocketAddr, own: SocketAddr, attempt: u64) {
        count::tcp(count::Tcp::ActiveOpens);
        // The SYN; the SYN-ACK and the ACK are counted in `ask`.
        count::segments(to.is_ipv6(), 1, SYN_OPTIONS);
        let asked = match ports::listener(to) {
            Some(listener) => self.ask(&listener, attempt),
            // A socket that connects to its own name is its own peer, as in a simultaneous open.
            None if to == own => Ok(self.join_itself(attempt)),
            None => Ok(Asked::Refused),
        };
        match asked {
            Ok(Asked::Connected) => self.tell_connected(),
            Ok(Asked::Full | Asked::KeptOut | Asked::Over) => {}
            Ok(Asked::Refused) | Err(_) => {
                count_reset(to.is_ipv6());
                self.refuse(attempt);
            }
        }
    }

    /// Becomes its own peer, unless the attempt is over.
    fn join_itself(&self, attempt: u64) -> Asked {
        let mut state = self.state.lock();
        if !state.is_asking(attempt) {
            return Asked::Over;
        }
        state.role = Role::Connected(self.me.clone());
        Asked::Connected
    }

    /// Asks a listener for a connection, unless the attempt is over.
    fn ask(&self, listener: &Arc<Tcp>, attempt: u64) -> Result<Asked> {
        let child = Tcp::new(listener.family, listener.uid, listener.options.inherit())?;
        grow(&child.options);
        child.peek_offset.set(listener.peek_offset.number());
        let mut listening = listener.state.lock();
        let listening = &mut *listening;
        let Role::Listener { backlog, pending, waiting, kept_out } = &mut listening.role else {
            return Ok(Asked::Refused);
        };
        pending.try_room(1)?;
        let mut state = self.state.lock();
        let Some(to) = state.peer.filter(|_| state.is_asking(attempt)) else {
            return Ok(Asked::Over);
        };
        if pending.len() > *backlog {
            waiting.try_push((self.me.clone(), attempt))?;
            state.asked = Some(Arc::downgrade(listener));
            count::tcp(count::Tcp::ListenOverflows);
            return Ok(Asked::Full);
        }
        if !self.may_connect(&listener.options, state.local, to) {
            kept_out.try_push((self.me.clone(), attempt))?;
            state.asked = Some(Arc::downgrade(listener));
            return Ok(Asked::KeptOut);
        }
        let cover = Cover::of(listener.family, to.ip(), true);
        let port = listening.port.as_ref().ok_or(Errno::ECONNREFUSED)?;
        let port = port.share(Holder::Tcp(child.me.clone()), cover, to.ip(), state.local)?;
        {
            // Only the table of ports knows the child yet, so nobody who holds its lock waits for another.
            let mut new = child.state.lock();
            new.local = to;
            new.peer = Some(state.local);
            new.port = Some(port);
            new.role = Role::Connected(self.me.clone());
            new.joined = true;
        }
        state.role = Role::Connected(Arc::downgrade(&child));
        grow(&self.options);
        count::tcp(count::Tcp::PassiveOpens);
        count::segments(to.is_ipv6(), 2, SYN_OPTIONS);
        pending.try_push(child)?; // there is room
        drop(state);
        listener.for_reading.wake_events(PollEvents::READABLE.bits());
        listener.options.listeners.tell(Reason::In);
        Ok(Asked::Connected)
    }
}

/// The buffers of a connection grow unless somebody has set them.
fn grow(options: &Options) {
    let (send, receive) = (options.send_buffer(), options.receive_buffer());
    if send == sizes::SEND.first() && receive == sizes::RECEIVE.first() {
        options.grow_send_buffer(GROWN_SEND_BUFFER.min(sizes::SEND.largest()).max(send));
    }
}
