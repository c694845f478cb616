//! Who gets what is sent to a port, and the lists of all bound sockets.

use super::table::{Entry, Holder, Place, TABLE, WINDOW};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::net::addr::Family;
use crate::net::tcp::Tcp;
use crate::net::udp::Udp;
use crate::sync::Pace;
use crate::{random, time};
use abi::Result;
use abi::net::IPPROTO_TCP;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::SocketAddr;

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

/// The best fit of several, the first that fits so, and how many do.
fn best<'a, T>(entries: impl Iterator<Item = (u8, &'a T)>) -> Option<(u8, &'a T, usize)> {
    let mut best: Option<(u8, &T, usize)> = None;
    // Not a loop: chained iterators go faster through themselves.
    entries.for_each(|(fit, one)| match &mut best {
        Some((best_fit, ..)) if fit < *best_fit => {}
        Some((best_fit, _, count)) if fit == *best_fit => *count += 1,
        _ => best = Some((fit, one, 1)),
    });
    best
}

/// The TCP socket that listens at `to`: an exact address before all addresses, one family before both. Of
/// several that share the port, a random one.
pub fn listener(to: SocketAddr) -> Option<Arc<Tcp>> {
    let table = TABLE.lock();
    let entries = || {
        table.listeners(IPPROTO_TCP, to.port()).filter_map(|entry| match &entry.claim.holder {
            Holder::Tcp(socket) => Some((entry.claim.cover.fit(to.ip())?, socket)),
            Holder::Udp(_) => None,
        })
    };
    let (best_fit, first, count) = best(entries())?;
    // The reference goes to the caller, so none is dropped under the lock.
    if count == 1 {
        return first.upgrade();
    }
    let of_best = || entries().filter(|(fit, _)| *fit == best_fit).map(|(_, socket)| socket);
    let [any]: [u64; 1] = random::secret_words();
    let from_any = of_best().skip(any as usize % count).chain(of_best());
    from_any.take(count).find_map(Weak::upgrade)
}

/// The datagram socket that a message from `from` to `to` is for: one that is connected to the sender before others.
pub fn receiver(protocol: i32, to: SocketAddr, from: SocketAddr) -> Option<Arc<Udp>> {
    let table = TABLE.lock();
    let port = table.port(protocol, to.port())?;
    let fitting = |entry: &Entry| {
        let fit = entry.claim.cover.fit(to.ip())?;
        match entry.peer {
            None => Some(fit),
            Some(peer) => (peer == from).then_some(fit + 4),
        }
    };
    let socket = |entry: &Entry| match &entry.claim.holder {
        Holder::Udp(socket) => socket.upgrade(),
        Holder::Tcp(_) => None,
    };
    if let Some(only) = port.only() {
        return fitting(only).and_then(|_| socket(only));
    }
    let entries = || port.all().filter_map(|entry| Some((fitting(entry)?, entry)));
    let (best_fit, first, count) = best(entries())?;
    if count == 1 {
        return socket(first);
    }
    let mut of_best = entries().filter_map(|(fit, entry)| (fit == best_fit).then_some(entry));
    of_best.nth(usize::from(from.port()) % count).and_then(socket)
}

/// How many bits of a place in a list are the entry's, which fits for years.
const ID_BITS: u32 = u64::BITS - u16::BITS;

fn seen(place: Place, entry: &Entry, now: u64) -> Seen {
    Seen {
        local: SocketAddr::new(entry.local, place.number),
        peer: entry.peer,
        holder: entry.claim.holder.clone(),
        family: entry.claim.family,
        uid: entry.claim.uid,
        waits: entry.until.map(|until| until - now),
    }
}

/// A window of the bound sockets of a protocol, and where the next begins; the first is at 0. As on Linux, what comes or goes
/// between two windows may be missed.
pub fn window(protocol: i32, from: u64) -> Result<(Vec<Seen>, Option<u64>)> {
    let now = time::since_boot_ns();
    let mut all = Vec::with_room(WINDOW)?;
    let id = from & ((1 << ID_BITS) - 1);
    let from = Place { protocol, number: (from >> ID_BITS) as u16, id };
    let table = TABLE.lock();
    for (nth, (place, entry)) in table.since(from).enumerate() {
        if nth == WINDOW {
            return Ok((all, Some(u64::from(place.number) << ID_BITS | place.id)));
        }
        if entry.until.is_none_or(|until| until > now) {
            all.try_push(seen(place, entry, now))?;
        }
    }
    Ok((all, None))
}

/// Shows `look` all bound sockets of a protocol, unlocked.
pub fn for_each(protocol: i32, mut look: impl FnMut(&Seen)) -> Result<()> {
    let mut next = Some(0);
    while let Some(from) = next {
        let (seen, rest) = window(protocol, from)?;
        seen.iter().paced().for_each(&mut look);
        next = rest;
    }
    Ok(())
}
