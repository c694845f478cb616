//! The counters of IP, ICMP, TCP and UDP.
//!
//! Owns one set of counters for each CPU, and one of ICMP's message types for the whole machine. A packet that is sent has arrived
//! here, so one counter stands for both. TCP has no packets: it counts the segments that Linux would send at the least (the three that
//! open a connection, data, each FIN with its ACK, resets), and no other ACKs. Never counts in an interrupt handler, and no task
//! is preempted in the kernel, so a CPU adds to its own counters without locked instructions. Locks: none.

use crate::base::percpu::{self, MAX_CPUS};
use core::sync::atomic::{AtomicU64, Ordering};

/// About IP, for each of its versions.
#[derive(Clone, Copy, Debug)]
pub enum Ip {
    Packets,
    /// With the IP headers.
    Octets,
    Broadcasts,
    BroadcastOctets,
    /// Nothing was sent: there is no route.
    NoRoutes,
    /// Packets by their ECN field: ECT(1), ECT(0), CE.
    Ect1,
    Ect0,
    Ce,
    /// ICMP messages with a wrong checksum, and all that are invalid.
    IcmpBadSums,
    IcmpErrors,
}
const IP_LEN: usize = Ip::IcmpErrors as usize + 1;

/// About UDP and UDP-Lite, for each version of IP.
#[derive(Clone, Copy, Debug)]
pub enum Datagrams {
    Sent,
    /// Read by programs.
    Received,
    NoPort,
    /// The receiver's buffer was full.
    NoRoom,
    /// The receiver's filter did not want it.
    Filtered,
    /// The kernel had no memory to send.
    NoMemory,
    /// Broadcasts that no socket received.
    Ignored,
}
const DATAGRAMS_LEN: usize = Datagrams::Ignored as usize + 1;

/// About TCP.
#[derive(Clone, Copy, Debug)]
pub enum Tcp {
    ActiveOpens,
    PassiveOpens,
    AttemptFails,
    EstabResets,
    Segments,
    ResetsSent,
    /// Segments of data.
    DataSegments,
    /// Connections that found the backlog full.
    ListenOverflows,
    /// Closed with unread data; closed with an `SO_LINGER` of 0 seconds and no unread data.
    AbortsOnClose,
    AbortsOnData,
    /// Ports whose TIME_WAIT is over, and those freed before that.
    WaitsOver,
    WaitsCut,
}
const TCP_LEN: usize = Tcp::WaitsCut as usize + 1;

const DATAGRAMS_AT: usize = 2 * IP_LEN;
const TCP_AT: usize = DATAGRAMS_AT + 4 * DATAGRAMS_LEN;
const LEN: usize = TCP_AT + TCP_LEN;

crate::per_cpu! {
    static COUNTS: [AtomicU64; LEN] = [const { AtomicU64::new(0) }; LEN];
}

/// Messages of ICMP by version, direction and type. Relaxed: statistics.
static TYPES: [[[AtomicU64; 256]; 2]; 2] =
    [const { [const { [const { AtomicU64::new(0) }; 256] }; 2] }; 2];

/// Which UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub v6: bool,
    pub lite: bool,
}

/// The direction of an ICMP message.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    In = 0,
    Out = 1,
}

#[inline]
fn add(at: usize, by: u64) {
    COUNTS.with(|counts| {
        // Relaxed, and no atomic addition: this CPU is the only writer.
        let old = counts[at].load(Ordering::Relaxed);
        counts[at].store(old.wrapping_add(by), Ordering::Relaxed);
    });
}

fn sum(at: usize) -> u64 {
    (0..MAX_CPUS.min(percpu::cpus_online()))
        .filter_map(|cpu| COUNTS.of(cpu))
        // Relaxed: a statistic of other CPUs.
        .map(|counts| counts[at].load(Ordering::Relaxed))
        .fold(0, u64::wrapping_add)
}

const fn ip_at(which: Ip, v6: bool) -> usize {
    which as usize + if v6 { IP_LEN } else { 0 }
}

const fn datagrams_at(which: Datagrams, of: Flow) -> usize {
    let set = of.v6 as usize * 2 + of.lite as usize;
    DATAGRAMS_AT + set * DATAGRAMS_LEN + which as usize
}

/// Counts one.
pub fn ip(which: Ip, v6: bool) {
    add(ip_at(which, v6), 1);
}

/// Counts one.
#[inline]
pub fn datagrams(which: Datagrams, of: Flow) {
    add(datagrams_at(which, of), 1);
}

/// Counts one.
#[inline]
pub fn tcp(which: Tcp) {
    add(TCP_AT + which as usize, 1);
}

/// Counts packets of one class of service, of so many bytes in all.
#[inline]
pub fn packets(v6: bool, class: u8, count: u64, bytes: u64) {
    add(ip_at(Ip::Packets, v6), count);
    add(ip_at(Ip::Octets, v6), bytes);
    let mark = match class & 3 {
        0 => return,
        1 => Ip::Ect1,
        2 => Ip::Ect0,
        _ => Ip::Ce,
    };
    add(ip_at(mark, v6), count);
}

/// Counts a packet of so many bytes that was sent to all.
pub fn broadcast(bytes: u64) {
    add(ip_at(Ip::Broadcasts, false), 1);
    add(ip_at(Ip::BroadcastOctets, false), bytes);
}

/// Counts TCP segments with so many bytes of data in all. Each has the headers of IP and of TCP, with the time stamps that Linux sends.
pub fn segments(v6: bool, count: u64, bytes: u64) {
    let headers = 32 + if v6 { 40 } else { 20 };
    add(TCP_AT + Tcp::Segments as usize, count);
    packets(v6, 0, count, bytes.saturating_add(count * headers));
}

/// Counts data that Linux would send in segments of the loopback's maximum size, as segments and as segments of data.
#[inline]
pub fn data(v6: bool, bytes: usize) {
    let count = bytes.div_ceil(if v6 { 65_464 } else { 65_483 }) as u64;
    add(TCP_AT + Tcp::DataSegments as usize, count);
    segments(v6, count, bytes as u64);
}

/// Counts a message of ICMP.
pub fn icmp(way: Way, v6: bool, kind: u8) {
    TYPES[usize::from(v6)][way as usize][usize::from(kind)].fetch_add(1, Ordering::Relaxed);
}

/// How many ICMP messages of a type there were.
pub fn icmp_total(way: Way, v6: bool, kind: u8) -> u64 {
    TYPES[usize::from(v6)][way as usize][usize::from(kind)].load(Ordering::Relaxed)
}

/// How many ICMP messages there were, of all types.
pub fn icmp_all(way: Way, v6: bool) -> u64 {
    (0..=u8::MAX).map(|kind| icmp_total(way, v6, kind)).fold(0, u64::wrapping_add)
}

pub fn ip_total(which: Ip, v6: bool) -> u64 {
    sum(ip_at(which, v6))
}

pub fn datagrams_total(which: Datagrams, of: Flow) -> u64 {
    sum(datagrams_at(which, of))
}

pub fn tcp_total(which: Tcp) -> u64 {
    sum(TCP_AT + which as usize)
}

/// Bytes and packets that went over the loopback.
pub fn traffic() -> (u64, u64) {
    let both = |which| ip_total(which, false).wrapping_add(ip_total(which, true));
    (both(Ip::Octets), both(Ip::Packets))
}
