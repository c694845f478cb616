//! The interface lo, which every distribution brings up at its start.

use rustix::io::Result;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketType, sendto, socket};

/// The first interface of a machine is lo: Linux registers it before all others.
const LOOPBACK: u32 = 1;

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const IFF_UP: u32 = 1;

/// Brings lo up, as `ip link set lo up` does. On a kernel where it always is, nothing changes.
pub fn bring_loopback_up() -> Result<()> {
    // Protocol 0 is NETLINK_ROUTE.
    let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    sendto(&netlink, &up(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map(drop)
}

/// rtnetlink(7): a `struct nlmsghdr` and a `struct ifinfomsg` that set one flag of one interface.
fn up() -> Vec<u8> {
    let words = |of: &[u32]| of.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let halves = [RTM_NEWLINK, NLM_F_REQUEST].map(u16::to_ne_bytes);
    let header = [words(&[32]), halves.concat(), words(&[0, 0])].concat();
    // Family and kind of the device are left open; its flags, and which of them to change.
    [header, words(&[0, LOOPBACK, IFF_UP, IFF_UP])].concat()
}
