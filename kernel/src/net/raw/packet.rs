//! IP headers, checksums, the answer to an echo request, and the ICMP message "port unreachable".
//!
//! Makes and reads bytes, and counts messages; nothing here knows of sockets.

use crate::mm::fallible::{TryVec, try_copy};
use crate::net::count::{self, Ip, Way};
use crate::net::inbox::Datagram;
use crate::net::inbox::report;
use abi::net::{IPPROTO_ICMP, IPPROTO_ICMPV6};
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Lengths of an IPv4 header without options, and of an ICMP header.
pub const HEADER: usize = 20;
pub const ICMP_HEADER: usize = 8;
const HEADER6: usize = 40;
const UDP_HEADER: usize = 8;
/// The longest IPv4 packet.
pub const MAX: usize = 65_535;

/// Types of echo messages: request and answer.
const ECHO: (u8, u8) = (8, 0);
const ECHO6: (u8, u8) = (128, 129);

/// The last type of ICMP that there is.
const LAST_TYPE: u8 = 18;

/// One message above IP.
pub struct Message<'a> {
    pub protocol: i32,
    pub from: IpAddr,
    pub to: IpAddr,
    pub body: &'a [u8],
}

/// The Internet checksum of some bytes, continued from the sum of others: 0 if the bytes include a checksum that is right.
fn checksum(before: u32, bytes: &[u8]) -> u16 {
    let mut sum = u64::from(before);
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of the IPv6 pseudo-header that the checksum of ICMPv6 includes.
fn pseudo_header(from: Ipv6Addr, to: Ipv6Addr, len: usize) -> u32 {
    let words = from.segments().into_iter().chain(to.segments()).map(u32::from).sum::<u32>();
    words.wrapping_add(len as u32).wrapping_add(IPPROTO_ICMPV6.cast_unsigned())
}

/// Puts an IPv4 header before a message; one of IPv6 is copied as it is.
pub fn with_header(message: &Message<'_>, ttl: u8, tos: u8) -> Result<Vec<u8>> {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (message.from, message.to) else {
        return try_copy(message.body);
    };
    let len = HEADER + message.body.len();
    let mut out = Vec::with_room(len)?;
    out.try_extend_from_slice(&[0x45, tos])?;
    out.try_extend_from_slice(&(len as u16).to_be_bytes())?;
    // Identification 0, and "don't fragment".
    out.try_extend_from_slice(&[0, 0, 0x40, 0, ttl, message.protocol as u8, 0, 0])?;
    out.try_extend_from_slice(&from.octets())?;
    out.try_extend_from_slice(&to.octets())?;
    out.try_extend_from_slice(message.body)?;
    seal(&mut out);
    Ok(out)
}

/// Completes an IPv4 header that a program wrote: the length, the checksum, and the identification and the source address if
/// they are 0. EINVAL if it is no header.
pub fn complete(packet: &mut [u8], source: IpAddr, number: u16) -> Result<usize> {
    let total = u16::try_from(packet.len()).map_err(|_| Errno::EMSGSIZE)?;
    let header = packet.first_chunk_mut::<HEADER>().ok_or(Errno::EINVAL)?;
    let len = usize::from(header[0] & 0xf) * 4;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    if header[4..6] == [0, 0] {
        header[4..6].copy_from_slice(&number.to_be_bytes());
    }
    if header[12..16] == [0; 4]
        && let IpAddr::V4(source) = source
    {
        header[12..16].copy_from_slice(&source.octets());
    }
    if len < HEADER || len > packet.len() {
        return Err(Errno::EINVAL);
    }
    seal(packet);
    Ok(len)
}

/// Writes the checksum of an IPv4 header.
fn seal(packet: &mut [u8]) {
    let len = packet.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    if len < HEADER || packet.len() < len {
        return;
    }
    packet[10..12].fill(0);
    let sum = checksum(0, &packet[..len]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The source and the destination in an IPv4 header.
pub fn ends(packet: &[u8]) -> (IpAddr, IpAddr) {
    let at = |offset: usize| {
        let octets = packet.get(offset..offset + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
        IpAddr::V4(Ipv4Addr::from(octets.unwrap_or_default()))
    };
    (at(12), at(16))
}

/// Writes the checksum that IPv6 wants in an ICMP message.
pub fn seal_icmp6(body: &mut [u8], from: IpAddr, to: IpAddr) {
    let (IpAddr::V6(from), IpAddr::V6(to)) = (from, to) else { return };
    if body.len() < 4 {
        return;
    }
    body[2..4].fill(0);
    let sum = checksum(pseudo_header(from, to, body.len()), body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Counts the message that `unreachable` makes, without making it, when there is no raw socket to see it.
pub fn tally_unreachable(sent: &Datagram, v6: bool) {
    let quoted = report::quoted(&sent.bytes, v6).len();
    let header = if v6 { HEADER6 } else { HEADER };
    let bytes = header + ICMP_HEADER + header + UDP_HEADER + quoted;
    count::packets(v6, if v6 { 0 } else { sent.info.class | 0xc0 }, 1, bytes as u64);
    let kind = if v6 { 1 } else { 3 };
    count::icmp(Way::Out, v6, kind);
    count::icmp(Way::In, v6, kind);
}

/// The ICMP message that nobody has the port of a datagram, which it quotes with its headers.
pub fn unreachable(protocol: i32, to: SocketAddr, sent: &Datagram) -> Result<Vec<u8>> {
    let v6 = to.is_ipv6();
    let len = (UDP_HEADER + sent.bytes.len()) as u16;
    let mut body = Vec::new();
    body.try_extend_from_slice(if v6 {
        &[1, 4, 0, 0, 0, 0, 0, 0]
    } else {
        &[3, 3, 0, 0, 0, 0, 0, 0]
    })?;
    let mut datagram = Vec::new();
    // A checksum of 0 stands for none, and none was made.
    for field in [sent.from.port(), to.port(), len, 0] {
        datagram.try_extend_from_slice(&field.to_be_bytes())?;
    }
    datagram.try_extend_from_slice(&sent.bytes)?;
    let quoted = Message { protocol, from: sent.from.ip(), to: to.ip(), body: &datagram };
    let headers = if v6 { HEADER6 } else { HEADER } + UDP_HEADER;
    let mut packet = match v6 {
        true => with_header6(&quoted, sent.info.hops, sent.info.class)?,
        false => with_header(&quoted, sent.info.hops, sent.info.class)?,
    };
    packet.truncate(headers + report::quoted(&sent.bytes, v6).len());
    body.try_extend_from_slice(&packet)?;
    if v6 {
        seal_icmp6(&mut body, to.ip(), sent.from.ip());
    } else {
        let sum = checksum(0, &body);
        body[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    Ok(body)
}

/// Puts an IPv6 header before a message.
fn with_header6(message: &Message<'_>, hops: u8, class: u8) -> Result<Vec<u8>> {
    let (IpAddr::V6(from), IpAddr::V6(to)) = (message.from, message.to) else {
        return Err(Errno::EINVAL);
    };
    let mut out = Vec::with_room(HEADER6 + message.body.len())?;
    out.try_extend_from_slice(&[0x60 | class >> 4, class << 4, 0, 0])?;
    out.try_extend_from_slice(&(message.body.len() as u16).to_be_bytes())?;
    out.try_extend_from_slice(&[message.protocol as u8, hops])?;
    out.try_extend_from_slice(&from.octets())?;
    out.try_extend_from_slice(&to.octets())?;
    out.try_extend_from_slice(message.body)?;
    Ok(out)
}

/// The sum with which the checksum of an ICMP message begins; `None` for other protocols.
fn before_sum(message: &Message<'_>) -> Option<u32> {
    match (message.protocol, message.from, message.to) {
        (IPPROTO_ICMP, IpAddr::V4(_), _) => Some(0),
        (IPPROTO_ICMPV6, IpAddr::V6(from), IpAddr::V6(to)) => {
            Some(pseudo_header(from, to, message.body.len()))
        }
        _ => None,
    }
}

/// Counts a message that was sent over the loopback with a class of service, and has arrived; `whole` is it with its IPv4 header.
pub fn tally(message: &Message<'_>, whole: &[u8], class: u8) {
    let v6 = message.to.is_ipv6();
    let bytes = whole.len() + if v6 { HEADER6 } else { 0 };
    count::packets(v6, class, 1, bytes as u64);
    let (Some(before), Some(&kind)) = (before_sum(message), message.body.first()) else { return };
    count::icmp(Way::Out, v6, kind);
    if checksum(before, message.body) != 0 {
        count::ip(Ip::IcmpBadSums, v6);
        count::ip(Ip::IcmpErrors, v6);
        return;
    }
    count::icmp(Way::In, v6, kind);
    if message.body.len() < ICMP_HEADER || !v6 && kind > LAST_TYPE {
        count::ip(Ip::IcmpErrors, v6);
    }
}

/// The types of an echo request and of its answer.
pub fn echo_types(v6: bool) -> (u8, u8) {
    if v6 { ECHO6 } else { ECHO }
}

/// Writes the checksum of an ICMP message of IPv4.
pub fn seal_icmp(body: &mut [u8]) {
    if body.len() >= ICMP_HEADER {
        body[2..4].fill(0);
        let sum = checksum(0, body);
        body[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

impl Message<'_> {
    /// The identifier of the echo request that this is a good answer to.
    pub fn answers(&self) -> Option<u16> {
        let before = before_sum(self)?;
        let header = self.body.first_chunk::<ICMP_HEADER>()?;
        let (_, answer) = echo_types(self.to.is_ipv6());
        let is_good = header[..2] == [answer, 0] && checksum(before, self.body) == 0;
        is_good.then(|| u16::from_be_bytes([header[4], header[5]]))
    }
}

/// The answer to a message, if it is a good echo request.
pub fn echo(message: &Message<'_>) -> Option<Vec<u8>> {
    let body = message.body;
    let before = before_sum(message)?;
    let types = echo_types(message.to.is_ipv6());
    if body.len() < ICMP_HEADER || body[0] != types.0 || checksum(before, body) != 0 {
        return None;
    }
    // Without memory the answer is lost, as on a bad line.
    let mut answer = try_copy(body).ok()?;
    answer[0] = types.1;
    answer[2..4].fill(0);
    let sum = checksum(before, &answer);
    answer[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(answer)
}
