//! Control data of AF_INET and AF_INET6: what a sender may ask for, what a receiver gets to know.

use super::addr::{Family, LO, encode};
use super::option::{Options, known, more};
use super::socket::Control;
use crate::mm::fallible::{TryGrow, try_copy};
use abi::net::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, ip, ipv6};
use abi::socket::{SCM_CREDENTIALS, SCM_RIGHTS, SOL_SOCKET};
use abi::time::{Timespec, Timeval};
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Checks a control message at `SOL_SOCKET`: descriptors and credentials are silently ignored.
pub fn check_socket_control(control: &Control) -> Result<()> {
    match (control.kind, control.data.len()) {
        (SCM_RIGHTS | SCM_CREDENTIALS, _) => Ok(()),
        (more::MARK | more::TIMESTAMPING, 4) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// What a datagram's sender asks for in control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub from: Option<IpAddr>,
    pub hops: Option<u8>,
    pub class: Option<u8>,
}

impl Wishes {
    /// Time to live and class of service: those asked for, or else the socket's.
    pub fn marks(&self, options: &Options, v6: bool) -> (u8, u8) {
        let of = |option| u8::try_from(options.get(option)).unwrap_or(0);
        let (hops, class) = if v6 {
            const { (known(IPPROTO_IPV6, ipv6::UNICAST_HOPS), known(IPPROTO_IPV6, ipv6::TCLASS)) }
        } else {
            const { (known(IPPROTO_IP, ip::TTL), known(IPPROTO_IP, ip::TOS)) }
        };
        let (hops, class) = (of(hops), of(class));
        (self.hops.unwrap_or(hops), self.class.unwrap_or(class))
    }
}

fn number(data: &[u8]) -> Result<i32> {
    data.first_chunk::<4>()
        .filter(|_| data.len() == 4)
        .map(|bytes| i32::from_ne_bytes(*bytes))
        .ok_or(Errno::EINVAL)
}

fn byte(data: &[u8], least: i32, or: i32) -> Result<Option<u8>> {
    match number(data)? {
        -1 if or == -1 => Ok(None),
        n if n >= least => u8::try_from(n).map(Some).map_err(|_| Errno::EINVAL),
        _ => Err(Errno::EINVAL),
    }
}

/// Checks the interface index that a sender asks for: 0 for any, or the loopback's.
fn check_interface(index: &[u8]) -> Result<()> {
    match number(index)? {
        0 => Ok(()),
        n if n.cast_unsigned() == LO => Ok(()),
        _ => Err(Errno::ENODEV),
    }
}

/// Reads the control messages that go with a datagram to an IPv4 or IPv6 address.
pub fn wishes(controls: &[Control], v6: bool) -> Result<Wishes> {
    let mut wishes = Wishes::default();
    for control in controls {
        let data = control.data.as_slice();
        match (control.level, control.kind) {
            (SOL_SOCKET, _) => check_socket_control(control)?,
            (IPPROTO_IP, kind) if !v6 => match kind {
                ip::PKTINFO if data.len() == 12 => {
                    check_interface(&data[..4])?;
                    let from = Ipv4Addr::new(data[4], data[5], data[6], data[7]);
                    wishes.from = (!from.is_unspecified()).then_some(from.into());
                }
                ip::TTL => wishes.hops = byte(data, 1, 0)?,
                ip::TOS if data.len() == 1 => wishes.class = Some(data[0]),
                ip::TOS => wishes.class = byte(data, 0, 0)?,
                _ => return Err(Errno::EINVAL),
            },
            (IPPROTO_IPV6, kind) if v6 => match kind {
                ipv6::PKTINFO if data.len() == 20 => {
                    check_interface(&data[16..])?;
                    let octets: [u8; 16] = data[..16].try_into().map_err(|_| Errno::EINVAL)?;
                    let from = Ipv6Addr::from(octets);
                    wishes.from = (!from.is_unspecified()).then_some(from.into());
                }
                ipv6::HOPLIMIT => wishes.hops = byte(data, 0, -1)?,
                ipv6::TCLASS => wishes.class = byte(data, 0, -1)?,
                _ => return Err(Errno::EINVAL),
            },
            (IPPROTO_UDP, _) => return Err(Errno::EINVAL),
            _ => {}
        }
    }
    Ok(wishes)
}

/// What control messages may report of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// With a port for what has one.
    pub to: SocketAddr,
    pub hops: u8,
    pub class: u8,
    /// When it came, on the wall clock.
    pub time: u64,
}

/// A wall-clock time, given in nanoseconds, in the form of the option `form`: SO_TIMESTAMP or a variant of it.
pub fn stamp(form: i32, nanos: u64) -> [[u8; 8]; 2] {
    match form {
        more::TIMESTAMPNS | more::TIMESTAMPNS_NEW => {
            let time = Timespec::from_nanos(nanos);
            [time.sec.to_ne_bytes(), time.nsec.to_ne_bytes()]
        }
        _ => {
            let time = Timeval::from_nanos(nanos);
            [time.sec.to_ne_bytes(), time.usec.to_ne_bytes()]
        }
    }
}

/// The control messages that a receiver with these options gets.
pub fn messages(options: &Options, info: &PacketInfo) -> Result<Vec<Control>> {
    let mut out = Vec::new();
    let mut put = |level, kind, data: &[u8]| {
        let data = try_copy(data)?;
        out.try_push(Control { level, kind, data })
    };
    if let Some(form) = options.stamps.form() {
        put(SOL_SOCKET, form, stamp(form, info.time).as_flattened())?;
    }
    let (hops, class) = (i32::from(info.hops), i32::from(info.class));
    match info.to.ip() {
        IpAddr::V4(to) => {
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::RECVPKTINFO) }) {
                put(IPPROTO_IPV6, ipv6::PKTINFO, &pktinfo6(to.to_ipv6_mapped()))?;
            }
            if options.is_on(const { known(IPPROTO_IP, ip::PKTINFO) }) {
                put(IPPROTO_IP, ip::PKTINFO, &pktinfo4(to))?;
            }
            if options.is_on(const { known(IPPROTO_IP, ip::RECVTTL) }) {
                put(IPPROTO_IP, ip::TTL, &hops.to_ne_bytes())?;
            }
            if options.is_on(const { known(IPPROTO_IP, ip::RECVTOS) }) {
                put(IPPROTO_IP, ip::TOS, &[info.class])?;
            }
            if options.is_on(const { known(IPPROTO_IP, ip::RECVORIGDSTADDR) }) {
                put(IPPROTO_IP, ip::RECVORIGDSTADDR, &encode(Family::V4, info.to))?;
            }
        }
        IpAddr::V6(to) => {
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::RECVPKTINFO) }) {
                put(IPPROTO_IPV6, ipv6::PKTINFO, &pktinfo6(to))?;
            }
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::RECVHOPLIMIT) }) {
                put(IPPROTO_IPV6, ipv6::HOPLIMIT, &hops.to_ne_bytes())?;
            }
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::OLD_PKTINFO) }) {
                put(IPPROTO_IPV6, ipv6::OLD_PKTINFO, &pktinfo6(to))?;
            }
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::OLD_HOPLIMIT) }) {
                put(IPPROTO_IPV6, ipv6::OLD_HOPLIMIT, &hops.to_ne_bytes())?;
            }
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::RECVTCLASS) }) {
                put(IPPROTO_IPV6, ipv6::TCLASS, &class.to_ne_bytes())?;
            }
            if options.is_on(const { known(IPPROTO_IPV6, ipv6::RECVORIGDSTADDR) }) {
                put(IPPROTO_IPV6, ipv6::RECVORIGDSTADDR, &encode(Family::V6, info.to))?;
            }
        }
    }
    Ok(out)
}

fn pktinfo4(to: Ipv4Addr) -> [u8; 12] {
    let mut data = [0; 12];
    data[..4].copy_from_slice(&LO.to_ne_bytes());
    data[4..8].copy_from_slice(&to.octets());
    data[8..].copy_from_slice(&to.octets());
    data
}

fn pktinfo6(to: Ipv6Addr) -> [u8; 20] {
    let mut data = [0; 20];
    data[..16].copy_from_slice(&to.octets());
    data[16..].copy_from_slice(&LO.to_ne_bytes());
    data
}
