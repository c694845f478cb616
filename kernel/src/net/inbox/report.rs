//! What a sender is told that reads with `MSG_ERRQUEUE`: [`Report`], why a datagram did not arrive (`IP_RECVERR`), and which sends
//! have their bytes no longer (`SO_ZEROCOPY`): of a stream [`Sends`], of datagrams [`Told::Sends`], in one queue with reports.

use crate::mm::Sink;
use crate::mm::fallible::{TryGrow, TryVec, try_copy};
use crate::net::addr::{Family, encode};
use crate::net::control::{self, PacketInfo};
use crate::net::option::{Options, known};
use crate::net::socket::{Control, Incoming};
use abi::net::{IPPROTO_IP, IPPROTO_IPV6, ip, ipv6};
use abi::socket::MsgFlags;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};

/// Who found the error.
pub enum Origin {
    /// This machine, before anything was sent.
    Local,
    /// An ICMP message, port unreachable, from this address; what control messages may tell of it.
    Refused(IpAddr, PacketInfo),
}

/// One error.
pub struct Report {
    pub errno: Errno,
    pub origin: Origin,
    /// The size of packet that would have fitted, in bytes.
    pub info: u32,
    /// Where the datagram was to go.
    pub to: SocketAddr,
    /// What of it the ICMP message quotes.
    pub bytes: Vec<u8>,
}

/// What of a datagram an ICMP message quotes, as Linux makes it: as much as fits into 576 bytes, or 1280 of IPv6, behind two IP
/// headers and those of ICMP and UDP.
pub fn quoted(bytes: &[u8], v6: bool) -> &[u8] {
    let room = if v6 { 1280 - 40 - 8 - 40 - 8 } else { 576 - 20 - 8 - 20 - 8 };
    bytes.get(..room).unwrap_or(bytes)
}

/// Whether the socket wants reports of what it sends to such an address.
pub fn wanted(options: &Options, v6: bool) -> bool {
    let [of_v4, of_v6] =
        const { [known(IPPROTO_IP, ip::RECVERR), known(IPPROTO_IPV6, ipv6::RECVERR)] };
    options.is_on(if v6 { of_v6 } else { of_v4 })
}

fn choice(v6: bool) -> (i32, i32) {
    if v6 { (IPPROTO_IPV6, ipv6::RECVERR) } else { (IPPROTO_IP, ip::RECVERR) }
}

/// Whether setting this option to this value ends the reports, so that those that wait are dropped.
pub fn is_ended_by(level: i32, option: i32, value: &[u8]) -> bool {
    let of_reports = [choice(false), choice(true)].contains(&(level, option));
    of_reports && value.iter().take(4).all(|&byte| byte == 0)
}

/// What waits to be told.
pub enum Told {
    Report(Report),
    /// The sends with MSG_ZEROCOPY from the first of these numbers to the last.
    Sends {
        first: u32,
        last: u32,
    },
}

impl Told {
    /// What a report costs beside its overhead; the others are few, since those next to each other are one.
    pub fn quoted(&self) -> Option<usize> {
        match self {
            Self::Report(report) => Some(report.bytes.len()),
            Self::Sends { .. } => None,
        }
    }

    /// The error, if an ICMP message told of it, so that SO_ERROR has it too.
    pub fn refusal(&self) -> Option<Errno> {
        match self {
            Self::Report(report) if matches!(report.origin, Origin::Refused(..)) => {
                Some(report.errno)
            }
            _ => None,
        }
    }

    /// The control messages of it.
    pub fn control(&self, family: Family, options: &Options) -> Result<Vec<Control>> {
        match self {
            Self::Report(report) => report.control(family, options),
            Self::Sends { first, last } => notice(family)?.of(*first, *last),
        }
    }

    /// Copies out what there is beside the control messages; EFAULT.
    pub fn read(
        &self,
        dst: &mut Sink<'_>,
        family: Family,
        control: Vec<Control>,
    ) -> Result<Incoming> {
        match self {
            Self::Report(report) => report.read(dst, family, control),
            Self::Sends { .. } => {
                Ok(Incoming { control, flags: MsgFlags::ERRQUEUE, ..Incoming::default() })
            }
        }
    }
}

impl Report {
    /// Copies out as much of the quoted bytes as `dst` has room for, with the error in a control message; EFAULT.
    fn read(&self, dst: &mut Sink<'_>, family: Family, control: Vec<Control>) -> Result<Incoming> {
        let full = self.bytes.len();
        let wanted = full.min(dst.remaining());
        let bytes = if wanted == 0 { 0 } else { dst.put(&self.bytes[..wanted])? };
        if bytes < wanted {
            return Err(Errno::EFAULT);
        }
        let from = Some(encode(family, self.to));
        Ok(Incoming {
            bytes,
            full,
            from,
            control,
            flags: MsgFlags::ERRQUEUE,
            ..Incoming::default()
        })
    }

    /// The control messages of it.
    fn control(&self, family: Family, options: &Options) -> Result<Vec<Control>> {
        let mut control = match &self.origin {
            Origin::Local => Vec::new(),
            Origin::Refused(_, info) => control::messages(options, info)?,
        };
        let (level, kind) = choice(family == Family::V6);
        control.try_push(Control { level, kind, data: self.extended(family)? })?;
        Ok(control)
    }

    /// `struct sock_extended_err`, followed by the address that sent the ICMP message.
    fn extended(&self, family: Family) -> Result<Vec<u8>> {
        // SO_EE_ORIGIN_LOCAL, _ICMP, _ICMP6; type and code of the message.
        let what = match self.origin {
            Origin::Local => [1, 0, 0, 0],
            Origin::Refused(IpAddr::V4(_), _) => [2, 3, 3, 0],
            Origin::Refused(IpAddr::V6(_), _) => [3, 1, 4, 0],
        };
        let number = self.errno.to_return().unsigned_abs() as u32;
        let words = [number.to_ne_bytes(), what, self.info.to_ne_bytes(), [0; 4]];
        let mut out = try_copy(words.as_flattened())?;
        match self.origin {
            Origin::Refused(by, _) => {
                out.try_extend_from_slice(&encode(family, SocketAddr::new(by, 0)))?;
            }
            Origin::Local => {
                let len = encode(family, family.nowhere()).len();
                out.try_extend_from_slice(&[0; 28][..len])?;
            }
        }
        Ok(out)
    }
}

/// Room for the control message of a notice.
struct Notice {
    family: Family,
    data: Vec<u8>,
    control: Vec<Control>,
}

fn notice(family: Family) -> Result<Notice> {
    let name = encode(family, family.nowhere()).len();
    Ok(Notice { family, data: Vec::with_room(16 + name)?, control: Vec::with_room(1)? })
}

impl Notice {
    /// That of the sends from `first` to `last`; there is room.
    fn of(mut self, first: u32, last: u32) -> Result<Vec<Control>> {
        let (level, kind) = choice(self.family == Family::V6);
        let name = encode(self.family, self.family.nowhere()).len();
        // SO_EE_ORIGIN_ZEROCOPY, SO_EE_CODE_ZEROCOPY_COPIED; the numbers of the first and the last.
        let words = [[0; 4], [5, 0, 1, 0], first.to_ne_bytes(), last.to_ne_bytes()];
        self.data.try_extend_from_slice(words.as_flattened())?;
        self.data.try_extend_from_slice(&[0; 28][..name])?;
        self.control.try_push(Control { level, kind, data: self.data })?;
        Ok(self.control)
    }
}

/// The sends with MSG_ZEROCOPY of a stream with SO_ZEROCOPY. Each has a number; those that nobody has been told of are one notice.
/// All bytes are copied, as Linux copies what it sends over the loopback.
#[derive(Default)]
pub struct Sends {
    /// How many were told of, in the upper half, and how many there were.
    counts: AtomicU64,
}

impl Sends {
    /// One more has its bytes no longer.
    pub fn add(&self) {
        let one_more = |counts: u64| {
            let (told, all) = halves(counts);
            Some(u64::from(told) << 32 | u64::from(all.wrapping_add(1)))
        };
        // Release: who sees the notice sees what the send did. The closure always gives a value.
        let _ = self.counts.fetch_update(Ordering::Release, Ordering::Relaxed, one_more);
    }

    /// Whether there is a notice.
    pub fn has_notice(&self) -> bool {
        // Acquire: pairs with the Release of `add`.
        let (told, all) = halves(self.counts.load(Ordering::Acquire));
        told != all
    }

    /// Takes the notice: EAGAIN if there is none.
    pub fn take(&self, family: Family) -> Result<Incoming> {
        let notice = notice(family)?;
        let tell_all = |counts: u64| {
            let (told, all) = halves(counts);
            (told != all).then_some(u64::from(all) << 32 | u64::from(all))
        };
        // Acquire: as in `has_notice`.
        let counts = self
            .counts
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, tell_all)
            .map_err(|_| Errno::EAGAIN)?;
        let (first, end) = halves(counts);
        let control = notice.of(first, end.wrapping_sub(1))?;
        Ok(Incoming { control, flags: MsgFlags::ERRQUEUE, ..Incoming::default() })
    }
}

fn halves(counts: u64) -> (u32, u32) {
    ((counts >> 32) as u32, counts as u32)
}
