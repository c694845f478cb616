//! Ping sockets: they send echo requests and get the answers, without privilege: ICMP's `SOCK_DGRAM` (Linux's net/ipv4/ping.c).
//!
//! Owns nothing: the identifiers are [`Ident`]s. Never gives an answer to two ping sockets. Locks: that of the socket's state.

use super::ident::Ident;
use super::packet::{ICMP_HEADER, echo_types, seal_icmp};
use super::raw::{Raw, Style, make};
use crate::mm::Source;
use crate::net::addr::Family;
use crate::net::socket::{NetSocket, Who, copy_in};
use abi::net::{IPPROTO_ICMP, IPPROTO_ICMPV6};
use abi::socket::MsgFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

/// A new socket: `EACCES` for a caller in none of the groups that may.
pub fn create(family: Family, who: Who) -> Result<Arc<dyn NetSocket>> {
    if !who.pings {
        return Err(Errno::EACCES);
    }
    let protocol = if family == Family::V4 { IPPROTO_ICMP } else { IPPROTO_ICMPV6 };
    make(family, protocol, Style::Ping, who.uid)
}

impl Raw {
    /// The identifier; one is taken now if it has none: `EAGAIN` if there is none left.
    pub(super) fn ident(&self) -> Result<u16> {
        let own = |socket: &Self| socket.state.lock().ident.as_ref().map(Ident::number);
        if let Some(number) = own(self) {
            return Ok(number);
        }
        let taken = Ident::take(0, true, false).map_err(|_| Errno::EAGAIN)?;
        let mut state = self.state.lock();
        // Another thread may have been faster: then this one goes back.
        let spare = match state.ident {
            Some(_) => Some(taken),
            None => state.ident.replace(taken),
        };
        drop(state);
        drop(spare);
        own(self).ok_or(Errno::EAGAIN)
    }

    /// The echo request that the program wrote, with the identifier and the checksum of the kernel. `EINVAL` if it is none.
    pub(super) fn request(
        &self,
        src: &mut Source<'_>,
        len: usize,
        flags: MsgFlags,
    ) -> Result<Vec<u8>> {
        let ident = self.ident()?;
        if len < ICMP_HEADER {
            return Err(Errno::EINVAL);
        }
        if flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP);
        }
        let mut body = copy_in(src, len)?;
        let (request, _) = echo_types(self.family == Family::V6);
        if body[..2] != [request, 0] {
            return Err(Errno::EINVAL);
        }
        body[4..6].copy_from_slice(&ident.to_be_bytes());
        if self.family == Family::V4 {
            seal_icmp(&mut body);
        }
        Ok(body)
    }

    /// The serial of this socket's identifier, if an answer with identifier `answered` that came to address `to` may be for this
    /// socket. Of several such sockets it is for the one with the greatest serial.
    pub(super) fn is_answered_by(&self, answered: u16, to: IpAddr) -> Option<u64> {
        if to.is_ipv4() != (self.family == Family::V4) {
            return None;
        }
        let state = self.state.lock();
        let bound = state.local.is_unspecified() || state.local == to;
        let ident = state.ident.as_ref().filter(|ident| ident.number() == answered)?;
        (self.style == Style::Ping && bound && !state.closed).then_some(ident.serial())
    }
}
