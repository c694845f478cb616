//! The commands that are written to /proc/alea/trace, one a line.

use super::session::Config;
use crate::base::percpu;
use crate::process::watch;
use crate::trace::{Point, Points};
use crate::vfs::Capability;
use abi::{Errno, Result};

/// What is asked for beside a change of what is wanted.
pub(super) enum Command {
    Set,
    /// Trace the process of this number.
    Trace(i32),
    /// Trace all.
    All,
}

/// Bytes of a ring: the least, and the most of all rings of a session of somebody who is not root, and of root.
const LEAST: usize = 8 << 10;
const MOST: usize = 4 << 20;
const MOST_OF_ROOT: usize = 256 << 20;

/// Most bytes of what an argument points to.
const STRINGS: usize = 512;

/// Obeys a line, as far as it is about what is wanted.
pub(super) fn obey(line: &str, config: &mut Config) -> Result<Command> {
    let mut words = line.split_ascii_whitespace();
    let Some(verb) = words.next() else { return Ok(Command::Set) };
    let value = words.next().unwrap_or_default();
    if words.next().is_some() {
        return Err(Errno::EINVAL);
    }
    match verb {
        "points" => config.points = points(value)?,
        "calls" => config.calls = Some(calls(value)?),
        "size" => config.size = size(number(value)?, config)?,
        "strings" => config.strings = number(value)?.min(STRINGS),
        "follow" => config.follow = number(value)? != 0,
        "trace" => return Ok(Command::Trace(value.parse().map_err(|_| Errno::EINVAL)?)),
        "all" if value.is_empty() => return Ok(Command::All),
        _ => return Err(Errno::EINVAL),
    }
    Ok(Command::Set)
}

fn number(text: &str) -> Result<usize> {
    text.parse().map_err(|_| Errno::EINVAL)
}

fn points(names: &str) -> Result<Points> {
    let mut points = Points::none();
    for name in names.split(',') {
        let point = Point::ALL.into_iter().find(|&point| name_of(point) == name);
        points = match name {
            "calls" => points.with(Point::Enter).with(Point::Leave),
            _ => points.with(point.ok_or(Errno::EINVAL)?),
        };
    }
    Ok(points)
}

const fn name_of(point: Point) -> &'static str {
    match point {
        Point::Enter => "enter",
        Point::Leave => "leave",
        Point::Switch => "switch",
        Point::Wakeup => "wakeup",
        Point::Fault => "fault",
        Point::Phase => "phase",
        Point::Draw => "draw",
        Point::Reseed => "reseed",
        Point::Lock => "lock",
        Point::Fork => "fork",
        Point::Exec => "exec",
        Point::Exit => "exit",
        Point::Tick => "tick",
    }
}

fn calls(names: &str) -> Result<[u64; 8]> {
    let mut calls = [0; 8];
    for name in names.split(',') {
        let number = watch::number_of(name).ok_or(Errno::EINVAL)?;
        let word = calls.get_mut(number / 64).ok_or(Errno::EINVAL)?;
        *word |= 1 << (number % 64);
    }
    Ok(calls)
}

/// Bytes of a ring from KiB.
fn size(kib: usize, config: &Config) -> Result<usize> {
    let most = if config.cred.capable(Capability::SYS_ADMIN) { MOST_OF_ROOT } else { MOST };
    let bytes = kib.checked_mul(1 << 10).ok_or(Errno::EINVAL)?;
    let bytes = bytes.max(LEAST).checked_next_power_of_two().ok_or(Errno::EINVAL)?;
    let all = bytes.checked_mul(percpu::cpus_online()).ok_or(Errno::EINVAL)?;
    if all > most.max(LEAST * percpu::cpus_online()) {
        return Err(Errno::EINVAL);
    }
    Ok(bytes)
}
