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

/// Handles a request on a socket of another family, which knows no addresses and routes.
pub fn ioctl_elsewhere(cmd: u32, arg: u64, admin: bool) -> Result<i64> {
    match cmd {
        siocs::ADDRT
        | siocs::DELRT
        | siocs::GIFADDR
        | siocs::SIFADDR
        | siocs::GIFDSTADDR
        | siocs::GIFBRDADDR
        | siocs::GIFNETMASK
        | siocs::SIFNETMASK => Err(Errno::ENOTTY),
        _ => ioctl(cmd, arg, admin),
    }
}

/// Handles a request; `admin` says that the caller may change interfaces.
pub fn ioctl(cmd: u32, arg: u64, admin: bool) -> Result<i64> {
    match cmd {
        siocs::GIFCONF => return list(arg),
        siocs::ADDRT | siocs::DELRT => {
            return Err(if admin { Errno::EOPNOTSUPP } else { Errno::EPERM });
        }
        siocs::GIFNAME..=siocs::GIFMAP => {}
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
    let end = request[..NAME].iter().position(|&b| b == 0).unwrap_or(NAME);
    if &request[..end] != b"lo" {
        return Err(Errno::ENODEV);
    }
    let mut value = [0u8; IFREQ - NAME];
    if matches!(cmd, siocs::SIFFLAGS | siocs::SIFADDR | siocs::SIFNETMASK) {
        return set(cmd, &request[NAME..], admin).map(|()| 0);
    }
    get(cmd, &mut value)?;
    user::write_bytes(arg.wrapping_add(NAME as u64), &value)?;
    Ok(0)
}

/// A `sockaddr` of IPv4.
fn put_address(value: &mut [u8], address: [u8; 4]) {
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
        siocs::GIFHWADDR => value[..2].copy_from_slice(&HARDWARE.to_ne_bytes()),
        // No memory, no line, no channel.
        siocs::GIFMAP => {}
        _ => return Err(Errno::EOPNOTSUPP),
    }
    Ok(())
}

/// Only what is so already can be set.
fn set(cmd: u32, value: &[u8], admin: bool) -> Result<()> {
    if !admin {
        return Err(Errno::EPERM);
    }
    let flags = u32::from(u16::from_ne_bytes([value[0], value[1]]));
    let fits = match cmd {
        siocs::SIFFLAGS => flags & iff::UP != 0,
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
