//! Internet addresses: `sockaddr`s in and out, and which addresses this machine has.
//!
//! The only interface is the loopback: its addresses are 127.0.0.0/8 and ::1, and nothing else can be reached.
//! An IPv4-mapped IPv6 address (`::ffff:127.0.0.1`) is kept as the IPv4 address in it.

use crate::net::name::SockName;
use crate::net::sysctl::ipv6;
use abi::net::{AF_INET, AF_INET6, SOCKADDR_IN, SOCKADDR_IN6, SOCKADDR_IN6_MIN};
use abi::{Errno, Result};
use arrayvec::ArrayVec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The index of the loopback interface.
pub const LO: u32 = 1;
/// Its MTU, in bytes.
pub const LO_MTU: usize = 65536;

/// Which of the two families a socket was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// `AF_*`.
    pub fn number(self) -> u16 {
        match self {
            Self::V4 => AF_INET,
            Self::V6 => AF_INET6,
        }
    }

    /// The wildcard address: `INADDR_ANY` or `in6addr_any`.
    pub fn any(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// The wildcard address and port 0.
    pub fn nowhere(self) -> SocketAddr {
        SocketAddr::new(self.any(), 0)
    }
}

/// What an address is to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Any,
    Local,
    Broadcast,
    Multicast,
    /// Link-local: no interface has such an address.
    LinkLocal,
    Foreign,
}

/// The class of an address.
pub fn class(addr: IpAddr) -> Class {
    match addr {
        IpAddr::V4(v4) if v4.is_unspecified() => Class::Any,
        IpAddr::V4(v4) if v4 == Ipv4Addr::new(127, 255, 255, 255) => Class::Broadcast,
        IpAddr::V4(v4) if v4.is_loopback() => Class::Local,
        IpAddr::V4(v4) if v4.is_multicast() => Class::Multicast,
        IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0 => Class::Broadcast,
        IpAddr::V6(v6) if v6.is_unspecified() => Class::Any,
        IpAddr::V6(v6) if v6.is_loopback() && ipv6::is_there() => Class::Local,
        IpAddr::V6(v6) if v6.is_multicast() => Class::Multicast,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Class::LinkLocal,
        _ => Class::Foreign,
    }
}

/// Whether an address means nothing without an interface: link-local ones, and groups of one link or one machine.
pub fn needs_scope(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V6(v6) if v6.is_multicast() => matches!(v6.octets()[1] & 0xf, 1 | 2),
        _ => class(addr) == Class::LinkLocal,
    }
}

/// A decoded `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub addr: SocketAddr,
    /// Of the `sockaddr`: an address in a `sockaddr_in6` may be an IPv4 one (IPv4-mapped).
    pub family: Family,
    pub scope: u32,
}

/// The family that a `sockaddr` says it is of: EINVAL if it is too short to say.
pub fn family_of(bytes: &[u8]) -> Result<u16> {
    let field = bytes.first_chunk::<2>().ok_or(Errno::EINVAL)?;
    Ok(u16::from_ne_bytes(*field))
}

/// Decodes an IPv4 name, whatever family it says: AF_UNSPEC is taken for AF_INET when sending.
pub fn decode_v4(bytes: &[u8]) -> Result<Name> {
    let Some(&[_, _, p0, p1, a, b, c, d]) = bytes.first_chunk::<8>() else {
        return Err(Errno::EINVAL);
    };
    if bytes.len() < SOCKADDR_IN {
        return Err(Errno::EINVAL);
    }
    let addr = SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([p0, p1]));
    Ok(Name { addr, family: Family::V4, scope: 0 })
}

fn decode_v6(bytes: &[u8]) -> Result<Name> {
    let too_short = Errno::EINVAL;
    if bytes.len() < SOCKADDR_IN6_MIN {
        return Err(too_short);
    }
    let port = bytes[2..4].try_into().map_or(0, u16::from_be_bytes);
    let octets: [u8; 16] = bytes[8..24].try_into().map_err(|_| too_short)?;
    let scope = bytes.get(24..28).and_then(|s| s.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let v6 = Ipv6Addr::from(octets);
    let ip = v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4);
    Ok(Name { addr: SocketAddr::new(ip, port), family: Family::V6, scope })
}

impl Name {
    /// Decodes a name for a socket of `family`; EAFNOSUPPORT if it is of another family.
    pub fn decode(family: Family, bytes: &[u8]) -> Result<Self> {
        // The length is looked at before the family, as on Linux.
        let name = match family {
            Family::V4 => decode_v4(bytes),
            Family::V6 => decode_v6(bytes),
        }?;
        if family_of(bytes)? != family.number() {
            return Err(Errno::EAFNOSUPPORT);
        }
        Ok(name)
    }

    /// As [`decode`](Self::decode), where a v6 socket also takes plain IPv4 names.
    pub fn decode_either(family: Family, bytes: &[u8]) -> Result<Self> {
        match (family, family_of(bytes)?) {
            (Family::V6, AF_INET) => decode_v4(bytes),
            _ => Self::decode(family, bytes),
        }
    }
}

/// Encodes an address as a `sockaddr` of the socket's family.
pub fn encode(family: Family, addr: SocketAddr) -> SockName {
    let mut name = ArrayVec::from([0; SOCKADDR_IN6]);
    name[..2].copy_from_slice(&family.number().to_ne_bytes());
    name[2..4].copy_from_slice(&addr.port().to_be_bytes());
    let len = match (family, addr.ip()) {
        (Family::V4, IpAddr::V4(v4)) => {
            name[4..8].copy_from_slice(&v4.octets());
            SOCKADDR_IN
        }
        (Family::V4, IpAddr::V6(_)) => SOCKADDR_IN,
        (Family::V6, ip) => {
            let v6 = match ip {
                // The wildcard address is kept as `::`, so `::ffff:0.0.0.0` comes out only if it was bound as that.
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            name[8..24].copy_from_slice(&v6.octets());
            SOCKADDR_IN6
        }
    };
    name.truncate(len);
    SockName::of(&[], &name, &[])
}

/// The name of the other side; ENOTCONN without one, or when it has no port.
pub fn encode_peer(family: Family, peer: Option<SocketAddr>) -> Result<SockName> {
    Ok(encode(family, peer.filter(|peer| peer.port() != 0).ok_or(Errno::ENOTCONN)?))
}

/// The destination of a packet to `to`, and its source address if the sender is bound to none: ENETUNREACH for all that is not this
/// machine, EADDRNOTAVAIL if a sender without `own` address needs one and there is none.
#[inline]
pub fn route(to: IpAddr, own: impl FnOnce() -> IpAddr) -> Result<(IpAddr, IpAddr)> {
    match (class(to), to) {
        (_, IpAddr::V6(_)) if !ipv6::is_there() => match own().is_unspecified() {
            true => Err(Errno::EADDRNOTAVAIL),
            false => Err(Errno::ENETUNREACH),
        },
        (Class::Local | Class::Broadcast, IpAddr::V4(v4)) if v4.octets()[0] == 127 => {
            Ok((to, Ipv4Addr::LOCALHOST.into()))
        }
        (Class::Any, IpAddr::V4(_)) => Ok((Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into())),
        (Class::Any | Class::Local, IpAddr::V6(_)) => {
            Ok((Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()))
        }
        _ => Err(Errno::ENETUNREACH),
    }
}
