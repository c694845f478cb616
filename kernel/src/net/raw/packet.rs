//! IP headers, checksums, and the answer to an echo request.
//!
//! Plain bytes; nothing here knows of sockets.

use crate::mm::fallible::{TryVec, try_copy};
use abi::net::{IPPROTO_ICMP, IPPROTO_ICMPV6};
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 header without options, and the least of any ICMP header.
pub const HEADER: usize = 20;
const ICMP_HEADER: usize = 8;
/// The longest IPv4 packet.
pub const MAX: usize = 65_535;

/// Types of echo messages: request and answer.
const ECHO: (u8, u8) = (8, 0);
const ECHO6: (u8, u8) = (128, 129);

/// One message above IP.
pub struct Message<'a> {
    pub protocol: i32,
    pub from: IpAddr,
    pub to: IpAddr,
    pub body: &'a [u8],
}

/// The internet's checksum of some bytes, after an earlier sum of other bytes: 0 if a sum is among them and right.
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

/// What IPv6 counts of its header in the checksums above it.
fn pseudo_header(from: Ipv6Addr, to: Ipv6Addr, len: usize) -> u32 {
    let words = from.segments().into_iter().chain(to.segments()).map(u32::from).sum::<u32>();
    words.wrapping_add(len as u32).wrapping_add(IPPROTO_ICMPV6.cast_unsigned())
}

/// Puts a header before a message.
pub fn with_header(message: &Message<'_>, ttl: u8, tos: u8) -> Result<Vec<u8>> {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (message.from, message.to) else {
        return try_copy(message.body);
    };
    let len = HEADER + message.body.len();
    let mut out = Vec::with_room(len)?;
    out.try_extend_from_slice(&[0x45, tos])?;
    out.try_extend_from_slice(&(len as u16).to_be_bytes())?;
    // No number, and not to be fragmented.
    out.try_extend_from_slice(&[0, 0, 0x40, 0, ttl, message.protocol as u8, 0, 0])?;
    out.try_extend_from_slice(&from.octets())?;
    out.try_extend_from_slice(&to.octets())?;
    out.try_extend_from_slice(message.body)?;
    seal(&mut out);
    Ok(out)
}

/// Completes a header that a program wrote: the length, the number and the source if they are missing, the checksum.
/// EINVAL if it is no header.
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

/// The answer to a message, if it is a good echo request.
pub fn echo(message: &Message<'_>) -> Option<Vec<u8>> {
    let body = message.body;
    if body.len() < ICMP_HEADER {
        return None;
    }
    let (types, before) = match (message.protocol, message.from, message.to) {
        (IPPROTO_ICMP, IpAddr::V4(_), _) => (ECHO, 0),
        (IPPROTO_ICMPV6, IpAddr::V6(from), IpAddr::V6(to)) => {
            (ECHO6, pseudo_header(from, to, body.len()))
        }
        _ => return None,
    };
    if body[0] != types.0 || checksum(before, body) != 0 {
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
