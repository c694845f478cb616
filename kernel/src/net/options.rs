//! `setsockopt` and `getsockopt` at the levels of IPv4 and IPv6, for TCP, UDP and raw sockets.

use super::addr::{Family, LO, LO_MTU};
use super::option::{Options, bytes_of, number, number_or_byte};
use crate::mm::fallible::try_copy;
use abi::net::{IPPROTO_IP, IPPROTO_IPV6, ip, ipv6};
use abi::{Errno, Result};
use alloc::vec::Vec;

/// Sets an option; `bound` says that the socket has a port.
pub fn set_ip(
    options: &Options,
    family: Family,
    level: i32,
    option: i32,
    value: &[u8],
    bound: bool,
) -> Result<()> {
    match (level, family) {
        (IPPROTO_IP, _) => set_v4(options, option, value),
        (IPPROTO_IPV6, Family::V6) => set_v6(options, option, value, bound),
        _ => Err(Errno::ENOPROTOOPT),
    }
}

fn set_v4(options: &Options, option: i32, value: &[u8]) -> Result<()> {
    match option {
        // No header carries options here.
        ip::OPTIONS => {
            if value.len() > 40 {
                Err(Errno::EINVAL)
            } else {
                Ok(())
            }
        }
        ip::ADD_MEMBERSHIP | ip::DROP_MEMBERSHIP if value.len() < 8 => Err(Errno::EINVAL),
        ip::ADD_MEMBERSHIP if value[0] & 0xf0 != 0xe0 => Err(Errno::EINVAL),
        // No interface here takes multicasts.
        ip::ADD_MEMBERSHIP => Err(Errno::ENODEV),
        ip::DROP_MEMBERSHIP => Err(Errno::EADDRNOTAVAIL),
        ip::MULTICAST_IF => match value {
            [] | [_] | [_, _] | [_, _, _] => Err(Errno::EINVAL),
            [0 | 127, ..] => Ok(()),
            _ => Err(Errno::EADDRNOTAVAIL),
        },
        ip::MTU => Err(Errno::ENOPROTOOPT),
        ip::TOS => options.keep(IPPROTO_IP, option, number_or_byte(value) & 0xff),
        _ => options.keep(IPPROTO_IP, option, number_or_byte(value)),
    }
}

fn set_v6(options: &Options, option: i32, value: &[u8], bound: bool) -> Result<()> {
    match option {
        ipv6::V6ONLY if bound => Err(Errno::EINVAL),
        ipv6::JOIN_GROUP | ipv6::LEAVE_GROUP if value.len() < 20 => Err(Errno::EINVAL),
        ipv6::JOIN_GROUP if value[0] != 0xff => Err(Errno::EINVAL),
        ipv6::JOIN_GROUP => Err(Errno::ENODEV),
        ipv6::LEAVE_GROUP => Err(Errno::EADDRNOTAVAIL),
        ipv6::MULTICAST_IF => match number(value)? {
            0 => Ok(()),
            n if n.cast_unsigned() == LO => Ok(()),
            _ => Err(Errno::ENODEV),
        },
        ipv6::MTU | ipv6::PKTINFO | ipv6::HOPLIMIT => Err(Errno::ENOPROTOOPT),
        _ => options.keep(IPPROTO_IPV6, option, number(value)?),
    }
}

/// An option's value; `connected` says that the socket has a peer.
pub fn get_ip(
    options: &Options,
    family: Family,
    level: i32,
    option: i32,
    room: usize,
    connected: bool,
) -> Result<Vec<u8>> {
    let value = match (level, option, family) {
        (IPPROTO_IP, ip::OPTIONS, _) => return Ok(Vec::new()),
        (IPPROTO_IP, ip::MULTICAST_IF, _) => return bytes_of(0),
        (IPPROTO_IPV6, ipv6::MULTICAST_IF, Family::V6) => 0,
        (IPPROTO_IP, ip::MTU, _) | (IPPROTO_IPV6, ipv6::MTU, Family::V6) => {
            if !connected {
                return Err(Errno::ENOTCONN);
            }
            if level == IPPROTO_IP { 65535 } else { LO_MTU as i32 }
        }
        (IPPROTO_IP, ..) | (IPPROTO_IPV6, _, Family::V6) => {
            options.value(level, option).ok_or(Errno::ENOPROTOOPT)?
        }
        _ if family == Family::V4 => return Err(Errno::EOPNOTSUPP),
        _ => return Err(Errno::ENOPROTOOPT),
    };
    // As on Linux, an option of IPv4 fits into a single byte if the caller has no room for an `int`.
    if level == IPPROTO_IP && (1..4).contains(&room) && (0..=255).contains(&value) {
        return try_copy(&[value as u8]);
    }
    bytes_of(value)
}
