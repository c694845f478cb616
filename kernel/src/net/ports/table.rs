//! The table of all bound TCP and UDP sockets: an entry for each, those of one port side by side.
//!
//! Owns the table. An entry is found, changed and removed by its [`Place`], so that none of that takes longer on a port that
//! has many; what waits in TIME_WAIT stands in the order in which that ends. Never walks all entries in one hold of its lock:
//! what does that for a user goes by windows of [`WINDOW`]. Nothing is dropped under the lock but entries without a
//! socket. Locks: `Leaf`.

use super::cover::Cover;
use crate::mm::fallible::{TryGrow, TryMap};
use crate::net::addr::Family;
use crate::net::count;
use crate::net::list::WINDOW;
use crate::net::tcp::Tcp;
use crate::net::udp::Udp;
use crate::sync::{Pace, SpinLock, cond_resched, killable, level};
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
pub struct Place {
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
    /// How often one has begun to.
    listens: u32,
}

/// Which entries of a port.
#[derive(Clone, Copy)]
pub(super) enum Which {
    All,
    Listening,
}

impl Shared {
    /// The entry, if there is one alone.
    pub(super) fn only(&self, which: Which) -> Option<&Entry> {
        match which {
            Which::All => self.more.is_empty().then_some(&*self.first.1),
            Which::Listening if self.listening.len() != 1 => None,
            Which::Listening => self.get(*self.listening.first_key_value()?.0),
        }
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

    /// Those that listen, from `id` on.
    fn listening_since(&self, id: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.listening.range(id..).filter_map(|(&id, ())| Some((id, self.get(id)?)))
    }

    /// Whether all of them are as `is` says, who are no more than a window: nobody looks through a longer list for a free port.
    pub(super) fn all_of_few(&self, is: impl Fn(&Entry) -> bool) -> bool {
        self.more.len() < WINDOW && self.since(0).all(|(_, entry)| is(entry))
    }
}

pub(super) struct Table {
    ports: BTreeMap<(i32, u16), Shared>,
    /// Those in TIME_WAIT and when that ends, in that order.
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

    /// All of a protocol from a place on.
    pub(super) fn since(&self, from: Place) -> impl Iterator<Item = (Place, &Entry)> {
        let ports = self.ports.range((from.protocol, from.number)..=(from.protocol, u16::MAX));
        ports.flat_map(move |(&(protocol, number), port)| {
            let first = if number == from.number { from.id } else { 0 };
            port.since(first).map(move |(id, entry)| (Place { protocol, number, id }, entry))
        })
    }

    pub(super) fn insert(&mut self, number: u16, entry: Box<Entry>) -> Result<Place> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let place = Place { protocol: entry.claim.protocol, number, id };
        if let Some(port) = self.port_mut(place) {
            port.more.try_put(id, entry)?;
        } else {
            let (more, listening) = (BTreeMap::new(), BTreeMap::new());
            let port = Shared { first: (id, entry), more, listening, listens: 0 };
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

    /// It listens from now on.
    pub(super) fn listen(&mut self, place: Place) -> Result<()> {
        let port = self.port_mut(place).ok_or(Errno::EINVAL)?;
        port.listening.try_put(place.id, ())?;
        port.listens = port.listens.wrapping_add(1);
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
        if self.waiting.len() == MAX_WAITING {
            self.end_first(count::Tcp::WaitsCut);
        }
        self.waiting.try_room(1)?;
        // The clock of a CPU may be a little behind that of another.
        let until = self.last_until().max(time::since_boot_ns() + TIME_WAIT_NS);
        self.stop_listening(place);
        let Some(entry) = self.get(place) else { return Ok(None) };
        entry.until = Some(until);
        let nobody = match entry.claim.holder {
            Holder::Tcp(_) => Holder::Tcp(Weak::new()),
            Holder::Udp(_) => Holder::Udp(Weak::new()),
        };
        let gone = core::mem::replace(&mut entry.claim.holder, nobody);
        debug_assert!(self.last_until() <= until, "waits out of order");
        self.waiting.try_push((until, place))?; // there is room
        Ok(Some(gone))
    }

    /// When the last of the waits ends.
    fn last_until(&self) -> u64 {
        self.waiting.back().map_or(0, |(until, _)| *until)
    }

    /// Frees the port whose wait ends first.
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

/// Shows `look` the entries of a port until it has found something. One that many have is looked at by windows, unlocked in
/// between: what comes or goes meanwhile may be missed.
pub(super) fn look_at_port<R>(
    protocol: i32,
    number: u16,
    which: Which,
    mut look: impl FnMut(&Entry) -> Option<R>,
) -> Option<R> {
    let mut from = 0;
    loop {
        let table = TABLE.lock();
        let port = table.port(protocol, number)?;
        let (all, listening) = match which {
            Which::All => (Some(port.since(from)), None),
            Which::Listening => (None, Some(port.listening_since(from))),
        };
        let mut entries = all.into_iter().flatten().chain(listening.into_iter().flatten());
        for (id, entry) in entries.by_ref().take(WINDOW) {
            if let Some(found) = look(entry) {
                return Some(found);
            }
            from = id + 1;
        }
        entries.next()?;
        drop(entries);
        drop(table);
        cond_resched();
    }
}

/// Does `act` if no entry of the port but `own` conflicts with what is claimed: EADDRINUSE otherwise. A port that many have is
/// looked at by windows, unlocked in between; what is bound meanwhile comes last and is looked at, too, and when somebody has begun to
/// listen meanwhile all are looked at again.
pub(super) fn unless_taken<R>(
    claim: &Claim,
    number: u16,
    own: u64,
    act: impl FnOnce(&mut Table) -> Result<R>,
) -> Result<R> {
    let (mut from, mut listens) = (0, None);
    loop {
        let mut table = TABLE.lock();
        let Some(port) = table.port(claim.protocol, number) else { return act(&mut table) };
        if listens.replace(port.listens).is_some_and(|before| before != port.listens) {
            from = 0;
        }
        let mut entries = port.since(from);
        for (id, old) in entries.by_ref().take(WINDOW) {
            if id != own && conflicts(claim, old) {
                return Err(Errno::EADDRINUSE);
            }
            from = id + 1;
        }
        if entries.next().is_none() {
            drop(entries);
            return act(&mut table);
        }
        drop(entries);
        drop(table);
        killable()?;
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
