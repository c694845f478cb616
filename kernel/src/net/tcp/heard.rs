//! What the filter of an end lets through of what its peer sends, and what waits until it does: on Linux the peer sends that again and again.
//! Here it comes once the filter is changed, or with what is sent or read next.
//!
//! Owns nothing. Never loses a byte of a connection that is not broken off. A filter looks at segments that have the data of one call.
//! Acknowledgements and resets pass it. Locks: the `Stream` of the end that hears, under which its filter runs.

use super::bytes::Urgent;
use super::tcp::{Guard, State, Tcp};
use crate::mm::fallible::try_copy;
use crate::net::count;
use crate::net::filter::{Shape, Way};
use crate::net::option::Options;
use crate::sync::cond_resched;
use crate::vfs::PollEvents;
use abi::Result;
use abi::net::IPPROTO_TCP;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Flags of segments.
const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;
const URGENT: u8 = 32;

/// The time to live of segments, which no filter has a reason to look at.
const HOPS: u8 = 64;

/// How often a filter is run by one call: what it cuts to a byte each time would hold up whoever sends.
const RUNS: usize = 64;

/// Whether the filter of `own` takes a segment with these flags and bytes, and how much of them.
fn takes(
    own: &Options,
    (from, to): (SocketAddr, SocketAddr),
    flags: u8,
    bytes: &[u8],
) -> Option<usize> {
    let way = Way { protocol: IPPROTO_TCP, from, to, hops: HOPS, class: 0 };
    let shape = || Shape::tcp(&way, flags, bytes.len());
    own.filter.admits(bytes, Shape::tcp_header(flags), shape)
}

impl Tcp {
    /// Whether what the peer sends comes at once.
    #[inline]
    pub(super) fn hears_all(&self, state: &State) -> bool {
        let filter = &self.options.filter;
        !filter.was_there() || !filter.is_there() && state.unheard.is_empty()
    }

    /// Takes bytes that the filter is to look at.
    #[cold]
    pub(super) fn hear_later(&self, state: &mut State, bytes: Vec<u8>) -> Result<()> {
        state.unheard.bytes.push(bytes)
    }

    /// Takes what waits for memory, or for the next call: who reads asks for it. Whether it took anything. Who polls does not
    /// ask, because it may be about to sleep.
    #[inline]
    pub(super) fn hear_rest(&self) -> bool {
        self.options.filter.was_there() && !self.state.lock().unheard.is_empty() && self.hear()
    }

    /// Takes what the filter lets through, or the first of it: then there is something to be read, and who reads takes more.
    /// Whether it took anything.
    pub(super) fn hear(&self) -> bool {
        let mut heard = 0;
        while heard < RUNS && self.hear_some() {
            heard += 1;
            cond_resched();
        }
        let any = heard > 0;
        if any {
            self.tell_readable(PollEvents::empty());
        }
        let mut state = self.state.lock();
        let ends = (state.peer.unwrap_or(state.local), state.local);
        let is_over = state.has_peer()
            && state.unheard.fin
            && state.unheard.is_empty()
            && takes(&self.options, ends, FIN | ACK, &[]).is_some();
        if is_over {
            state.unheard.fin = false;
            self.take_fin(state);
        }
        any
    }

    /// Takes some of the first piece; false if there is none, or nothing of it passes. Without memory it waits.
    fn hear_some(&self) -> bool {
        let mut guard = self.state.lock();
        if !guard.has_peer() {
            return false;
        }
        if let Some(Urgent { before: 0, byte }) = guard.unheard.urgent {
            return self.hear_urgent(guard, byte);
        }
        let state = &mut *guard;
        let ends = (state.peer.unwrap_or(state.local), state.local);
        let Some(first) = state.unheard.bytes.first() else { return false };
        let segment = &first[..state.unheard.segment(first.len())];
        let taken = takes(&self.options, ends, PUSH | ACK, segment).unwrap_or(0);
        let copied = try_copy(&segment[..taken]);
        state.unheard.more = taken > 0;
        let heard = match copied {
            Ok(bytes) if taken > 0 => state.received.push(bytes).is_ok(),
            _ => false,
        };
        if heard {
            state.unheard.bytes.skip(taken);
            state.unheard.pass(taken);
            count::data(state.local.is_ipv6(), taken);
        }
        heard
    }

    /// Takes the byte out of band that is next, as [`hear_some`](Self::hear_some).
    fn hear_urgent(&self, mut state: Guard<'_>, byte: Option<u8>) -> bool {
        let ends = (state.peer.unwrap_or(state.local), state.local);
        if let Some(byte) = byte {
            let taken = takes(&self.options, ends, URGENT | PUSH | ACK, &[byte]);
            if taken.unwrap_or(0) == 0 {
                state.unheard.more = false;
                return false;
            }
        }
        state.unheard.urgent = None;
        self.take_urgent(state, byte);
        true
    }

    /// Whether the filters of a listener and of the socket that connects to it let a connection come about.
    pub(super) fn may_connect(&self, listener: &Options, own: SocketAddr, to: SocketAddr) -> bool {
        let (there, back) = ((own, to), (to, own));
        takes(listener, there, SYN, &[]).is_some()
            && takes(&self.options, back, SYN | ACK, &[]).is_some()
            && takes(listener, there, ACK, &[]).is_some()
    }

    /// The filter is another one.
    pub(super) fn look_again(&self) {
        let asked = self.state.lock().asked.clone();
        self.admit_kept_out();
        self.hear();
        if let Some(listener) = asked.and_then(|listener| listener.upgrade()) {
            listener.admit_kept_out();
        }
    }
}
