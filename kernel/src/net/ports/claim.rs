//! Giving out ports: one that is asked for, or a free one.

use super::port::Port;
use super::table::{Claim, Entry, TABLE, TIME_WAIT_NS, forget_waited, unless_taken};
use crate::mm::fallible::try_box;
use crate::net::list::WINDOW;
use crate::net::sysctl;
use crate::sync::Pace;
use crate::{random, time};
use abi::{Errno, Result};
use core::net::{IpAddr, SocketAddr};

/// A new connection may take over a port in TIME_WAIT after this long, as on Linux for the loopback.
const REUSE_AFTER_NS: u64 = 1_000_000_000;

/// Takes the first port, from a random one on, whose entries all may `share` it; `None` if there is no such port.
fn take_free(
    claim: &Claim,
    local: IpAddr,
    peer: Option<SocketAddr>,
    share: impl Fn(&Entry) -> bool,
) -> Result<Option<Port>> {
    let entry = try_box(Entry::new(claim.clone(), local, peer))?;
    let free_range = sysctl::range::ephemeral();
    let count = u64::from(free_range.end() - free_range.start()) + 1;
    let [start]: [u64; 1] = random::secret_words();
    let start = start % count;
    for first in (0..count).step_by(WINDOW).paced() {
        let mut table = TABLE.lock();
        let window = first..(first + WINDOW as u64).min(count);
        let number = |i| free_range.start() + ((start + i) % count) as u16;
        let port = |number: &u16| table.port(claim.protocol, *number);
        let is_free = |number: &u16| port(number).is_none_or(|port| port.all_of_few(&share));
        if let Some(number) = window.map(number).find(is_free) {
            return table.insert(number, entry).map(|place| Some(Port(place)));
        }
    }
    Ok(None)
}

/// Binds to a port, or for 0 to any free one: EADDRINUSE if it is taken, or all are.
pub fn claim(claim: &Claim, local: IpAddr, number: u16) -> Result<Port> {
    forget_waited();
    if number == 0 {
        let alone = |entry: &Entry| !entry.claim.cover.overlaps(claim.cover);
        return take_free(claim, local, None, alone)?.ok_or(Errno::EADDRINUSE);
    }
    let entry = try_box(Entry::new(claim.clone(), local, None))?;
    unless_taken(claim, number, 0, |table| table.insert(number, entry).map(Port))
}

/// Binds to any port for a connection to `peer`: one that nobody has, else one that only connections to
/// other peers have. EADDRNOTAVAIL if there is none.
pub fn claim_for(claim: &Claim, local: IpAddr, peer: SocketAddr) -> Result<Port> {
    forget_waited();
    let now = time::since_boot_ns();
    if let Some(port) = take_free(claim, local, Some(peer), |_| false)? {
        return Ok(port);
    }
    let shared = |entry: &Entry| match entry.until {
        Some(until) => until < now + TIME_WAIT_NS - REUSE_AFTER_NS,
        None => entry.shared && (entry.peer != Some(peer) || entry.local != local),
    };
    take_free(claim, local, Some(peer), shared)?.ok_or(Errno::EADDRNOTAVAIL)
}
