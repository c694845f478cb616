//! /proc/net, /proc/sys/net and /sys/class/net.

use super::addr::{Family, LO_MTU};
use super::count::traffic;
use super::ports::{self, Holder, Seen};
use super::raw::{self, Style};
use super::socket::NetSocket;
use super::sysctl::ipv6;
use crate::fs::procfs::{Fixed, Pieces, Text, TextBuf, register_file};
use crate::fs::sysfs;
use crate::mm::fallible::{TryString, try_arc, try_string};
use crate::sync::Pace;
use crate::{try_format, try_write, try_writeln};
use abi::Result;
use abi::net::{IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, TcpState};
use abi::time::USER_HZ;

use alloc::string::String;
use core::net::{IpAddr, SocketAddr};

/// The address of the loopback.
const IF_INET6: &str = "00000000000000000000000000000001 01 80 10 80       lo\n";
const IPV6_ROUTE: &str = "00000000000000000000000000000001 80 00000000000000000000000000000000 00 \
     00000000000000000000000000000000 00000100 00000001 00000000 00000001       lo\n\
     00000000000000000000000000000001 80 00000000000000000000000000000000 00 \
     00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo\n";

/// What is there as long as the loopback has an IPv6 address.
fn if_ipv6(text: &str) -> Result<String> {
    try_string(if ipv6::is_there() { text } else { "" })
}

const FIXED: &[(&str, &str)] = &[
    (
        "net/route",
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\
         \x20                                                      \n",
    ),
    ("net/arp", "IP address       HW type     Flags       HW address            Mask     Device\n"),
    (
        "net/igmp",
        "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
         1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n",
    ),
    (
        "net/igmp6",
        "1    lo              ff020000000000000000000000000001     1 0000000C 0\n\
         1    lo              ff010000000000000000000000000001     1 00000008 0\n",
    ),
    ("net/dev_mcast", ""),
    ("net/packet", "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n"),
];

const SYS: &[(&str, &str)] = &[
    ("address", "00:00:00:00:00:00\n"),
    ("addr_len", "6\n"),
    ("broadcast", "00:00:00:00:00:00\n"),
    ("carrier", "1\n"),
    ("dormant", "0\n"),
    ("flags", "0x9\n"),
    ("ifindex", "1\n"),
    ("iflink", "1\n"),
    ("operstate", "unknown\n"),
    ("tx_queue_len", "1000\n"),
    ("type", "772\n"),
];

/// Puts everything in its place.
pub fn register() -> Result<()> {
    for (path, text) in FIXED {
        register_file(path, 0o444, try_arc(Fixed(text))?)?;
    }
    super::sysctl::register()?;
    let texts: [(&str, fn() -> Result<String>); 3] = [
        ("net/dev", dev),
        ("net/if_inet6", || if_ipv6(IF_INET6)),
        ("net/ipv6_route", || if_ipv6(IPV6_ROUTE)),
    ];
    for (path, text) in texts {
        register_file(path, 0o444, try_arc(Text(text))?)?;
    }
    register_file("net/unix", 0o444, try_arc(Pieces(super::unix::table))?)?;
    for (name, protocol) in
        [("tcp", IPPROTO_TCP), ("udp", IPPROTO_UDP), ("udplite", IPPROTO_UDPLITE)]
    {
        for (suffix, family) in [("", Family::V4), ("6", Family::V6)] {
            let table = move |from, text: &mut TextBuf| table(protocol, family, from, text);
            register_file(&try_format!("net/{name}{suffix}")?, 0o444, try_arc(Pieces(table))?)?;
        }
    }
    for (name, style) in [("raw", Style::Raw), ("icmp", Style::Ping)] {
        for (suffix, family) in [("", Family::V4), ("6", Family::V6)] {
            let table = move |from, text: &mut TextBuf| raw_table(family, style, from, text);
            register_file(&try_format!("net/{name}{suffix}")?, 0o444, try_arc(Pieces(table))?)?;
        }
    }
    for (name, text) in SYS {
        let path = try_format!("devices/virtual/net/lo/{name}")?;
        sysfs::register_file(&path, 0o444, try_arc(Fixed(text))?)?;
    }
    let mtu: fn() -> Result<String> = || try_format!("{LO_MTU}\n");
    sysfs::register_file("devices/virtual/net/lo/mtu", 0o444, try_arc(Text(mtu))?)?;
    sysfs::register_link("class/net/lo", "../../devices/virtual/net/lo")?;
    super::snmp::register()
}

fn dev() -> Result<String> {
    let (bytes, packets) = traffic();
    try_format!(
        "Inter-|   Receive                                                |  Transmit\n face \
         |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo \
         colls carrier compressed\n    lo: {bytes:7} {packets:7}    0    0    0     0          0 \
         \x20       0 {bytes:8} {packets:7}    0    0    0     0       0          0\n"
    )
}

/// An address as hexadecimal words in the machine's order, and the port.
fn endpoint(family: Family, addr: SocketAddr) -> Result<String> {
    let (v4, v6) = match addr.ip() {
        IpAddr::V4(v4) => (v4.octets(), v4.to_ipv6_mapped().octets()),
        IpAddr::V6(v6) => ([0; 4], v6.octets()),
    };
    let octets = if family == Family::V4 { &v4[..] } else { &v6[..] };
    let mut out = String::new();
    for word in octets.chunks_exact(4) {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        try_write!(out, "{word:08X}")?;
    }
    try_write!(out, ":{:04X}", addr.port())?;
    Ok(out)
}

fn table(protocol: i32, family: Family, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
    let tcp = protocol == IPPROTO_TCP;
    if from == 0 {
        text.try_push_str(&header(tcp, family)?)?;
    }
    let (seen, next) = ports::window(protocol, from)?;
    for seen in seen.iter().paced().filter(|seen| seen.family == family) {
        let number = text.number;
        let line = if tcp { tcp_line(number, seen)? } else { udp_line(number, seen)? };
        let width = match (family, tcp) {
            (Family::V4, true) => 149,
            (Family::V4, false) => 127,
            _ => 0,
        };
        try_writeln!(text, "{line:width$}")?;
        text.number += 1;
    }
    Ok(next)
}

fn header(tcp: bool, family: Family) -> Result<String> {
    match (tcp, family) {
        (true, Family::V4) => try_format!(
            "{:149}\n",
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
        ),
        (false, Family::V4) => try_format!(
            "{:127}\n",
            "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops"
        ),
        (true, Family::V6) => try_string(
            "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
        ),
        (false, Family::V6) => try_string(
            "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n",
        ),
    }
}

fn raw_table(family: Family, style: Style, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
    const HEADER: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops";
    // Only lines of ping sockets have all one width.
    let (width, whole) = match (family, style) {
        (Family::V4, Style::Raw) => (4, 0),
        (Family::V4, Style::Ping) => (5, 127),
        (Family::V6, _) => (5, 0),
    };
    if from == 0 {
        match family {
            Family::V4 => try_writeln!(text, "{HEADER:whole$}")?,
            Family::V6 => text.try_push_str(&header(false, family)?)?,
        }
    }
    let (sockets, next) = raw::shown(family, style, from)?;
    for raw::Shown { number, local, peer, held, uid, inode } in sockets.into_iter().paced() {
        let state = if peer.is_some() { TcpState::Established } else { TcpState::Close } as u8;
        let local = endpoint(family, local)?;
        let peer = endpoint(family, peer.unwrap_or(family.nowhere()))?;
        let line = try_format!(
            "{:width$}: {local} {peer} {state:02X} 00000000:{held:08X} 00:00000000 00000000 {uid:5} {:8} {inode} 2 0000000000000000 0",
            number & 0xff,
            0
        )?;
        try_writeln!(text, "{line:whole$}")?;
    }
    Ok(next)
}

fn ends(seen: &Seen) -> Result<(String, String)> {
    let nowhere = seen.family.nowhere();
    Ok((endpoint(seen.family, seen.local)?, endpoint(seen.family, seen.peer.unwrap_or(nowhere))?))
}

fn tcp_line(number: u64, seen: &Seen) -> Result<String> {
    let (local, peer) = ends(seen)?;
    let socket = match &seen.holder {
        Holder::Tcp(socket) => socket.upgrade(),
        Holder::Udp(_) => None,
    };
    let (state, to_read, unsent) = match &socket {
        Some(socket) => socket.summary(),
        None => (TcpState::TimeWait, 0, 0),
    };
    let inode = socket.as_ref().map_or(0, |socket| socket.options().inode());
    let left = seen.waits.unwrap_or(0) / (1_000_000_000 / USER_HZ);
    let timer = if seen.waits.is_some() { 3 } else { 0 };
    let state = state as u8;
    let uid = seen.uid;
    let start = try_format!(
        "{number:4}: {local} {peer} {state:02X} {unsent:08X}:{to_read:08X} {timer:02X}:{left:08X} 00000000 {uid:5} {:8} {inode}",
        0
    )?;
    match seen.waits {
        Some(_) => try_format!("{start} 3 0000000000000000"),
        None => try_format!("{start} 1 0000000000000000 100 0 0 10 0"),
    }
}

fn udp_line(number: u64, seen: &Seen) -> Result<String> {
    let (local, peer) = ends(seen)?;
    let socket = match &seen.holder {
        Holder::Udp(socket) => socket.upgrade(),
        Holder::Tcp(_) => None,
    };
    let (connected, held) = socket.as_ref().map_or((false, 0), |socket| socket.summary());
    let inode = socket.as_ref().map_or(0, |socket| socket.options().inode());
    let state = if connected { TcpState::Established } else { TcpState::Close } as u8;
    let uid = seen.uid;
    try_format!(
        "{number:5}: {local} {peer} {state:02X} 00000000:{held:08X} 00:00000000 00000000 {uid:5} {:8} {inode} 2 0000000000000000 0",
        0
    )
}
