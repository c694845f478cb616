//! [`Shape`]: what stands before the bytes of a message on Linux, for the filters that look at it: the headers of the link layer, of IP, and of
//! the transport, and what is told beside them.
//!
//! Owns the bytes of the headers. Checksums and numbers that Linux draws are 0 where nobody can tell them.

use crate::base::percpu;
use crate::net::addr::LO;
use crate::random;
use abi::net::{IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE};
use alea_bpf::{Device, Facts, Packet};
use core::net::{IpAddr, SocketAddr};

const LINK: usize = 14;
/// Where a header of IPv4 has the protocol.
const PROTOCOL: usize = 9;
const IP4: usize = 20;
const IP6: usize = 40;
const UDP: usize = 8;
/// With time stamps, and that of a SYN with all that it has.
const TCP: usize = 32;
const TCP_SYN: usize = 40;
const SYN: u8 = 2;
const MOST: usize = LINK + IP6 + TCP_SYN;

/// `ETH_P_IP`, `ETH_P_IPV6`, and `ARPHRD_LOOPBACK`.
const ETH_IP: u16 = 0x800;
const ETH_IPV6: u16 = 0x86dd;
const LOOPBACK: u32 = 772;

/// From where to where a message goes over the loopback.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// `IPPROTO_*`.
    pub protocol: i32,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub hops: u8,
    pub class: u8,
}

/// The headers.
pub struct Shape {
    bytes: [u8; MOST],
    len: usize,
    data: usize,
    network: usize,
    has_link: bool,
    facts: Facts,
}

impl Shape {
    /// Of a message that came through no device.
    pub fn bare() -> Self {
        let facts = Facts {
            protocol: 0,
            device: None,
            mark: 0,
            hash: 0,
            payload: 0,
            cpu: percpu::cpu_id() as u32,
            random: || {
                let [word]: [u64; 1] = random::secret_words();
                word as u32
            },
        };
        Self { bytes: [0; MOST], len: 0, data: 0, network: 0, has_link: false, facts }
    }

    fn add(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(part);
            self.len = end;
        }
    }

    /// Of a packet of IPv4 that has its header; the sender has marked it so.
    pub fn with_ip(packet: &[u8], mark: u32) -> Self {
        let mut shape = Self::link(false, mark);
        if let [first, .., protocol] = packet.get(..PROTOCOL + 1).unwrap_or_default() {
            shape.facts.payload = u32::from(first & 0xf) * 4 + payload((*protocol).into());
        }
        shape
    }

    fn link(v6: bool, mark: u32) -> Self {
        let mut shape = Self::bare();
        let protocol = if v6 { ETH_IPV6 } else { ETH_IP };
        shape.add(&[0; LINK - 2]);
        shape.add(&protocol.to_be_bytes());
        (shape.data, shape.network, shape.has_link) = (LINK, LINK, true);
        shape.facts.protocol = protocol;
        shape.facts.device = Some(Device { index: LO, kind: LOOPBACK });
        shape.facts.mark = mark;
        shape
    }

    /// Of a packet whose data begin behind the header of IP; so many bytes will follow that.
    pub fn ip(way: &Way, len: usize, mark: u32) -> Self {
        let mut shape = Self::link(way.to.is_ipv6(), mark);
        let protocol = way.protocol as u8;
        match (way.from.ip(), way.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let whole = u16::try_from(len + IP4).unwrap_or(u16::MAX).to_be_bytes();
                shape.add(&[0x45, way.class, whole[0], whole[1]]);
                shape.add(&[0, 0, 0x40, 0, way.hops, protocol, 0, 0]);
                shape.add(&from.octets());
                shape.add(&to.octets());
                let sum = folded(sum(0, &shape.bytes[LINK..LINK + IP4]));
                shape.bytes[LINK + 10..LINK + 12].copy_from_slice(&(!sum).to_be_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let len = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
                shape.add(&[0x60 | way.class >> 4, way.class << 4, 0, 0, len[0], len[1]]);
                shape.add(&[protocol, way.hops]);
                shape.add(&from.octets());
                shape.add(&to.octets());
            }
            _ => {}
        }
        shape.data = shape.len;
        shape.facts.payload = payload(way.protocol);
        shape
    }

    /// Of a datagram of so many bytes.
    pub fn udp(way: &Way, len: usize, mark: u32) -> Self {
        let len = len + UDP;
        let mut shape = Self::ip(way, len, mark);
        shape.add(&way.from.port().to_be_bytes());
        shape.add(&way.to.port().to_be_bytes());
        shape.add(&(len as u16).to_be_bytes());
        // What Linux leaves to the device: the sum of the addresses, the protocol and the length.
        let ends = match way.to.is_ipv6() {
            true => &shape.bytes[LINK + 8..LINK + IP6],
            false => &shape.bytes[LINK + 12..LINK + IP4],
        };
        let sum = folded(sum(way.protocol.unsigned_abs() + len as u32, ends));
        shape.add(&sum.to_be_bytes());
        shape
    }

    /// Of a segment of TCP with these flags and so many bytes.
    pub fn tcp(way: &Way, flags: u8, len: usize) -> Self {
        let header = Self::tcp_header(flags);
        let mut shape = Self::ip(way, len + header, 0);
        shape.facts.payload = header as u32;
        shape.add(&way.from.port().to_be_bytes());
        shape.add(&way.to.port().to_be_bytes());
        shape.add(&[0; 8]);
        shape.add(&[(header as u8 / 4) << 4, flags, 2, 0, 0, 0, 0, 0]);
        if flags & SYN == 0 {
            shape.add(&[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
        } else {
            shape.add(&[2, 4, 0xff, 0xd7, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7]);
        }
        shape
    }

    /// Bytes of the header of a segment with these flags.
    pub fn tcp_header(flags: u8) -> usize {
        if flags & SYN == 0 { TCP } else { TCP_SYN }
    }

    /// It behind which these bytes stand.
    pub fn packet<'a>(&'a self, body: &'a [u8]) -> Packet<'a> {
        let Self { data, network, has_link, facts, .. } = *self;
        Packet { head: &self.bytes[..self.len], body, data, network, has_link, facts }
    }

    /// Bytes of the data that stand before those of the message.
    pub fn before_body(&self) -> usize {
        self.len - self.data
    }
}

/// Bytes of a transport header.
fn payload(protocol: i32) -> u32 {
    match protocol {
        IPPROTO_UDP | IPPROTO_UDPLITE | IPPROTO_ICMP | IPPROTO_ICMPV6 => 8,
        IPPROTO_TCP => TCP as u32,
        _ => 0,
    }
}

fn sum(before: u32, bytes: &[u8]) -> u32 {
    let (pairs, _) = bytes.as_chunks();
    pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum::<u32>() + before
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
