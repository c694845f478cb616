//! Who gets what is sent to a port, and the lists of all bound sockets.

use super::table::{Entry, Holder, Place, TABLE, Which, look_at_port};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::net::addr::Family;
use crate::net::list::{WINDOW, by_windows};
use crate::net::tcp::Tcp;
use crate::net::udp::Udp;
use crate::{random, time};
use abi::Result;
use abi::net::IPPROTO_TCP;
use alloc::sync::Arc;
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

/// Of a port's entries that fit best, `choose` tells which of so many: its socket, or that of another if it is about to go.
fn best<S>(
    (protocol, number, which): (i32, u16, Which),
    fit: impl Fn(&Entry) -> Option<u8>,
    choose: impl FnOnce(usize) -> usize,
    socket: impl Fn(&Entry) -> Option<Arc<S>>,
) -> Option<Arc<S>> {
    {
        let table = TABLE.lock();
        if let Some(only) = table.port(protocol, number)?.only(which) {
            // The reference goes to the caller, so none is dropped under the lock.
            return fit(only).and_then(|_| socket(only));
        }
    }
    let mut best: Option<(u8, usize)> = None;
    look_at_port(protocol, number, which, |entry| {
        match (fit(entry), &mut best) {
            (None, _) => {}
            (Some(fit), Some((best_fit, _))) if fit < *best_fit => {}
            (Some(fit), Some((best_fit, count))) if fit == *best_fit => *count += 1,
            (Some(fit), _) => best = Some((fit, 1)),
        }
        None::<()>
    });
    let (best_fit, count) = best?;
    let after = |mut skipped: usize| {
        look_at_port(protocol, number, which, |entry| {
            if fit(entry) != Some(best_fit) {
                return None;
            }
            let found = if skipped == 0 { socket(entry) } else { None };
            skipped = skipped.saturating_sub(1);
            found
        })
    };
    after(choose(count)).or_else(|| after(0))
}

/// The TCP socket that listens at `to`: an exact address before all addresses, one family before both. Of
/// several that share the port, a random one.
pub fn listener(to: SocketAddr) -> Option<Arc<Tcp>> {
    let any = |count| {
        let [any]: [u64; 1] = random::secret_words();
        any as usize % count
    };
    let socket = |entry: &Entry| match &entry.claim.holder {
        Holder::Tcp(socket) => socket.upgrade(),
        Holder::Udp(_) => None,
    };
    let port = (IPPROTO_TCP, to.port(), Which::Listening);
    best(port, |entry| entry.claim.cover.fit(to.ip()), any, socket)
}

/// The datagram socket that a message from `from` to `to` is for: one that is connected to the sender before others.
pub fn receiver(protocol: i32, to: SocketAddr, from: SocketAddr) -> Option<Arc<Udp>> {
    let fit = |entry: &Entry| {
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
    let of_sender = |count| usize::from(from.port()) % count;
    best((protocol, to.port(), Which::All), fit, of_sender, socket)
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
pub fn for_each(protocol: i32, look: impl FnMut(&Seen)) -> Result<()> {
    by_windows(|from| window(protocol, from), look)
}
