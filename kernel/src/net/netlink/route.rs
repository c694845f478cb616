//! The answers of NETLINK_ROUTE: one interface, its addresses, its routes.

use super::message::{MULTI, put_message};
use crate::mm::fallible::{TryCollect, TryVec, try_copy};
use crate::net::addr::{LO, LO_MTU};
use crate::net::socket::Who;
use crate::net::sysctl::ipv6;
use abi::net::{AF_INET, AF_INET6, NlMsgHdr, iff};
use abi::{Errno, Result};
use alloc::vec::Vec;

const NEWLINK: u16 = 16;
const DELLINK: u16 = 17;
const GETLINK: u16 = 18;
const SETLINK: u16 = 19;
const NEWADDR: u16 = 20;
const GETADDR: u16 = 22;
const NEWROUTE: u16 = 24;
const GETROUTE: u16 = 26;
const GETNEIGH: u16 = 30;

/// Size of `struct ifinfomsg`.
const IFINFO: usize = 16;

const ARPHRD_LOOPBACK: u16 = 772;
const LOCALHOST4: [u8; 4] = [127, 0, 0, 1];
const LOCALHOST6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const FOREVER: u32 = u32::MAX;

/// Answers a request: the messages, without the `NLMSG_DONE` that ends a dump.
pub fn answer(kind: u16, dump: bool, body: &[u8], reply: NlMsgHdr, who: Who) -> Result<Vec<u8>> {
    let flags = if dump { MULTI } else { 0 };
    let mut out = Vec::new();
    let family = body.first().map_or(0, |&family| u16::from(family));
    if body.is_empty() {
        return Ok(out);
    }
    match kind {
        // All but the GET requests.
        _ if kind & 3 != 2 && !who.admin => return Err(Errno::EPERM),
        GETLINK => {
            if !dump {
                check_link(body)?;
            }
            put_message(&mut out, NlMsgHdr { kind: NEWLINK, flags, ..reply }, &link()?)?;
        }
        GETADDR if dump => {
            let header = NlMsgHdr { kind: NEWADDR, flags, ..reply };
            // A family that has no addresses is taken for all.
            if family != AF_INET6 {
                put_message(&mut out, header, &address(AF_INET, 8, &LOCALHOST4, Some(b"lo\0"))?)?;
            }
            if family != AF_INET && ipv6::is_there() {
                put_message(&mut out, header, &address(AF_INET6, 128, &LOCALHOST6, None)?)?;
            }
        }
        GETROUTE if dump => {
            let header = NlMsgHdr { kind: NEWROUTE, flags, ..reply };
            let asked = |r: &&Route| family == 0 || family == r.family;
            let is_there = |r: &&Route| r.family != AF_INET6 || ipv6::is_there();
            for route in ROUTES.iter().filter(asked).filter(is_there) {
                put_message(&mut out, header, &route.body()?)?;
            }
        }
        GETNEIGH if dump => {}
        NEWLINK | SETLINK if keeps_up(body) => {}
        NEWLINK | SETLINK | DELLINK => {
            return Err(match word(body, 4) {
                Some(0 | LO) if body.len() >= IFINFO => Errno::EOPNOTSUPP,
                Some(_) if body.len() >= IFINFO => Errno::ENODEV,
                _ => Errno::EINVAL,
            });
        }
        _ => return Err(Errno::EOPNOTSUPP),
    }
    Ok(out)
}

fn word(body: &[u8], at: usize) -> Option<u32> {
    body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Whether a change of the loopback leaves it up, as it is.
fn keeps_up(body: &[u8]) -> bool {
    let (index, flags, change) = (word(body, 4), word(body, 8), word(body, 12));
    index == Some(LO)
        && change.is_some_and(|change| change & !iff::UP == 0)
        && flags.is_some_and(|flags| flags & iff::UP != 0)
}

/// A request for one interface, by number or by name.
fn check_link(body: &[u8]) -> Result<()> {
    const IFNAME: u16 = 3;
    match word(body, 4).ok_or(Errno::EINVAL)? {
        LO => return Ok(()),
        0 => {}
        _ => return Err(Errno::ENODEV),
    }
    let mut rest = body.get(IFINFO..).unwrap_or_default();
    while let Some(&[l0, l1, k0, k1]) = rest.first_chunk::<4>() {
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        if len < 4 || len > rest.len() {
            break;
        }
        if u16::from_ne_bytes([k0, k1]) == IFNAME {
            let name = rest[4..len].split(|&b| b == 0).next();
            return if name == Some(b"lo") { Ok(()) } else { Err(Errno::ENODEV) };
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Err(Errno::EINVAL)
}

fn attribute(out: &mut Vec<u8>, kind: u16, data: &[u8]) -> Result<()> {
    let len = (4 + data.len()) as u16;
    out.try_extend_from_slice(&len.to_ne_bytes())?;
    out.try_extend_from_slice(&kind.to_ne_bytes())?;
    out.try_extend_from_slice(data)?;
    out.try_resize(out.len().next_multiple_of(4), 0)
}

/// `struct ifinfomsg` of the loopback, with its attributes.
fn link() -> Result<Vec<u8>> {
    let flags = iff::UP | iff::LOOPBACK | iff::RUNNING | iff::LOWER_UP;
    let mut out = Vec::new();
    out.try_extend_from_slice(&[0, 0])?;
    out.try_extend_from_slice(&ARPHRD_LOOPBACK.to_ne_bytes())?;
    for word in [LO, flags, 0] {
        out.try_extend_from_slice(&word.to_ne_bytes())?;
    }
    attribute(&mut out, 3, b"lo\0")?; // name
    attribute(&mut out, 13, &1000u32.to_ne_bytes())?; // length of the transmit queue
    attribute(&mut out, 16, &[0])?; // state: unknown, as a loopback's is
    attribute(&mut out, 17, &[0])?; // mode
    attribute(&mut out, 4, &(LO_MTU as u32).to_ne_bytes())?;
    attribute(&mut out, 27, &0u32.to_ne_bytes())?; // group
    attribute(&mut out, 30, &0u32.to_ne_bytes())?; // promiscuity
    attribute(&mut out, 31, &1u32.to_ne_bytes())?; // transmit queues
    attribute(&mut out, 32, &1u32.to_ne_bytes())?; // receive queues
    attribute(&mut out, 33, &[1])?; // carrier
    attribute(&mut out, 6, b"noqueue\0")?; // queueing discipline
    attribute(&mut out, 1, &[0; 6])?; // hardware address
    attribute(&mut out, 2, &[0; 6])?; // and its broadcast
    let (bytes, packets) = crate::net::count::traffic();
    let mut stats = Vec::new();
    for count in [packets, packets, bytes, bytes] {
        stats.try_extend_from_slice(&count.to_ne_bytes())?;
    }
    stats.try_resize(24 * 8, 0)?;
    attribute(&mut out, 23, &stats)?;
    let narrow = stats.chunks(8).take(23).flat_map(|count| count[..4].iter().copied());
    let narrow = narrow.try_to_vec()?;
    attribute(&mut out, 7, &narrow)?;
    Ok(out)
}

/// `struct ifaddrmsg` with its attributes.
fn address(family: u16, prefix: u8, addr: &[u8], label: Option<&[u8]>) -> Result<Vec<u8>> {
    const PERMANENT: u8 = 0x80;
    const HOST: u8 = 254;
    let mut out = try_copy(&[family as u8, prefix, PERMANENT, HOST])?;
    out.try_extend_from_slice(&LO.to_ne_bytes())?;
    attribute(&mut out, 1, addr)?;
    if let Some(label) = label {
        attribute(&mut out, 2, addr)?;
        attribute(&mut out, 3, label)?;
    } else {
        attribute(&mut out, 11, &[1])?; // who has set it: the kernel, for the loopback
    }
    attribute(&mut out, 8, &u32::from(PERMANENT).to_ne_bytes())?;
    let times = [FOREVER, FOREVER, 0, 0].map(u32::to_ne_bytes);
    attribute(&mut out, 6, times.as_flattened())?;
    Ok(out)
}

/// A route.
struct Route {
    family: u16,
    prefix: u8,
    kind: u8,
    /// `RT_SCOPE_*`.
    scope: u8,
    main: bool,
    to: &'static [u8],
    from: &'static [u8],
    metric: u32,
}

const LOCAL: u8 = 2;
const BROADCAST: u8 = 3;
const UNICAST: u8 = 1;

/// The routes of a Linux that has only a loopback, which is up.
const ROUTES: [Route; 5] = [
    Route {
        family: AF_INET,
        prefix: 8,
        kind: LOCAL,
        scope: 254,
        main: false,
        to: &[127, 0, 0, 0],
        from: &LOCALHOST4,
        metric: 0,
    },
    Route {
        family: AF_INET,
        prefix: 32,
        kind: LOCAL,
        scope: 254,
        main: false,
        to: &LOCALHOST4,
        from: &LOCALHOST4,
        metric: 0,
    },
    Route {
        family: AF_INET,
        prefix: 32,
        kind: BROADCAST,
        scope: 253,
        main: false,
        to: &[127, 255, 255, 255],
        from: &LOCALHOST4,
        metric: 0,
    },
    Route {
        family: AF_INET6,
        prefix: 128,
        kind: UNICAST,
        scope: 0,
        main: true,
        to: &LOCALHOST6,
        from: &[],
        metric: 256,
    },
    Route {
        family: AF_INET6,
        prefix: 128,
        kind: LOCAL,
        scope: 0,
        main: false,
        to: &LOCALHOST6,
        from: &[],
        metric: 0,
    },
];

impl Route {
    /// `struct rtmsg` with its attributes.
    fn body(&self) -> Result<Vec<u8>> {
        const TABLE_MAIN: u8 = 254;
        const TABLE_LOCAL: u8 = 255;
        const BY_KERNEL: u8 = 2;
        let table = if self.main { TABLE_MAIN } else { TABLE_LOCAL };
        let mut out = try_copy(&[
            self.family as u8,
            self.prefix,
            0,
            0,
            table,
            BY_KERNEL,
            self.scope,
            self.kind,
            0,
            0,
            0,
            0,
        ])?;
        attribute(&mut out, 15, &u32::from(table).to_ne_bytes())?;
        attribute(&mut out, 1, self.to)?;
        if self.family == AF_INET6 {
            attribute(&mut out, 6, &self.metric.to_ne_bytes())?;
        }
        if !self.from.is_empty() {
            attribute(&mut out, 7, self.from)?;
        }
        attribute(&mut out, 4, &LO.to_ne_bytes())?;
        Ok(out)
    }
}
