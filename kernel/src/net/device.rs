//! `ioctl` about interfaces: there is one, the loopback, and it is always up.

use super::addr::{LO, LO_MTU};
use crate::mm::user::{self, UserPtr};
use abi::net::{AF_INET, iff, siocs};
use abi::{Errno, Result};

/// `struct ifreq`: a name, and what the request is about.
const NAME: usize = 16;
const IFREQ: usize = 40;
/// `ARPHRD_LOOPBACK`.
const HARDWARE: u16 = 772;

/// `struct rtentry`.
const RTENTRY: usize = 120;

/// Requests of AF_INET alone: addresses, routes, neighbours.
fn is_inet(cmd: u32) -> bool {
    matches!(
        cmd,
        siocs::ADDRT | siocs::DELRT | siocs::GIFADDR..=siocs::SIFNETMASK | siocs::GIFPFLAGS | siocs::DARP..=siocs::SARP
    )
}

/// Handles a request on a socket of `domain` (none is AF_UNIX); `admin` says that the caller may change interfaces.
pub fn ioctl(cmd: u32, arg: u64, admin: bool, domain: Option<u16>) -> Result<i64> {
    if is_inet(cmd) && domain != Some(AF_INET) {
        return Err(Errno::ENOTTY);
    }
    match cmd {
        siocs::GIFCONF => return list(arg),
        siocs::ADDRT | siocs::DELRT => {
            user::read_bytes(arg, &mut [0; RTENTRY])?;
            return Err(if admin { Errno::EOPNOTSUPP } else { Errno::EPERM });
        }
        // There are no neighbours and no bridges.
        siocs::DARP | siocs::SARP if !admin => return Err(Errno::EPERM),
        siocs::GIFBR => return Err(Errno::ENOPKG),
        siocs::GIFNAME..=siocs::GIFMAP | siocs::PRIVATE..=siocs::LAST => {}
        _ => return Err(Errno::ENOTTY),
    }
    let mut request = [0u8; IFREQ];
    user::read_bytes(arg, &mut request)?;
    if cmd == siocs::GIFNAME {
        let index = request[NAME..NAME + 4].try_into().map_or(0, u32::from_ne_bytes);
        if index != LO {
            return Err(Errno::ENODEV);
        }
        request[..NAME].fill(0);
        request[..2].copy_from_slice(b"lo");
        user::write_bytes(arg, &request)?;
        return Ok(0);
    }
    if changes(cmd) && !admin {
        return Err(Errno::EPERM);
    }
    if matches!(cmd, siocs::GIFMEM | siocs::GIFENCAP) {
        return Err(Errno::ENOTTY);
    }
    let name = request[..NAME].split(|&byte| byte == 0).next().unwrap_or_default();
    // `lo:0` and the like are aliases of `lo`: names for further IPv4 addresses, of which it has none.
    let mut parts = name.splitn(2, |&byte| byte == b':');
    if parts.next() != Some(b"lo") {
        return Err(Errno::ENODEV);
    }
    if parts.next().is_some() && is_inet(cmd) {
        return Err(Errno::EADDRNOTAVAIL);
    }
    let value = &mut request[NAME..];
    if changes(cmd) {
        return set(cmd, value).map(|()| 0);
    }
    get(cmd, value)?;
    user::write_bytes(arg, &request)?;
    Ok(0)
}

/// The requests that change an interface and that [`set`] knows.
fn changes(cmd: u32) -> bool {
    matches!(cmd, siocs::SIFFLAGS | siocs::SIFADDR | siocs::SIFNETMASK | siocs::SIFMTU)
}

/// A `sockaddr` of IPv4.
fn put_address(value: &mut [u8], address: [u8; 4]) {
    value[..16].fill(0);
    value[..2].copy_from_slice(&AF_INET.to_ne_bytes());
    value[4..8].copy_from_slice(&address);
}

fn get(cmd: u32, value: &mut [u8]) -> Result<()> {
    let mut put = |number: u32| value[..4].copy_from_slice(&number.to_ne_bytes());
    match cmd {
        siocs::GIFFLAGS => {
            let flags = (iff::UP | iff::LOOPBACK | iff::RUNNING) as u16;
            value[..2].copy_from_slice(&flags.to_ne_bytes());
        }
        siocs::GIFADDR | siocs::GIFDSTADDR => put_address(value, [127, 0, 0, 1]),
        siocs::GIFBRDADDR => put_address(value, [0; 4]),
        siocs::GIFNETMASK => put_address(value, [255, 0, 0, 0]),
        siocs::GIFMETRIC => put(0),
        siocs::GIFMTU => put(LO_MTU as u32),
        siocs::GIFINDEX => put(LO),
        siocs::GIFTXQLEN => put(1000),
        siocs::GIFHWADDR => {
            value[..8].fill(0);
            value[..2].copy_from_slice(&HARDWARE.to_ne_bytes());
        }
        // No memory, no line, no channel.
        siocs::GIFMAP => value.fill(0),
        siocs::GIFSLAVE | siocs::GIFPFLAGS => return Err(Errno::EINVAL),
        _ => return Err(Errno::EOPNOTSUPP),
    }
    Ok(())
}

/// Accepts only what the interface has already; of the flags, all that leave it up.
fn set(cmd: u32, value: &[u8]) -> Result<()> {
    let flags = u32::from(u16::from_ne_bytes([value[0], value[1]]));
    let fits = match cmd {
        siocs::SIFFLAGS => flags & iff::UP != 0,
        siocs::SIFMTU => value[..4] == (LO_MTU as u32).to_ne_bytes(),
        siocs::SIFADDR => value[4..8] == [127, 0, 0, 1],
        _ => value[4..8] == [255, 0, 0, 0],
    };
    if fits { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

/// SIOCGIFCONF: all interfaces with an IPv4 address.
fn list(arg: u64) -> Result<i64> {
    let room = UserPtr::<i32>::new(arg).read()?;
    let at = UserPtr::<u64>::new(arg.wrapping_add(8)).read()?;
    let mut len = IFREQ as i32;
    if at != 0 {
        if room >= len {
            let mut entry = [0u8; IFREQ];
            entry[..2].copy_from_slice(b"lo");
            put_address(&mut entry[NAME..], [127, 0, 0, 1]);
            user::write_bytes(at, &entry)?;
        } else {
            len = 0;
        }
    }
    UserPtr::<i32>::new(arg).write(&len)?;
    Ok(0)
}
