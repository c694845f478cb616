//! The checks of a name that `bind` makes before it looks at any port, for TCP and UDP.

use super::addr::{Class, Family, Name, class, family_of, needs_scope};
use super::option::{Options, known};
use super::socket::Who;
use super::sysctl;
use abi::net::{IPPROTO_IP, IPPROTO_IPV6, ip, ipv6};
use abi::socket::{AF_UNSPEC, SOCK_STREAM};
use abi::{Errno, Result};
use core::net::{IpAddr, SocketAddr};

/// Checks a name to bind to.
pub fn check_bind(
    family: Family,
    kind: u32,
    name: &[u8],
    options: &Options,
    who: Who,
) -> Result<SocketAddr> {
    let name = match decode(family, name) {
        Err(Errno::EAFNOSUPPORT) if is_unspec_any(family, name) => {
            return Ok(SocketAddr::new(family.any(), u16::from_be_bytes([name[2], name[3]])));
        }
        decoded => decoded?,
    };
    let addr = name.addr;
    let only = options.is_on(const { known(IPPROTO_IPV6, ipv6::V6ONLY) });
    match (class(addr.ip()), addr.ip()) {
        (Class::Multicast, IpAddr::V6(_)) if kind == SOCK_STREAM => return Err(Errno::EINVAL),
        (_, IpAddr::V4(_)) if family == Family::V6 && only => return Err(Errno::EINVAL),
        (_, ip) if needs_scope(ip) && name.scope == 0 => return Err(Errno::EINVAL),
        (Class::Foreign | Class::LinkLocal, _)
            if !options.is_on(const { known(IPPROTO_IP, ip::FREEBIND) })
                && !options.is_on(const { known(IPPROTO_IP, ip::TRANSPARENT) }) =>
        {
            return Err(Errno::EADDRNOTAVAIL);
        }
        _ => {}
    }
    let port = addr.port();
    if port != 0 && port < sysctl::range::first_unprivileged() && !who.low_ports {
        return Err(Errno::EACCES);
    }
    Ok(addr)
}

fn decode(family: Family, name: &[u8]) -> Result<Name> {
    Name::decode(family, name)
}

/// As on Linux, AF_UNSPEC is taken for AF_INET if the address is `INADDR_ANY`.
fn is_unspec_any(family: Family, name: &[u8]) -> bool {
    family == Family::V4
        && family_of(name) == Ok(AF_UNSPEC)
        && name.get(4..8).is_some_and(|addr| addr == [0; 4])
}
