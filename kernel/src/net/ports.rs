//! Who has which port: bindings, their conflicts, free ports, and the ports that wait after a connection.
//!
//! Owns the table of all bound TCP and UDP sockets. A [`Port`] is a socket's hold on its entry; dropping it frees the
//! port. Never drops a `Port` under the table's lock, which the drop takes: a `Port` is made when nothing can fail any
//! more. Locks: `Leaf`; the sockets that a look-up finds are used after it is released.

use super::addr::Family;
use super::count;
use super::sysctl;
use super::tcp::Tcp;
use super::udp::Udp;
use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::sync::{Pace, SpinLock, level};
use crate::{random, time};
use abi::net::IPPROTO_TCP;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How long a port stays taken after the end that closed first is gone.
const TIME_WAIT_NS: u64 = 60_000_000_000;
/// A new connection may take over such a port after this long, as on Linux for the loopback.
const REUSE_AFTER_NS: u64 = 1_000_000_000;
/// About how many ports may be in TIME_WAIT; when there are more, the oldest are freed early.
const MAX_WAITING: usize = 4096;

/// The addresses that a binding covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    V4(Option<Ipv4Addr>),
    V6(Option<Ipv6Addr>),
    /// All of both families.
    Both,
}

impl Cover {
    /// What binding a socket of `family` to `addr` covers.
    pub fn of(family: Family, addr: IpAddr, v6_only: bool) -> Self {
        match addr {
            IpAddr::V6(v6) if v6.is_unspecified() && family == Family::V6 && !v6_only => Self::Both,
            IpAddr::V6(v6) => Self::V6((!v6.is_unspecified()).then_some(v6)),
            IpAddr::V4(v4) => Self::V4((!v4.is_unspecified()).then_some(v4)),
        }
    }

    /// How well it fits an address: `None` not at all, 0 as one of all of both families, 1 as one of all of its family, 2 exactly.
    fn fit(self, addr: IpAddr) -> Option<u8> {
        match (self, addr) {
            (Self::Both, _) => Some(0),
            (Self::V4(None), IpAddr::V4(_)) | (Self::V6(None), IpAddr::V6(_)) => Some(1),
            (Self::V4(Some(own)), IpAddr::V4(addr)) if own == addr => Some(2),
            (Self::V6(Some(own)), IpAddr::V6(addr)) if own == addr => Some(2),
            _ => None,
        }
    }

    fn overlaps(self, other: Self) -> bool {
        let any_or_same =
            |a: Option<IpAddr>, b: Option<IpAddr>| a.is_none() || b.is_none() || a == b;
        let v4 = |c| match c {
            Self::V4(addr) => Some(addr.map(IpAddr::V4)),
            Self::Both => Some(None),
            Self::V6(_) => None,
        };
        let v6 = |c| match c {
            Self::V6(addr) => Some(addr.map(IpAddr::V6)),
            Self::Both => Some(None),
            Self::V4(_) => None,
        };
        let both = |f: &dyn Fn(Self) -> Option<Option<IpAddr>>| match (f(self), f(other)) {
            (Some(a), Some(b)) => any_or_same(a, b),
            _ => false,
        };
        both(&v4) || both(&v6)
    }
}

/// The socket that is bound.
#[derive(Clone)]
pub enum Holder {
    Tcp(Weak<Tcp>),
    Udp(Weak<Udp>),
}

/// How a socket wants to be bound.
#[derive(Clone)]
pub struct Claim {
    pub protocol: i32,
    pub family: Family,
    pub cover: Cover,
    pub reuse_addr: bool,
    pub reuse_port: bool,
    pub uid: u32,
    pub holder: Holder,
}

struct Entry {
    id: u64,
    claim: Claim,
    listening: bool,
    /// The other end, if the socket is connected.
    peer: Option<SocketAddr>,
    local: IpAddr,
    /// The port was chosen for a connection: others may have it too, with other peers.
    shared: bool,
    /// In TIME_WAIT: when that ends. The entry has no socket any more.
    until: Option<u64>,
}

type Table = BTreeMap<(i32, u16), Vec<Entry>>;

static TABLE: SpinLock<Table, level::Leaf> = SpinLock::new(BTreeMap::new());
/// Relaxed: only uniqueness matters.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// About how many ports are in TIME_WAIT. Relaxed: only says when to count.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// A hold on a port.
pub struct Port {
    protocol: i32,
    number: u16,
    id: u64,
}

/// One line of /proc/net/tcp or udp.
pub struct Seen {
    pub local: SocketAddr,
    pub peer: Option<SocketAddr>,
    pub holder: Holder,
    pub family: Family,
    pub uid: u32,
    /// Nanoseconds until a waiting port is free.
    pub waits: Option<u64>,
}

fn conflicts(new: &Claim, old: &Entry) -> bool {
    if !new.cover.overlaps(old.claim.cover) {
        return false;
    }
    if new.reuse_addr && old.claim.reuse_addr && !old.listening {
        return false;
    }
    let same_user = old.until.is_some() || new.uid == old.claim.uid;
    !(new.reuse_port && old.claim.reuse_port && same_user)
}

/// Forgets those entries of a port whose TIME_WAIT is over.
fn sweep(entries: &mut Vec<Entry>, now: u64) {
    forget(entries, now, count::Tcp::WaitsOver);
}

/// Forgets the entries whose TIME_WAIT ends at `horizon` or before, and counts them as `what`.
fn forget(entries: &mut Vec<Entry>, horizon: u64, what: count::Tcp) {
    entries.retain(|entry| {
        let over = entry.until.is_some_and(|until| until <= horizon);
        if over {
            count::tcp(what);
        }
        !over
    });
}

/// Frees all ports whose TIME_WAIT is over.
pub fn forget_waited() {
    let now = time::since_boot_ns();
    TABLE.lock().retain(|_, entries| {
        sweep(entries, now);
        !entries.is_empty()
    });
}

/// Frees all ports in TIME_WAIT (a loopback has no late segments), so that who counts what a program left behind does not count them.
pub fn forget_waiting() {
    let mut table = TABLE.lock();
    table.retain(|_, entries| {
        entries.retain(|entry| entry.until.is_none());
        !entries.is_empty()
    });
    WAITING.store(0, Ordering::Relaxed);
}

fn insert(table: &mut Table, number: u16, entry: Entry) -> Result<Port> {
    let (protocol, id) = (entry.claim.protocol, entry.id);
    let key = (protocol, number);
    let entries = table.try_entry(key, Vec::new)?;
    if let Err(error) = entries.try_push(entry) {
        if entries.is_empty() {
            table.remove(&key);
        }
        return Err(error);
    }
    // Last: dropping it would take the lock that is held here.
    Ok(Port { protocol, number, id })
}

fn entry_for(claim: &Claim, local: IpAddr, peer: Option<SocketAddr>) -> Entry {
    Entry {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        claim: claim.clone(),
        listening: false,
        peer,
        local,
        shared: peer.is_some(),
        until: None,
    }
}

/// So many ports, or entries of the table, are looked at before the table's lock is released for a moment: others need it too.
const WINDOW: u64 = 64;

/// Takes the first port, from a random one on, whose entries `free` accepts; `None` if there is no such port.
fn take_free(
    claim: &Claim,
    local: IpAddr,
    peer: Option<SocketAddr>,
    free: impl Fn(&[Entry]) -> bool,
) -> Result<Option<Port>> {
    let now = time::since_boot_ns();
    let free_range = sysctl::range::ephemeral();
    let count = u64::from(free_range.end() - free_range.start()) + 1;
    let [start]: [u64; 1] = random::secret_words();
    let start = start % count;
    for first in (0..count).step_by(WINDOW as usize).paced() {
        let mut table = TABLE.lock();
        let window = first..(first + WINDOW).min(count);
        let found =
            window.map(|i| free_range.start() + ((start + i) % count) as u16).find(|&number| {
                match table.get_mut(&(claim.protocol, number)) {
                    None => true,
                    Some(entries) => {
                        sweep(entries, now);
                        free(entries)
                    }
                }
            });
        if let Some(number) = found {
            return insert(&mut table, number, entry_for(claim, local, peer)).map(Some);
        }
    }
    Ok(None)
}

/// Binds to a port, or for 0 to any free one: EADDRINUSE if it is taken, or all are.
pub fn claim(claim: &Claim, local: IpAddr, number: u16) -> Result<Port> {
    if number == 0 {
        let alone =
            |entries: &[Entry]| entries.iter().all(|e| !e.claim.cover.overlaps(claim.cover));
        return take_free(claim, local, None, alone)?.ok_or(Errno::EADDRINUSE);
    }
    let mut table = TABLE.lock();
    if let Some(entries) = table.get_mut(&(claim.protocol, number)) {
        sweep(entries, time::since_boot_ns());
        if entries.iter().any(|old| conflicts(claim, old)) {
            return Err(Errno::EADDRINUSE);
        }
    }
    insert(&mut table, number, entry_for(claim, local, None))
}

/// Binds to any port for a connection to `peer`: one that nobody has, else one that only connections to
/// other peers have. EADDRNOTAVAIL if there is none.
pub fn claim_for(claim: &Claim, local: IpAddr, peer: SocketAddr) -> Result<Port> {
    let now = time::since_boot_ns();
    if let Some(port) = take_free(claim, local, Some(peer), <[Entry]>::is_empty)? {
        return Ok(port);
    }
    let shared = |entries: &[Entry]| {
        entries.iter().all(|e| match e.until {
            Some(until) => until < now + TIME_WAIT_NS - REUSE_AFTER_NS,
            None => e.shared && (e.peer != Some(peer) || e.local != local),
        })
    };
    take_free(claim, local, Some(peer), shared)?.ok_or(Errno::EADDRNOTAVAIL)
}

/// The TCP socket that listens at `to`: an exact address before all addresses, one family before both. Of
/// several that share the port, a random one.
pub fn listener(to: SocketAddr) -> Option<Arc<Tcp>> {
    let table = TABLE.lock();
    let entries = || {
        let of_port = table.get(&(IPPROTO_TCP, to.port())).into_iter().flatten();
        of_port.filter(|entry| entry.listening).filter_map(|entry| match &entry.claim.holder {
            Holder::Tcp(socket) => Some((entry.claim.cover.fit(to.ip())?, socket)),
            Holder::Udp(_) => None,
        })
    };
    let best_fit = entries().map(|(fit, _)| fit).max()?;
    let best = || entries().filter(|(fit, _)| *fit == best_fit).map(|(_, socket)| socket);
    let count = best().count();
    let [any]: [u64; 1] = if count > 1 { random::secret_words() } else { [0] };
    let start = any as usize % count.max(1);
    // The reference goes to the caller, so none is dropped under the lock.
    best().cycle().skip(start).take(count).find_map(Weak::upgrade)
}

/// The datagram socket that a message from `from` to `to` is for: one that is connected to the sender before others.
pub fn receiver(protocol: i32, to: SocketAddr, from: SocketAddr) -> Option<Arc<Udp>> {
    let table = TABLE.lock();
    let entries = || {
        let of_port = table.get(&(protocol, to.port())).into_iter().flatten();
        of_port.filter_map(|entry| {
            let Holder::Udp(socket) = &entry.claim.holder else { return None };
            let fit = entry.claim.cover.fit(to.ip())?;
            match entry.peer {
                None => Some((fit, socket)),
                Some(peer) => (peer == from).then_some((fit + 4, socket)),
            }
        })
    };
    let mut best = None;
    let mut equals = 0;
    for (fit, socket) in entries() {
        match best {
            Some((best_fit, _)) if fit < best_fit => {}
            Some((best_fit, _)) if fit == best_fit => equals += 1,
            _ => (best, equals) = (Some((fit, socket)), 1),
        }
    }
    let (best_fit, first) = best?;
    if equals == 1 {
        return first.upgrade();
    }
    let of_best = |(fit, socket)| (fit == best_fit).then_some(socket);
    entries().filter_map(of_best).nth(usize::from(from.port()) % equals).and_then(Weak::upgrade)
}

/// Where a list goes on: at an entry of a port. As on Linux, what comes or goes meanwhile may make it miss one.
#[derive(Clone, Copy, Default)]
pub struct Place {
    pub number: u16,
    pub index: usize,
}

/// The bound sockets of a protocol from a place on, a window of them, and where the next begins.
pub fn window(protocol: i32, from: Place) -> Result<(Vec<Seen>, Option<Place>)> {
    let now = time::since_boot_ns();
    let mut seen = Vec::with_room(WINDOW as usize)?;
    let table = TABLE.lock();
    let all = table.range((protocol, from.number)..=(protocol, u16::MAX));
    let each = all.flat_map(|(&(_, number), entries)| {
        let skipped = if number == from.number { from.index } else { 0 };
        let rest = entries.iter().enumerate().skip(skipped);
        rest.map(move |(index, entry)| (Place { number, index }, entry))
    });
    for (nth, (place, entry)) in each.enumerate() {
        if nth == WINDOW as usize {
            return Ok((seen, Some(place)));
        }
        if entry.until.is_none_or(|until| until > now) {
            seen.try_push(Seen {
                local: SocketAddr::new(entry.local, place.number),
                peer: entry.peer,
                holder: entry.claim.holder.clone(),
                family: entry.claim.family,
                uid: entry.claim.uid,
                waits: entry.until.map(|until| until - now),
            })?;
        }
    }
    Ok((seen, None))
}

/// Shows `look` all bound sockets of a protocol, unlocked.
pub fn for_each(protocol: i32, mut look: impl FnMut(&Seen)) -> Result<()> {
    let mut next = Some(Place::default());
    while let Some(from) = next {
        let (seen, rest) = window(protocol, from)?;
        seen.iter().paced().for_each(&mut look);
        next = rest;
    }
    Ok(())
}

impl Port {
    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    fn change<R>(&self, act: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let mut table = TABLE.lock();
        let entries = table.get_mut(&(self.protocol, self.number))?;
        entries.iter_mut().find(|entry| entry.id == self.id).map(act)
    }

    /// The socket begins to listen: EADDRINUSE if it cannot share the port with another socket.
    pub fn listen(&self) -> Result<()> {
        let mut table = TABLE.lock();
        let Some(entries) = table.get_mut(&(self.protocol, self.number)) else {
            return Err(Errno::EINVAL);
        };
        let own = entries.iter().find(|e| e.id == self.id).map(|e| e.claim.clone());
        let own = own.ok_or(Errno::EINVAL)?;
        if entries.iter().any(|e| e.id != self.id && conflicts(&own, e)) {
            return Err(Errno::EADDRINUSE);
        }
        for entry in entries.iter_mut().filter(|e| e.id == self.id) {
            entry.listening = true;
        }
        Ok(())
    }

    /// The socket does not listen any more.
    pub fn stop_listening(&self) {
        self.change(|entry| entry.listening = false);
    }

    /// The socket is connected, or not any more; its own address may have changed with that.
    pub fn set_peer(&self, cover: Cover, local: IpAddr, peer: Option<SocketAddr>) {
        self.change(|entry| {
            entry.claim.cover = cover;
            entry.local = local;
            entry.peer = peer;
        });
    }

    /// SO_REUSEADDR and SO_REUSEPORT were set after the binding.
    pub fn set_reuse(&self, addr: bool, port: bool) {
        self.change(|entry| {
            entry.claim.reuse_addr = addr;
            entry.claim.reuse_port = port;
        });
    }

    /// A hold on the same port for a connection that a listener has made.
    pub fn share(
        &self,
        holder: Holder,
        cover: Cover,
        local: IpAddr,
        peer: SocketAddr,
    ) -> Result<Port> {
        let mut table = TABLE.lock();
        let key = (self.protocol, self.number);
        let own = table.get(&key).and_then(|entries| entries.iter().find(|e| e.id == self.id));
        let mut claim = own.ok_or(Errno::EINVAL)?.claim.clone();
        claim.holder = holder;
        claim.cover = cover;
        let mut entry = entry_for(&claim, local, Some(peer));
        entry.shared = false;
        insert(&mut table, self.number, entry)
    }

    /// This end closed the connection first: its port stays taken for a minute, in TIME_WAIT.
    pub fn wait_out(self) {
        let until = time::since_boot_ns() + TIME_WAIT_NS;
        let gone = self.change(|entry| {
            entry.until = Some(until);
            entry.listening = false;
            let nobody = match entry.claim.holder {
                Holder::Tcp(_) => Holder::Tcp(Weak::new()),
                Holder::Udp(_) => Holder::Udp(Weak::new()),
            };
            core::mem::replace(&mut entry.claim.holder, nobody)
        });
        drop(gone);
        core::mem::forget(self);
        if WAITING.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            limit_waiting();
        }
    }
}

/// Frees the ports whose TIME_WAIT is over, and if too many are left, those in the older half of the time that they span.
fn limit_waiting() {
    let now = time::since_boot_ns();
    let mut table = TABLE.lock();
    let mut horizon = now;
    loop {
        let what = if horizon > now { count::Tcp::WaitsCut } else { count::Tcp::WaitsOver };
        table.retain(|_, entries| {
            forget(entries, horizon, what);
            !entries.is_empty()
        });
        let waiting = || table.values().flatten().filter_map(|e| e.until);
        let (left, earliest) = (waiting().count(), waiting().min().unwrap_or(now));
        if left <= MAX_WAITING / 2 || horizon > now {
            WAITING.store(left, Ordering::Relaxed);
            return;
        }
        horizon = earliest.midpoint(now + TIME_WAIT_NS);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut table = TABLE.lock();
        let key = (self.protocol, self.number);
        let Some(entries) = table.get_mut(&key) else { return };
        let gone = entries.iter().position(|e| e.id == self.id).map(|at| entries.swap_remove(at));
        if entries.is_empty() {
            table.remove(&key);
        }
        drop(table);
        drop(gone);
    }
}
