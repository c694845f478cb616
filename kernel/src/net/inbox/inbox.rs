//! [`Inbox`]: the datagrams and reports of errors that wait in a socket (UDP, raw), within its receive buffer.
//!
//! Owns the queue and what it costs; the socket's state lock guards it.

use super::report::{Report, Told};
use crate::mm::Sink;
use crate::mm::fallible::{TryGrow, try_copy};
use crate::net::addr::{Family, encode};
use crate::net::control::{self, PacketInfo};
use crate::net::option::Options;
use crate::net::peek::{Peekable, peeked};
use crate::net::socket::{Control, Incoming};
use crate::vfs::PollEvents;
use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// What a datagram costs its receiver beside its bytes.
const OVERHEAD: usize = 768;

/// What was taken out of an inbox, with the control messages that tell of it: they are made before it is taken.
pub type Taken<T> = (T, Vec<Control>);

/// One message, and what control messages may report of it.
pub struct Datagram {
    pub bytes: Vec<u8>,
    pub from: SocketAddr,
    pub info: PacketInfo,
    /// Bytes that are not to be read, of a copy for MSG_PEEK.
    pub skip: usize,
    /// MSG_PEEK has seen that it is empty.
    pub is_seen: bool,
}

impl Datagram {
    pub fn new(bytes: Vec<u8>, from: SocketAddr, info: PacketInfo) -> Self {
        Self { bytes, from, info, skip: 0, is_seen: false }
    }

    #[cold]
    fn copy(&self, skip: usize) -> Result<Self> {
        Ok(Self { skip, ..Self::new(try_copy(&self.bytes)?, self.from, self.info) })
    }

    fn cost(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }

    /// Copies out as much as `dst` has room for; EFAULT.
    pub fn read(
        &self,
        dst: &mut Sink<'_>,
        family: Family,
        options: &Options,
        control: Vec<Control>,
    ) -> Result<Incoming> {
        let full = self.bytes.len();
        let rest = &self.bytes[self.skip.min(full)..];
        // As on Linux, who has room for the rest and no more is told that it is cut.
        let to_end = self.skip > 0 && dst.remaining() > rest.len();
        let wanted = rest.len().min(dst.remaining());
        let bytes = if wanted == 0 { 0 } else { dst.put(&rest[..wanted])? };
        if bytes < wanted {
            return Err(Errno::EFAULT);
        }
        options.stamps.note(self.info.time);
        Ok(Incoming {
            bytes,
            full,
            to_end,
            from: Some(encode(family, self.from)),
            control,
            ..Incoming::default()
        })
    }
}

impl Peekable for Datagram {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn is_seen(&self) -> bool {
        self.is_seen
    }

    fn see(&mut self) {
        self.is_seen = true;
    }
}

/// What was received and not read yet, and what `shutdown` has ended.
#[derive(Default)]
pub struct Inbox {
    queue: VecDeque<Datagram>,
    /// What is read with MSG_ERRQUEUE, in order of time.
    told: VecDeque<Told>,
    /// How many sends with MSG_ZEROCOPY have their bytes no longer, and how many of them were put into that queue: those without room
    /// there are in the next notice.
    sends: u32,
    queued_sends: u32,
    held: usize,
    read_shut: bool,
    write_shut: bool,
}

impl Inbox {
    /// Takes a datagram in, if it fits into a buffer of that size: whether it did.
    pub fn push(&mut self, datagram: Datagram, buffer: usize) -> bool {
        let cost = datagram.cost();
        let fits = self.held + cost <= buffer + OVERHEAD && self.queue.try_push(datagram).is_ok();
        self.held += if fits { cost } else { 0 };
        fits
    }

    /// Takes the first out, or copies it for MSG_PEEK, or with `offset` the one that has that byte; `None` when there is none yet.
    /// Once shut for reading, a reader that would wait gets `Some(None)`: there will be no more.
    #[inline]
    pub fn next(
        &mut self,
        nonblock: bool,
        peek: bool,
        offset: Option<usize>,
        options: &Options,
    ) -> Option<Result<Option<Taken<Datagram>>>> {
        let found = match peek {
            true => peeked(&mut self.queue, offset),
            false => self.queue.front().map(|first| (first, 0)),
        };
        let Some((first, skip)) = found else {
            return (self.read_shut && !nonblock).then_some(Ok(None));
        };
        // What can fail comes first: a datagram that was taken is given.
        let control = match control::messages(options, &first.info) {
            Ok(control) => control,
            Err(error) => return Some(Err(error)),
        };
        if peek {
            return Some(first.copy(skip).map(|copy| Some((copy, control))));
        }
        let first = self.queue.pop_front()?;
        self.held = self.held.saturating_sub(first.cost());
        Some(Ok(Some((first, control))))
    }

    /// Takes all, when the socket is closed.
    pub fn take_all(&mut self) -> (VecDeque<Datagram>, VecDeque<Told>) {
        self.held = 0;
        (core::mem::take(&mut self.queue), core::mem::take(&mut self.told))
    }

    /// Takes a report in, if there is room in a buffer of that size and memory.
    pub fn push_report(&mut self, report: Report, buffer: usize) {
        let cost = report.bytes.len() + OVERHEAD;
        if self.held + cost < buffer && self.told.try_push(Told::Report(report)).is_ok() {
            self.held += cost;
        }
    }

    /// So many sends with MSG_ZEROCOPY have their bytes no longer. Those that nothing else was told between are one notice.
    pub fn push_sends(&mut self, count: u32) {
        let (first, sends) = (self.queued_sends, self.sends.wrapping_add(count));
        self.sends = sends;
        let last = sends.wrapping_sub(1);
        let queued = match self.told.back_mut() {
            Some(Told::Sends { last: end, .. }) => {
                *end = last;
                true
            }
            _ => self.told.try_push(Told::Sends { first, last }).is_ok(),
        };
        if queued {
            self.queued_sends = sends;
        }
    }

    /// The notice of those that found no room in the queue.
    fn unqueued(&self) -> Option<Told> {
        let (first, last) = (self.queued_sends, self.sends.wrapping_sub(1));
        (first != self.sends).then_some(Told::Sends { first, last })
    }

    /// Takes the first that is to be told out: EAGAIN if there is nothing.
    pub fn pop_told(&mut self, family: Family, options: &Options) -> Result<Taken<Told>> {
        let Some(first) = self.told.front() else {
            let told = self.unqueued().ok_or(Errno::EAGAIN)?;
            let control = told.control(family, options)?;
            self.queued_sends = self.sends;
            return Ok((told, control));
        };
        // What can fail comes first.
        let control = first.control(family, options)?;
        let told = self.told.pop_front().ok_or(Errno::EAGAIN)?;
        self.held = self.held.saturating_sub(told.quoted().map_or(0, |len| len + OVERHEAD));
        Ok((told, control))
    }

    /// What is to be told first now.
    pub fn first_told(&self) -> Option<&Told> {
        self.told.front()
    }

    /// Takes all reports, to be dropped with nothing locked. Notices stay: they are one then.
    pub fn take_reports(&mut self) -> VecDeque<Told> {
        let told = core::mem::take(&mut self.told);
        let cost: usize = told.iter().filter_map(Told::quoted).map(|len| len + OVERHEAD).sum();
        self.held = self.held.saturating_sub(cost);
        let sends = told.iter().find_map(|told| match told {
            Told::Sends { first, .. } => Some(*first),
            Told::Report(_) => None,
        });
        self.queued_sends = sends.unwrap_or(self.queued_sends);
        told
    }

    /// What `shutdown` ends.
    pub fn shut_down(&mut self, read: bool, write: bool) {
        self.read_shut |= read;
        self.write_shut |= write;
    }

    /// Whether nothing more is to be sent.
    pub fn is_write_shut(&self) -> bool {
        self.write_shut
    }

    /// What the queue costs.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Length of the first; 0 without any.
    pub fn first_len(&self) -> usize {
        self.queue.front().map_or(0, |datagram| datagram.bytes.len())
    }

    /// The poll events of a socket that has this inbox, but for the error that SO_ERROR reports.
    pub fn readiness(&self) -> PollEvents {
        let mut ready = PollEvents::WRITABLE | PollEvents::WRBAND;
        if !self.queue.is_empty() {
            ready |= PollEvents::READABLE;
        }
        if !self.told.is_empty() || self.queued_sends != self.sends {
            ready |= PollEvents::ERR;
        }
        if self.read_shut {
            ready |= PollEvents::READABLE | PollEvents::RDHUP;
        }
        if self.read_shut && self.write_shut {
            ready |= PollEvents::HUP;
        }
        ready
    }
}
