//! Socket options of AF_INET and AF_INET6: which there are, what they may be, what they are.
//!
//! Most options are about what a loopback without packets does not have (windows, keepalive probes, path MTUs):
//! they are checked, kept and reported as Linux does. Those that every transfer looks at are atomics beside the list.
//! Owns one socket's settings. Locks: `Leaf`, never together with another of that level.

use super::congestion::Congestion;
use super::filter::Slot;
use super::limit::Timeouts;
use super::stamps::{self, Stamps};
use super::sysctl::{
    self, FIN_TIMEOUT, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, KEEPALIVE_TIME, SYN_RETRIES, TTL,
};
use crate::mm::fallible::{TryGrow, TrySlice, try_copy};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Once, SpinLock, level};
use crate::vfs::OpenFile;
use crate::vfs::notify::Listeners;
use abi::net::{
    IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, UDP_CORK, ip, ipv6, tcp,
};
use abi::socket::{SOL_SOCKET, so};
use abi::time::Timeval;
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use smallvec::SmallVec;

/// Options at `SOL_SOCKET` beside those of [`so`].
pub mod more {
    pub use crate::net::stamps::{TIMESTAMP, TIMESTAMP_NEW, TIMESTAMPNS, TIMESTAMPNS_NEW};

    pub const DEBUG: i32 = 1;
    pub const DONTROUTE: i32 = 5;
    pub const OOBINLINE: i32 = 10;
    pub const NO_CHECK: i32 = 11;
    pub const PRIORITY: i32 = 12;
    pub const BSDCOMPAT: i32 = 14;
    pub const BINDTODEVICE: i32 = 25;
    pub const PASSSEC: i32 = 34;
    pub const MARK: i32 = 36;
    pub const TIMESTAMPING: i32 = 37;
    pub const RXQ_OVFL: i32 = 40;
    pub const BUSY_POLL: i32 = 46;
    pub const INCOMING_CPU: i32 = 49;
    pub const ZEROCOPY: i32 = 60;
    pub const BINDTOIFINDEX: i32 = 62;
    pub const RCVTIMEO_NEW: i32 = 66;
    pub const SNDTIMEO_NEW: i32 = 67;
}

/// What a value may be.
#[derive(Clone, Copy)]
enum Rule {
    /// Anything, kept as 0 or 1.
    Flag,
    /// EINVAL outside.
    Range(i32, i32),
    /// As `Range`; -1 stands for the default.
    RangeOrDefault(i32, i32),
    /// Any number.
    Any,
}

struct Spec {
    level: i32,
    option: i32,
    rule: Rule,
    default: Default,
}

/// What an option is until it is set.
#[derive(Clone, Copy)]
enum Default {
    Fixed(i32),
    /// What a setting of /proc/sys is now.
    Setting(fn() -> i32),
}

impl Default {
    fn now(self) -> i32 {
        match self {
            Self::Fixed(value) => value,
            Self::Setting(get) => get(),
        }
    }
}

const fn spec(level: i32, option: i32, rule: Rule, default: i32) -> Spec {
    Spec { level, option, rule, default: Default::Fixed(default) }
}

const fn set_by(level: i32, option: i32, rule: Rule, get: fn() -> i32) -> Spec {
    Spec { level, option, rule, default: Default::Setting(get) }
}

const fn flag(level: i32, option: i32) -> Spec {
    spec(level, option, Rule::Flag, 0)
}

const SPECS: &[Spec] = &[
    flag(SOL_SOCKET, so::REUSEADDR),
    flag(SOL_SOCKET, so::REUSEPORT),
    flag(SOL_SOCKET, so::BROADCAST),
    flag(SOL_SOCKET, so::KEEPALIVE),
    flag(SOL_SOCKET, so::PASSCRED),
    flag(SOL_SOCKET, more::DEBUG),
    flag(SOL_SOCKET, more::DONTROUTE),
    flag(SOL_SOCKET, more::OOBINLINE),
    flag(SOL_SOCKET, more::NO_CHECK),
    flag(SOL_SOCKET, more::RXQ_OVFL),
    spec(SOL_SOCKET, more::PRIORITY, Rule::Any, 0),
    spec(SOL_SOCKET, more::MARK, Rule::Any, 0),
    spec(SOL_SOCKET, more::BUSY_POLL, Rule::Range(0, i32::MAX), 0),
    spec(SOL_SOCKET, more::INCOMING_CPU, Rule::Any, 0),
    spec(SOL_SOCKET, more::ZEROCOPY, Rule::Range(0, 1), 0),
    spec(IPPROTO_IP, ip::TOS, Rule::Any, 0),
    set_by(IPPROTO_IP, ip::TTL, Rule::RangeOrDefault(1, 255), || TTL.get()),
    flag(IPPROTO_IP, ip::HDRINCL),
    flag(IPPROTO_IP, ip::RECVOPTS),
    flag(IPPROTO_IP, ip::RETOPTS),
    flag(IPPROTO_IP, ip::PKTINFO),
    spec(IPPROTO_IP, ip::MTU_DISCOVER, Rule::Range(0, 5), 1),
    flag(IPPROTO_IP, ip::RECVERR),
    flag(IPPROTO_IP, ip::RECVTTL),
    flag(IPPROTO_IP, ip::RECVTOS),
    flag(IPPROTO_IP, ip::FREEBIND),
    flag(IPPROTO_IP, ip::TRANSPARENT),
    flag(IPPROTO_IP, ip::RECVORIGDSTADDR),
    spec(IPPROTO_IP, ip::MINTTL, Rule::Range(0, 255), 0),
    flag(IPPROTO_IP, ip::BIND_ADDRESS_NO_PORT),
    spec(IPPROTO_IP, ip::MULTICAST_TTL, Rule::RangeOrDefault(0, 255), 1),
    spec(IPPROTO_IP, ip::MULTICAST_LOOP, Rule::Flag, 1),
    spec(IPPROTO_IP, ip::MULTICAST_ALL, Rule::Range(0, 1), 1),
    spec(IPPROTO_IPV6, ipv6::UNICAST_HOPS, Rule::RangeOrDefault(0, 255), 64),
    spec(IPPROTO_IPV6, ipv6::MULTICAST_HOPS, Rule::RangeOrDefault(0, 255), 1),
    spec(IPPROTO_IPV6, ipv6::MULTICAST_LOOP, Rule::Range(0, 1), 1),
    spec(IPPROTO_IPV6, ipv6::MTU_DISCOVER, Rule::Range(0, 5), 1),
    flag(IPPROTO_IPV6, ipv6::RECVERR),
    flag(IPPROTO_IPV6, ipv6::V6ONLY),
    flag(IPPROTO_IPV6, ipv6::RECVPKTINFO),
    flag(IPPROTO_IPV6, ipv6::RECVHOPLIMIT),
    flag(IPPROTO_IPV6, ipv6::OLD_PKTINFO),
    flag(IPPROTO_IPV6, ipv6::OLD_HOPLIMIT),
    flag(IPPROTO_IPV6, ipv6::RECVRTHDR),
    flag(IPPROTO_IPV6, ipv6::RECVDSTOPTS),
    flag(IPPROTO_IPV6, ipv6::RECVPATHMTU),
    flag(IPPROTO_IPV6, ipv6::RECVTCLASS),
    flag(IPPROTO_IPV6, ipv6::RECVORIGDSTADDR),
    flag(IPPROTO_IPV6, ipv6::DONTFRAG),
    spec(IPPROTO_IPV6, ipv6::TCLASS, Rule::RangeOrDefault(0, 255), 0),
    flag(IPPROTO_TCP, tcp::NODELAY),
    flag(IPPROTO_TCP, tcp::CORK),
    spec(IPPROTO_TCP, tcp::MAXSEG, Rule::Range(88, 32767), 536),
    set_by(IPPROTO_TCP, tcp::KEEPIDLE, Rule::Range(1, 32767), || KEEPALIVE_TIME.get()),
    set_by(IPPROTO_TCP, tcp::KEEPINTVL, Rule::Range(1, 32767), || KEEPALIVE_INTERVAL.get()),
    set_by(IPPROTO_TCP, tcp::KEEPCNT, Rule::Range(1, 127), || KEEPALIVE_PROBES.get()),
    set_by(IPPROTO_TCP, tcp::SYNCNT, Rule::Range(1, 127), || SYN_RETRIES.get()),
    set_by(IPPROTO_TCP, tcp::LINGER2, Rule::Any, || FIN_TIMEOUT.get()),
    spec(IPPROTO_TCP, tcp::DEFER_ACCEPT, Rule::Any, 0),
    spec(IPPROTO_TCP, tcp::WINDOW_CLAMP, Rule::Any, 0),
    spec(IPPROTO_TCP, tcp::QUICKACK, Rule::Flag, 1),
    spec(IPPROTO_TCP, tcp::USER_TIMEOUT, Rule::Range(0, i32::MAX), 0),
    spec(IPPROTO_TCP, tcp::NOTSENT_LOWAT, Rule::Any, 0),
    flag(IPPROTO_UDP, UDP_CORK),
    spec(IPPROTO_UDPLITE, 10, Rule::Range(0, 0xffff), 0),
    spec(IPPROTO_UDPLITE, 11, Rule::Range(0, 0xffff), 0),
];

/// Time limits are rounded up to a tick, and `getsockopt` reports the rounded value.
const TICK_NS: u64 = 4_000_000;

/// The settings of one socket.
pub struct Options {
    _counted: Counted,
    /// Only what differs from the default: level, option, value.
    list: SpinLock<SmallVec<[(i32, i32, i32); 4]>, level::Leaf>,
    /// A bit for each of [`SPECS`] that the list may have.
    kept: [AtomicU64; WORDS],
    // Relaxed, all of them: a transfer may go by a setting that is being changed, or by the one before.
    receive_limit: AtomicU64,
    send_limit: AtomicU64,
    receive_buffer: AtomicUsize,
    send_buffer: AtomicUsize,
    low_water: AtomicUsize,
    /// The inode number of its file, for /proc.
    inode: AtomicU64,
    file: Once<Weak<OpenFile>>,
    /// Who is told by signals of what comes.
    pub listeners: Listeners,
    pub filter: Slot,
    /// When messages came.
    pub stamps: Stamps,
    /// TCP_CONGESTION: a [`Congestion`], with [`CHOSEN`] if it was set.
    congestion: AtomicU8,
    /// SO_LINGER: [`LINGER_ON`] if it is on, and the seconds in the lower 32 bits.
    linger: AtomicU64,
}

const LINGER_ON: u64 = 1 << 32;

/// The mark of one that was set by an option: what a listener has of itself its connections do not take over.
const CHOSEN: u8 = 1 << 7;

impl Options {
    /// Nothing set; sizes of the buffers are the protocol's.
    pub fn new(send_buffer: usize, receive_buffer: usize) -> Self {
        Self {
            _counted: Counted::new(Kind::Socket),
            list: SpinLock::new(SmallVec::new_const()),
            kept: [const { AtomicU64::new(0) }; WORDS],
            receive_limit: AtomicU64::new(0),
            send_limit: AtomicU64::new(0),
            receive_buffer: AtomicUsize::new(receive_buffer),
            send_buffer: AtomicUsize::new(send_buffer),
            low_water: AtomicUsize::new(1),
            inode: AtomicU64::new(0),
            file: Once::new(),
            linger: AtomicU64::new(0),
            listeners: Listeners::new(),
            filter: Slot::new(),
            stamps: Stamps::new(),
            congestion: AtomicU8::new(sysctl::tcp::congestion() as u8),
        }
    }

    /// As [`new`](Self::new), with buffers of `net.core.wmem_default` and `rmem_default` bytes.
    pub fn for_datagrams() -> Self {
        let (send, receive) = sysctl::new_buffers();
        Self::new(send, receive)
    }

    /// What an accepted connection takes over from its listener.
    pub fn inherit(&self) -> Self {
        let new = Self::new(self.send_buffer(), self.receive_buffer());
        new.set_timeouts(self.timeouts());
        new.linger.store(self.linger.load(Ordering::Relaxed), Ordering::Relaxed);
        new.low_water.store(self.low_water(), Ordering::Relaxed);
        new.stamps.inherit(&self.stamps);
        new.filter.inherit(&self.filter);
        if self.congestion.load(Ordering::Relaxed) & CHOSEN != 0 {
            new.congestion.store(self.congestion.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let list = self.list.lock().clone();
        *new.list.lock() = list;
        for (new, own) in new.kept.iter().zip(&self.kept) {
            new.store(own.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        new
    }

    /// The value of an option; `None` if there is no such option.
    pub fn value(&self, level: i32, option: i32) -> Option<i32> {
        Some(self.get(Known(find(level, option)?)))
    }

    /// The value of an option that is known to exist.
    #[inline]
    pub fn get(&self, Known(index): Known) -> i32 {
        let spec = &SPECS[index];
        if self.kept[index / 64].load(Ordering::Relaxed) & 1 << (index % 64) == 0 {
            return spec.default.now();
        }
        self.get_kept(spec)
    }

    #[cold]
    fn get_kept(&self, spec: &Spec) -> i32 {
        let list = self.list.lock();
        let set = list.iter().find(|(l, o, _)| (*l, *o) == (spec.level, spec.option));
        set.map_or(spec.default.now(), |(_, _, value)| *value)
    }

    /// Whether a setting is on.
    #[inline]
    pub fn is_on(&self, known: Known) -> bool {
        self.get(known) != 0
    }

    /// Sets an option: EINVAL if it may not have that value, ENOPROTOOPT if there is no such option.
    pub fn keep(&self, level: i32, option: i32, value: i32) -> Result<()> {
        let index = find(level, option).ok_or(Errno::ENOPROTOOPT)?;
        let spec = &SPECS[index];
        let value = match spec.rule {
            Rule::Flag => i32::from(value != 0),
            Rule::RangeOrDefault(..) if value == -1 => spec.default.now(),
            Rule::Range(min, max) | Rule::RangeOrDefault(min, max)
                if !(min..=max).contains(&value) =>
            {
                return Err(Errno::EINVAL);
            }
            _ => value,
        };
        let mut list = self.list.lock();
        match list.iter_mut().find(|(l, o, _)| (*l, *o) == (level, option)) {
            Some(entry) => entry.2 = value,
            None => list.try_push((level, option, value))?,
        }
        self.kept[index / 64].fetch_or(1 << (index % 64), Ordering::Relaxed);
        Ok(())
    }

    /// SO_RCVTIMEO and SO_SNDTIMEO.
    pub fn timeouts(&self) -> Timeouts {
        Timeouts {
            receive: self.receive_limit.load(Ordering::Relaxed),
            send: self.send_limit.load(Ordering::Relaxed),
        }
    }

    pub fn set_timeouts(&self, to: Timeouts) {
        self.receive_limit.store(to.receive, Ordering::Relaxed);
        self.send_limit.store(to.send, Ordering::Relaxed);
    }

    /// SO_SNDBUF.
    pub fn send_buffer(&self) -> usize {
        self.send_buffer.load(Ordering::Relaxed)
    }

    /// The protocol has made it larger by itself.
    pub fn grow_send_buffer(&self, to: usize) {
        self.send_buffer.store(to, Ordering::Relaxed);
    }

    /// SO_RCVBUF.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer.load(Ordering::Relaxed)
    }

    /// The inode number of the socket's file, once it has one.
    pub fn inode(&self) -> u64 {
        self.inode.load(Ordering::Relaxed)
    }

    /// The socket has got a file.
    pub fn set_inode(&self, ino: u64) {
        self.inode.store(ino, Ordering::Relaxed);
    }

    /// That file.
    pub fn file(&self) -> Option<&Weak<OpenFile>> {
        self.file.get()
    }

    /// The socket has got this file.
    pub fn set_file(&self, file: &Arc<OpenFile>) {
        self.file.call_once(|| Arc::downgrade(file));
    }

    /// TCP_CONGESTION: nothing here is congested, so the choice is only kept and told.
    pub fn congestion(&self) -> Congestion {
        Congestion::kept_as(self.congestion.load(Ordering::Relaxed) & !CHOSEN)
    }

    /// Sets it.
    pub fn choose_congestion(&self, chosen: Congestion) {
        self.congestion.store(chosen as u8 | CHOSEN, Ordering::Relaxed);
    }

    /// SO_RCVLOWAT.
    pub fn low_water(&self) -> usize {
        self.low_water.load(Ordering::Relaxed)
    }

    /// SO_LINGER of 0 seconds: `close` resets the connection.
    pub fn breaks_off(&self) -> bool {
        self.linger.load(Ordering::Relaxed) == LINGER_ON
    }

    /// `setsockopt` at `SOL_SOCKET`.
    pub fn set_socket(&self, option: i32, value: &[u8]) -> Result<()> {
        let number = number(value)?;
        let asked = usize::try_from(number).unwrap_or(usize::MAX);
        match option {
            so::SNDBUF | so::SNDBUFFORCE => {
                self.send_buffer.store(sysctl::send_buffer(asked), Ordering::Relaxed);
            }
            so::RCVBUF | so::RCVBUFFORCE => {
                self.receive_buffer.store(sysctl::receive_buffer(asked), Ordering::Relaxed);
            }
            so::RCVLOWAT => {
                let bytes = usize::try_from(number).unwrap_or(i32::MAX as usize).max(1);
                self.low_water.store(bytes, Ordering::Relaxed);
            }
            so::RCVTIMEO | so::SNDTIMEO | more::RCVTIMEO_NEW | more::SNDTIMEO_NEW => {
                let limit = decode_limit(value)?;
                let slot = match option {
                    so::RCVTIMEO | more::RCVTIMEO_NEW => &self.receive_limit,
                    _ => &self.send_limit,
                };
                slot.store(limit, Ordering::Relaxed);
            }
            so::LINGER => {
                let seconds = value.get(4..8).ok_or(Errno::EINVAL)?;
                let seconds = seconds.try_into().map_or(0, u32::from_ne_bytes);
                let linger = if number == 0 { 0 } else { LINGER_ON | u64::from(seconds) };
                self.linger.store(linger, Ordering::Relaxed);
            }
            more::TIMESTAMP | more::TIMESTAMPNS | more::TIMESTAMP_NEW | more::TIMESTAMPNS_NEW => {
                self.stamps.set(option, number != 0)
            }
            more::BSDCOMPAT => {}
            more::BINDTOIFINDEX => {
                return if (0..=1).contains(&number) { Ok(()) } else { Err(Errno::ENODEV) };
            }
            _ => self.keep(SOL_SOCKET, option, number)?,
        }
        Ok(())
    }

    /// `getsockopt` at `SOL_SOCKET`, what all sockets have in common.
    pub fn get_socket(&self, option: i32) -> Result<Vec<u8>> {
        let limit = |nanos: u64| {
            let time = Timeval::from_nanos(nanos);
            try_copy([time.sec.to_ne_bytes(), time.usec.to_ne_bytes()].as_flattened())
        };
        let size = |bytes: usize| bytes_of(i32::try_from(bytes).unwrap_or(i32::MAX));
        Ok(match option {
            so::SNDBUF => size(self.send_buffer())?,
            so::RCVBUF => size(self.receive_buffer())?,
            so::RCVLOWAT => size(self.low_water())?,
            so::SNDLOWAT => size(1)?,
            so::RCVTIMEO | more::RCVTIMEO_NEW => limit(self.timeouts().receive)?,
            so::SNDTIMEO | more::SNDTIMEO_NEW => limit(self.timeouts().send)?,
            so::LINGER => {
                let linger = self.linger.load(Ordering::Relaxed);
                let on = i32::from(linger & LINGER_ON != 0);
                try_copy([on.to_ne_bytes(), (linger as u32).to_ne_bytes()].as_flattened())?
            }
            so::PEERCRED => try_copy([[0; 4], [0xff; 4], [0xff; 4]].as_flattened())?,
            more::TIMESTAMP | more::TIMESTAMPNS | more::TIMESTAMP_NEW | more::TIMESTAMPNS_NEW => {
                bytes_of(stamps::shows(self.stamps.form(), option).into())?
            }
            more::BSDCOMPAT => bytes_of(0)?,
            more::BINDTODEVICE => Vec::new(),
            more::BINDTOIFINDEX => bytes_of(0)?,
            _ => bytes_of(self.value(SOL_SOCKET, option).ok_or(Errno::ENOPROTOOPT)?)?,
        })
    }
}

/// Words with a bit for each of [`SPECS`].
const WORDS: usize = SPECS.len().div_ceil(64);

/// An option that is known to exist: its place in [`SPECS`].
#[derive(Clone, Copy)]
pub struct Known(usize);

/// The option of that level and number, looked up by the compiler: a constant that does not exist is an error there.
pub const fn known(level: i32, option: i32) -> Known {
    match find(level, option) {
        Some(index) => Known(index),
        None => panic!("no such option"),
    }
}

/// Its place in [`SPECS`].
const fn find(level: i32, option: i32) -> Option<usize> {
    let mut index = 0;
    while index < SPECS.len() {
        if SPECS[index].level == level && SPECS[index].option == option {
            return Some(index);
        }
        index += 1;
    }
    None
}

/// An `int`: EINVAL if there is less than one.
pub fn number(value: &[u8]) -> Result<i32> {
    value.first_chunk::<4>().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
}

/// An `int`, or a single byte in its place, as the options of IP take it.
pub fn number_or_byte(value: &[u8]) -> i32 {
    number(value).unwrap_or_else(|_| value.first().map_or(0, |&byte| i32::from(byte)))
}

/// An `int`'s bytes.
pub fn bytes_of(number: i32) -> Result<Vec<u8>> {
    number.to_ne_bytes().try_owned()
}

/// A `struct timeval` as nanoseconds.
fn decode_limit(value: &[u8]) -> Result<u64> {
    let sec = value.first_chunk::<8>().ok_or(Errno::EINVAL)?;
    let usec = value.get(8..16).and_then(|b| b.try_into().ok()).ok_or(Errno::EINVAL)?;
    let time = Timeval { sec: i64::from_ne_bytes(*sec), usec: i64::from_ne_bytes(usec) };
    if !(0..1_000_000).contains(&time.usec) {
        return Err(Errno::EDOM);
    }
    // Linux does not wait at all under a negative limit; here it is the shortest, since 0 is none.
    if time.sec < 0 {
        return Ok(1);
    }
    let nanos = time.to_nanos().ok_or(Errno::EDOM)?;
    Ok(nanos.checked_next_multiple_of(TICK_NS).unwrap_or(nanos))
}
