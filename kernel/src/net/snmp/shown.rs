//! /proc/net/snmp, netstat, snmp6, sockstat and sockstat6, as Linux writes them.

use super::names;
use crate::fs::procfs::{Text, register_file};
use crate::mm::fallible::{TryString, try_arc};
use crate::net::addr::Family;
use crate::net::count::{
    Datagrams, Flow, Ip, Tcp, Way, datagrams_total, icmp_all, icmp_total, ip_total, tcp_total,
};
use crate::net::ports::{self, Holder};
use crate::net::raw;
use crate::net::sysctl::TTL;
use crate::sync::counted::{self, Kind};
use crate::{try_write, try_writeln};
use abi::Result;
use abi::net::{IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, TcpState};
use alloc::string::String;

/// Puts the files into their place.
pub fn register() -> Result<()> {
    let texts: [(&str, fn() -> Result<String>); 5] = [
        ("net/snmp", snmp),
        ("net/netstat", netstat),
        ("net/snmp6", snmp6),
        ("net/sockstat", sockstat),
        ("net/sockstat6", sockstat6),
    ];
    for (path, text) in texts {
        register_file(path, 0o444, try_arc(Text(text))?)?;
    }
    Ok(())
}

fn of<C: Copy>(table: &[(&str, C)], name: &str) -> Option<C> {
    table.iter().find(|(known, _)| *known == name).map(|(_, which)| *which)
}

/// A line of names, and one of their values.
fn pair(out: &mut String, title: &str, names: &str, value: impl Fn(&str) -> i64) -> Result<()> {
    try_write!(out, "{title}: {names}\n{title}:")?;
    for name in names.split(' ') {
        try_write!(out, " {}", value(name))?;
    }
    out.try_push_char('\n')
}

fn ip_field(name: &str, v6: bool) -> u64 {
    let without_marks = || {
        let marked = [Ip::Ect1, Ip::Ect0, Ip::Ce].map(|which| ip_total(which, v6));
        marked.iter().fold(ip_total(Ip::Packets, v6), |left, marked| left.wrapping_sub(*marked))
    };
    match (name, of(names::OF_IP, name).or_else(|| of(names::OF_IP_EXT, name))) {
        ("InNoECTPkts", _) => without_marks(),
        (_, counter) => counter.map_or(0, |which| ip_total(which, v6)),
    }
}

fn icmp_field(name: &str, v6: bool) -> u64 {
    let types = if v6 { names::ICMP6_TYPES } else { names::ICMP_TYPES };
    let of_type = |way, rest| of(types, rest).map_or(0, |kind| icmp_total(way, v6, kind));
    match name {
        "InMsgs" => icmp_all(Way::In, v6).wrapping_add(ip_total(Ip::IcmpBadSums, v6)),
        "OutMsgs" => icmp_all(Way::Out, v6),
        "InErrors" => ip_total(Ip::IcmpErrors, v6),
        "InCsumErrors" => ip_total(Ip::IcmpBadSums, v6),
        _ => match (name.strip_prefix("In"), name.strip_prefix("Out")) {
            (Some(rest), _) => of_type(Way::In, rest),
            (_, Some(rest)) => of_type(Way::Out, rest),
            _ => 0,
        },
    }
}

fn udp_field(name: &str, flow: Flow) -> u64 {
    if name == "InErrors" {
        let lost = [Datagrams::NoRoom, Datagrams::Filtered];
        return lost.map(|which| datagrams_total(which, flow)).iter().sum();
    }
    of(names::OF_UDP, name).map_or(0, |which: Datagrams| datagrams_total(which, flow))
}

fn tcp_ext_field(name: &str) -> u64 {
    of(names::OF_TCP_EXT, name).map_or(0, |which: Tcp| tcp_total(which))
}

/// The types of ICMP messages that there were, 16 a line.
fn icmp_types(out: &mut String) -> Result<()> {
    let all = || {
        let of_way =
            |way, word| (0..=u8::MAX).map(move |kind| (word, kind, icmp_total(way, false, kind)));
        let both = of_way(Way::In, "In").chain(of_way(Way::Out, "Out"));
        both.filter(|(_, _, count)| *count != 0)
    };
    const MOST: usize = 2 * 256;
    for from in (0..MOST).step_by(16) {
        if all().nth(from).is_none() {
            break;
        }
        out.try_push_str("IcmpMsg:")?;
        for (word, kind, _) in all().skip(from).take(16) {
            try_write!(out, " {word}Type{kind}")?;
        }
        out.try_push_str("\nIcmpMsg:")?;
        for (_, _, count) in all().skip(from).take(16) {
            try_write!(out, " {count}")?;
        }
        out.try_push_char('\n')?;
    }
    Ok(())
}

fn snmp() -> Result<String> {
    let established = established()?;
    let mut out = String::new();
    pair(&mut out, "Ip", names::IP, |name| match name {
        "Forwarding" => 2,
        "DefaultTTL" => TTL.get().into(),
        _ => ip_field(name, false).cast_signed(),
    })?;
    pair(&mut out, "Icmp", names::ICMP, |name| icmp_field(name, false).cast_signed())?;
    icmp_types(&mut out)?;
    pair(&mut out, "Tcp", names::TCP, |name| match name {
        "RtoAlgorithm" => 1,
        "RtoMin" => 200,
        "RtoMax" => 120_000,
        "MaxConn" => -1,
        "CurrEstab" => established,
        _ => of(names::OF_TCP, name).map_or(0, |which| tcp_total(which).cast_signed()),
    })?;
    for (title, lite) in [("Udp", false), ("UdpLite", true)] {
        let flow = Flow { v6: false, lite };
        pair(&mut out, title, names::UDP, |name| udp_field(name, flow).cast_signed())?;
    }
    Ok(out)
}

/// Connections that are established, or whose peer has closed.
fn established() -> Result<i64> {
    let is_established = |holder: &Holder| match holder {
        Holder::Tcp(socket) => socket.upgrade().is_some_and(|socket| {
            matches!(socket.summary().0, TcpState::Established | TcpState::CloseWait)
        }),
        Holder::Udp(_) => false,
    };
    let mut count = 0;
    ports::for_each(IPPROTO_TCP, |seen| count += i64::from(is_established(&seen.holder)))?;
    Ok(count)
}

fn netstat() -> Result<String> {
    ports::forget_waited();
    let mut out = String::new();
    pair(&mut out, "TcpExt", names::TCP_EXT, |name| tcp_ext_field(name).cast_signed())?;
    pair(&mut out, "IpExt", names::IP_EXT, |name| ip_field(name, false).cast_signed())?;
    // There is no MPTCP.
    pair(&mut out, "MPTcpExt", names::MPTCP_EXT, |_| 0)?;
    Ok(out)
}

fn snmp6() -> Result<String> {
    let mut out = String::new();
    let line = |out: &mut String, title: &str, name: &str, value: u64| {
        let pad = 32usize.saturating_sub(title.len() + name.len());
        try_writeln!(out, "{title}{name}{:pad$}\t{value}", "")
    };
    for name in names::IP6.split(' ') {
        line(&mut out, "Ip6", name, ip_field(name, true))?;
    }
    for name in names::ICMP6.split(' ') {
        line(&mut out, "Icmp6", name, icmp_field(name, true))?;
    }
    for (word, way) in [("InType", Way::In), ("OutType", Way::Out)] {
        for kind in 0..=u8::MAX {
            let count = icmp_total(way, true, kind);
            if count != 0 {
                line(&mut out, "Icmp6", &crate::try_format!("{word}{kind}")?, count)?;
            }
        }
    }
    for (title, names, lite) in [("Udp6", names::UDP, false), ("UdpLite6", names::UDP_LITE6, true)]
    {
        for name in names.split(' ') {
            line(&mut out, title, name, udp_field(name, Flow { v6: true, lite }))?;
        }
    }
    Ok(out)
}

/// Sockets of a protocol and family that have a port.
fn bound(protocol: i32, family: Family) -> Result<usize> {
    let mut count = 0;
    let has_socket = |seen: &ports::Seen| seen.family == family && seen.waits.is_none();
    ports::for_each(protocol, |seen| count += usize::from(has_socket(seen)))?;
    Ok(count)
}

fn sockstat() -> Result<String> {
    let (mut waiting, mut orphans, mut allocated) = (0, 0, 0);
    ports::for_each(IPPROTO_TCP, |seen| match &seen.holder {
        _ if seen.waits.is_some() => waiting += 1,
        holder => {
            allocated += 1;
            // Nobody has the socket any more.
            orphans += i32::from(matches!(holder, Holder::Tcp(tcp) if tcp.strong_count() == 0));
        }
    })?;
    let v4 = |protocol| bound(protocol, Family::V4);
    let mut out = String::new();
    try_writeln!(
        out,
        "sockets: used {}",
        counted::live(Kind::Socket) + counted::live(Kind::UnixSocket)
    )?;
    try_writeln!(
        out,
        "TCP: inuse {} orphan {orphans} tw {waiting} alloc {allocated} mem 0",
        v4(IPPROTO_TCP)?
    )?;
    try_writeln!(out, "UDP: inuse {} mem 0", v4(IPPROTO_UDP)?)?;
    try_writeln!(out, "UDPLITE: inuse {}", v4(IPPROTO_UDPLITE)?)?;
    try_writeln!(out, "RAW: inuse {}", raw::count(Family::V4)?)?;
    try_writeln!(out, "FRAG: inuse 0 memory 0")?;
    Ok(out)
}

fn sockstat6() -> Result<String> {
    let v6 = |protocol| bound(protocol, Family::V6);
    let mut out = String::new();
    try_writeln!(out, "TCP6: inuse {}", v6(IPPROTO_TCP)?)?;
    try_writeln!(out, "UDP6: inuse {}", v6(IPPROTO_UDP)?)?;
    try_writeln!(out, "UDPLITE6: inuse {}", v6(IPPROTO_UDPLITE)?)?;
    try_writeln!(out, "RAW6: inuse {}", raw::count(Family::V6)?)?;
    try_writeln!(out, "FRAG6: inuse 0 memory 0")?;
    Ok(out)
}
