//! Options of a netlink socket.
//!
//! Owns nothing. Never waits. Locks: the socket's `Stream`.

use super::netlink::Netlink;
use crate::mm::fallible::TrySlice;
use crate::net::option::{bytes_of, more, number};
use abi::net::netlink::{
    ADD_MEMBERSHIP, CAP_ACK, DROP_MEMBERSHIP, EXT_ACK, GET_STRICT_CHK, LIST_MEMBERSHIPS,
    NO_ENOBUFS, PKTINFO,
};
use abi::net::{NETLINK_ROUTE, SOL_NETLINK};
use abi::socket::SOL_SOCKET;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// Groups of NETLINK_ROUTE, and of NETLINK_KOBJECT_UEVENT.
const ROUTE_GROUPS: i32 = 36;
const UEVENT_GROUPS: i32 = 32;

/// Options that are on or off.
fn is_wish(option: i32) -> bool {
    [PKTINFO, NO_ENOBUFS, CAP_ACK, EXT_ACK, GET_STRICT_CHK].contains(&option)
}

impl Netlink {
    pub(super) fn set(&self, level: i32, option: i32, value: &[u8]) -> Result<()> {
        match (level, option) {
            (SOL_SOCKET, more::ZEROCOPY) => number(value).and(Err(Errno::EOPNOTSUPP)),
            (SOL_SOCKET, _) => self.options.set_socket(option, value),
            // The only group that anything is sent to is that of the events of devices: nothing else ever changes.
            (SOL_NETLINK, ADD_MEMBERSHIP | DROP_MEMBERSHIP) => {
                let group = number(value)?;
                let mut state = self.state.lock();
                state.has_groups = true;
                if !(1..=self.last_group()).contains(&group) {
                    return Err(Errno::EINVAL);
                }
                let bit = 1 << (group - 1);
                let groups = &mut state.groups;
                *groups = if option == ADD_MEMBERSHIP { *groups | bit } else { *groups & !bit };
                Ok(())
            }
            (SOL_NETLINK, wish) if is_wish(wish) => {
                let on = number(value)? != 0;
                let wishes = &mut self.state.lock().wishes;
                *wishes = if on { *wishes | 1 << wish } else { *wishes & !(1 << wish) };
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    pub(super) fn get(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>> {
        match (level, option) {
            (SOL_SOCKET, _) => self.options.get_socket(option),
            (SOL_NETLINK, LIST_MEMBERSHIPS) => self.memberships(),
            (SOL_NETLINK, wish) if is_wish(wish) => {
                let on = self.state.lock().wishes & 1 << wish != 0;
                if room < size_of::<i32>() { Err(Errno::EINVAL) } else { Ok(bytes_of(on.into())?) }
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn last_group(&self) -> i32 {
        if self.protocol == NETLINK_ROUTE { ROUTE_GROUPS } else { UEVENT_GROUPS }
    }

    /// The groups that it is in: a bit for each, in whole words of 32, however many bytes there is room for.
    fn memberships(&self) -> Result<Vec<u8>> {
        let state = self.state.lock();
        let groups = if state.has_groups { self.last_group().cast_unsigned() } else { 0 };
        let len = groups.div_ceil(32) as usize * size_of::<u32>();
        state.groups.to_ne_bytes()[..len].try_owned()
    }
}
