//! The table of all bound TCP and UDP sockets: an entry for each, those of one port side by side.
//!
//! Owns the table. An entry is found, changed and removed by its [`Place`], so that none of that takes longer on a port that
//! has many; what ends in TIME_WAIT stands in the order in which it ends. Never walks all entries in one hold of its lock:
//! what does that for a user goes by windows of [`WINDOW`]. Nothing is dropped under the lock but entries without a
//! socket. Locks: `Leaf`.

use super::cover::Cover;
use crate::mm::fallible::{TryGrow, TryMap};
use crate::net::addr::Family;
use crate::net::count;
use crate::net::tcp::Tcp;
use crate::net::udp::Udp;
use crate::sync::{Pace, SpinLock, cond_resched, level};
use crate::time;
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Weak;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};

/// How long a port stays taken after the end that closed first is gone.
pub(super) const TIME_WAIT_NS: u64 = 60_000_000_000;
/// How many ports may be in TIME_WAIT; when there are more, the oldest is freed early.
const MAX_WAITING: usize = 4096;
/// So many ports, or entries of the table, are looked at before the table's lock is released for a moment: others need it too.
pub(super) const WINDOW: usize = 64;

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

pub(super) struct Entry {
    pub(super) claim: Claim,
    listening: bool,
    /// The other end, if the socket is connected.
    pub(super) peer: Option<SocketAddr>,
    pub(super) local: IpAddr,
    /// The port was chosen for a connection: others may have it too, with other peers.
    pub(super) shared: bool,
    /// In TIME_WAIT: when that ends. The entry has no socket any more.
    pub(super) until: Option<u64>,
}

impl Entry {
    /// Of a socket that is bound now, or is connected to `peer` at once.
    pub(super) fn new(claim: Claim, local: IpAddr, peer: Option<SocketAddr>) -> Self {
        Self { claim, listening: false, peer, local, shared: peer.is_some(), until: None }
    }
}

/// Where an entry stands: numbers that are given out once, in the order of the bindings, tell those of one port apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) protocol: i32,
    pub(super) number: u16,
    pub(super) id: u64,
}

/// A port, which somebody has.
pub(super) struct Shared {
    /// The oldest entry; most ports have no other.
    first: (u64, Box<Entry>),
    /// The others.
    more: BTreeMap<u64, Box<Entry>>,
    /// Those of them all that listen.
    listening: BTreeMap<u64, ()>,
}

impl Shared {
    /// The entry, if there is one alone.
    pub(super) fn only(&self) -> Option<&Entry> {
        self.more.is_empty().then_some(&*self.first.1)
    }

    fn get(&self, id: u64) -> Option<&Entry> {
        let entry = if id == self.first.0 { &self.first.1 } else { self.more.get(&id)? };
        Some(entry)
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        let entry = if id == self.first.0 { &mut self.first.1 } else { self.more.get_mut(&id)? };
        Some(entry)
    }

    /// Those from `id` on, in the order of the bindings.
    fn since(&self, id: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let (first, oldest) = &self.first;
        let first = (id <= *first).then_some((*first, &**oldest));
        first.into_iter().chain(self.more.range(id..).map(|(&id, entry)| (id, &**entry)))
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        core::iter::once(&*self.first.1).chain(self.more.values().map(|entry| &**entry))
    }

    /// EADDRINUSE if one but the own conflicts with what is claimed.
    fn check(&self, claim: &Claim, own: u64) -> Result<()> {
        let conflict = self.since(0).any(|(id, old)| id != own && conflicts(claim, old));
        if conflict { Err(Errno::EADDRINUSE) } else { Ok(()) }
    }
}

pub(super) struct Table {
    ports: BTreeMap<(i32, u16), Shared>,
    /// Those in TIME_WAIT and when that ends: all wait equally long, so the first in is the first out.
    waiting: VecDeque<(u64, Place)>,
}

pub(super) static TABLE: SpinLock<Table, level::Leaf> =
    SpinLock::new(Table { ports: BTreeMap::new(), waiting: VecDeque::new() });
/// Relaxed: only uniqueness matters.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

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

impl Table {
    pub(super) fn port(&self, protocol: i32, number: u16) -> Option<&Shared> {
        self.ports.get(&(protocol, number))
    }

    fn port_mut(&mut self, place: Place) -> Option<&mut Shared> {
        self.ports.get_mut(&(place.protocol, place.number))
    }

    pub(super) fn of_port(&self, protocol: i32, number: u16) -> impl Iterator<Item = &Entry> {
        self.port(protocol, number).into_iter().flat_map(Shared::all)
    }

    /// Those of a port that listen.
    pub(super) fn listeners(&self, protocol: i32, number: u16) -> impl Iterator<Item = &Entry> {
        let port = self.port(protocol, number).into_iter();
        port.flat_map(|port| port.listening.keys().filter_map(|&id| port.get(id)))
    }

    /// All of a protocol from a place on.
    pub(super) fn since(&self, from: Place) -> impl Iterator<Item = (Place, &Entry)> {
        let ports = self.ports.range((from.protocol, from.number)..=(from.protocol, u16::MAX));
        ports.flat_map(move |(&(protocol, number), port)| {
            let first = if number == from.number { from.id } else { 0 };
            port.since(first).map(move |(id, entry)| (Place { protocol, number, id }, entry))
        })
    }

    /// EADDRINUSE if an entry of the port conflicts with what is claimed.
    pub(super) fn check(&self, claim: &Claim, number: u16) -> Result<()> {
        self.port(claim.protocol, number).map_or(Ok(()), |port| port.check(claim, 0))
    }

    pub(super) fn insert(&mut self, number: u16, entry: Box<Entry>) -> Result<Place> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let place = Place { protocol: entry.claim.protocol, number, id };
        if let Some(port) = self.port_mut(place) {
            port.more.try_put(id, entry)?;
        } else {
            let (more, listening) = (BTreeMap::new(), BTreeMap::new());
            let port = Shared { first: (id, entry), more, listening };
            self.ports.try_put((place.protocol, number), port)?;
        }
        Ok(place)
    }

    /// Takes an entry out, to be dropped unlocked.
    pub(super) fn remove(&mut self, place: Place) -> Option<Box<Entry>> {
        let port = self.port_mut(place)?;
        port.listening.remove(&place.id);
        if place.id != port.first.0 {
            return port.more.remove(&place.id);
        }
        if let Some(next) = port.more.pop_first() {
            return Some(core::mem::replace(&mut port.first, next).1);
        }
        self.ports.remove(&(place.protocol, place.number)).map(|port| port.first.1)
    }

    pub(super) fn get(&mut self, place: Place) -> Option<&mut Entry> {
        self.port_mut(place)?.get_mut(place.id)
    }

    /// It listens from now on: EADDRINUSE if it cannot share the port with another.
    pub(super) fn listen(&mut self, place: Place) -> Result<()> {
        let port = self.port_mut(place).ok_or(Errno::EINVAL)?;
        let own = port.get(place.id).ok_or(Errno::EINVAL)?;
        port.check(&own.claim, place.id)?;
        port.listening.try_put(place.id, ())?;
        port.get_mut(place.id).ok_or(Errno::EINVAL)?.listening = true;
        Ok(())
    }

    pub(super) fn stop_listening(&mut self, place: Place) {
        let Some(port) = self.port_mut(place) else { return };
        port.listening.remove(&place.id);
        if let Some(entry) = port.get_mut(place.id) {
            entry.listening = false;
        }
    }

    /// An entry loses its socket and waits for a minute; what it referred to, to be dropped unlocked. When too many wait, the
    /// oldest need not any longer.
    pub(super) fn wait_out(&mut self, place: Place) -> Result<Option<Holder>> {
        let until = time::since_boot_ns() + TIME_WAIT_NS;
        if self.waiting.len() == MAX_WAITING {
            self.end_first(count::Tcp::WaitsCut);
        }
        self.waiting.try_room(1)?;
        self.stop_listening(place);
        let Some(entry) = self.get(place) else { return Ok(None) };
        entry.until = Some(until);
        let nobody = match entry.claim.holder {
            Holder::Tcp(_) => Holder::Tcp(Weak::new()),
            Holder::Udp(_) => Holder::Udp(Weak::new()),
        };
        let gone = core::mem::replace(&mut entry.claim.holder, nobody);
        self.waiting.try_push((until, place))?; // there is room
        Ok(Some(gone))
    }

    /// Frees the port that has waited longest.
    fn end_first(&mut self, what: count::Tcp) {
        if let Some((_, place)) = self.waiting.pop_front() {
            self.remove(place);
            count::tcp(what);
        }
    }

    /// Frees a window of the ports whose TIME_WAIT is over at `now`; whether that was a whole window.
    fn end_waits(&mut self, now: u64) -> bool {
        for _ in 0..WINDOW {
            match self.waiting.front() {
                Some((until, _)) if *until <= now => self.end_first(count::Tcp::WaitsOver),
                _ => return false,
            }
        }
        true
    }
}

/// Frees all ports whose TIME_WAIT is over.
pub fn forget_waited() {
    if TABLE.lock().waiting.is_empty() {
        return;
    }
    let now = time::since_boot_ns();
    while TABLE.lock().end_waits(now) {
        cond_resched();
    }
}

/// Frees all ports in TIME_WAIT (a loopback has no late segments), so that who counts what a program left behind does not count them.
pub fn forget_waiting() {
    let mut waiting = core::mem::take(&mut TABLE.lock().waiting);
    for (_, place) in waiting.drain(..).paced() {
        let gone = TABLE.lock().remove(place);
        drop(gone);
    }
}
