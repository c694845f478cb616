//! [`Cover`]: the addresses that a binding covers, and which of two fits an address better.

use crate::net::addr::Family;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that a binding covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    V4(Option<Ipv4Addr>),
    V6(Option<Ipv6Addr>),
    /// All of both families.
    Both,
}

impl Cover {
    /// What binding a socket of `family` to `addr` covers.
    pub fn of(family: Family, addr: IpAddr, v6_only: bool) -> Self {
        match addr {
            IpAddr::V6(v6) if v6.is_unspecified() && family == Family::V6 && !v6_only => Self::Both,
            IpAddr::V6(v6) => Self::V6((!v6.is_unspecified()).then_some(v6)),
            IpAddr::V4(v4) => Self::V4((!v4.is_unspecified()).then_some(v4)),
        }
    }

    /// How well it fits an address: `None` not at all, 0 as one of all of both families, 1 as one of all of its family, 2 exactly.
    pub(super) fn fit(self, addr: IpAddr) -> Option<u8> {
        match (self, addr) {
            (Self::Both, _) => Some(0),
            (Self::V4(None), IpAddr::V4(_)) | (Self::V6(None), IpAddr::V6(_)) => Some(1),
            (Self::V4(Some(own)), IpAddr::V4(addr)) if own == addr => Some(2),
            (Self::V6(Some(own)), IpAddr::V6(addr)) if own == addr => Some(2),
            _ => None,
        }
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        let any_or_same =
            |a: Option<IpAddr>, b: Option<IpAddr>| a.is_none() || b.is_none() || a == b;
        let v4 = |c| match c {
            Self::V4(addr) => Some(addr.map(IpAddr::V4)),
            Self::Both => Some(None),
            Self::V6(_) => None,
        };
        let v6 = |c| match c {
            Self::V6(addr) => Some(addr.map(IpAddr::V6)),
            Self::Both => Some(None),
            Self::V4(_) => None,
        };
        let both = |f: &dyn Fn(Self) -> Option<Option<IpAddr>>| match (f(self), f(other)) {
            (Some(a), Some(b)) => any_or_same(a, b),
            _ => false,
        };
        both(&v4) || both(&v6)
    }
}
