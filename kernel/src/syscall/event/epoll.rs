//! epoll: the calls of `fs::epoll::epoll`.

use super::poll::{deadline_of_millis, read_mask};
use crate::fs::epoll::{self, Change, Epoll, Event};
use crate::mm::user::{self, UserPtr};
use crate::process::{self, signal};
use crate::sync::wait::Deadline;
use crate::syscall::caller::file;
use crate::syscall::file::install::install;
use crate::syscall::time::read_timeout;
use crate::time;
use crate::vfs::Fd;
use abi::fs::OpenFlags;
use abi::signal::SigSet;
use abi::time::Timespec;
use abi::{Errno, Result};

/// `struct epoll_event` is packed on x86_64: the events, then eight bytes of data.
const EVENT_SIZE: usize = 12;

pub fn epoll_create(size: i32) -> Result<i32> {
    if size <= 0 { Err(Errno::EINVAL) } else { epoll_create1(0) }
}

pub fn epoll_create1(flags: u32) -> Result<i32> {
    if flags & !OpenFlags::CLOEXEC.bits() != 0 {
        return Err(Errno::EINVAL);
    }
    let file = epoll::new(&process::current().cred_arc())?;
    Ok(install(file, flags != 0)?.0)
}

pub fn epoll_ctl(epfd: i32, op: i32, fd: i32, event: u64) -> Result<()> {
    control(epfd, op, fd, wanted_event(op, event)?)
}

const ADD: i32 = 1;
const DEL: i32 = 2;
const MOD: i32 = 3;

/// What `epoll_ctl` is told in user memory.
pub fn wanted_event(op: i32, event: u64) -> Result<Event> {
    if op == DEL { Ok(Event::default()) } else { read_event(event) }
}

/// As [`epoll_ctl`], with what it was told.
pub fn control(epfd: i32, op: i32, fd: i32, wanted: Event) -> Result<()> {
    let outer = file(epfd)?;
    let target = file(fd)?;
    let change = match op {
        ADD => Change::Add,
        DEL => Change::Delete,
        MOD => Change::Modify,
        _ => return Err(Errno::EINVAL),
    };
    epoll::check_target(&target)?;
    let epoll = outer.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
    epoll.control(change, Fd(fd), &target, wanted)
}

fn read_event(addr: u64) -> Result<Event> {
    let mut bytes = [0; EVENT_SIZE];
    user::read_bytes(addr, &mut bytes)?;
    let (events, data) = bytes.split_at(4);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
    Ok(Event { events: word(events) as u32, data: word(data) })
}

fn write_event(addr: u64, nth: usize, event: Event) -> Result<()> {
    let mut bytes = [0; EVENT_SIZE];
    bytes[..4].copy_from_slice(&event.events.to_ne_bytes());
    bytes[4..].copy_from_slice(&event.data.to_ne_bytes());
    user::write_bytes(addr.wrapping_add((nth * EVENT_SIZE) as u64), &bytes)
}

fn wait(epfd: i32, events: u64, max: i32, deadline: Option<Deadline>) -> Result<usize> {
    let max = usize::try_from(max).ok().filter(|&max| max > 0).ok_or(Errno::EINVAL)?;
    if max > i32::MAX as usize / EVENT_SIZE {
        return Err(Errno::EINVAL);
    }
    let outer = file(epfd)?;
    let epoll = outer.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
    let block = deadline.is_none_or(|at| at > time::since_boot_ns());
    epoll.wait(max, deadline, block, &mut |nth, event| write_event(events, nth, event))
}

pub fn epoll_wait(epfd: i32, events: u64, max: i32, millis: i32) -> Result<usize> {
    wait(epfd, events, max, deadline_of_millis(millis))
}

pub fn epoll_pwait(
    epfd: i32,
    events: u64,
    max: i32,
    millis: i32,
    mask: UserPtr<SigSet>,
    mask_size: usize,
) -> Result<usize> {
    let mask = read_mask(mask, mask_size)?;
    signal::with_mask(mask, || wait(epfd, events, max, deadline_of_millis(millis)))
}

pub fn epoll_pwait2(
    epfd: i32,
    events: u64,
    max: i32,
    timeout: UserPtr<Timespec>,
    mask: UserPtr<SigSet>,
    mask_size: usize,
) -> Result<usize> {
    let deadline = read_timeout(timeout)?;
    let mask = read_mask(mask, mask_size)?;
    signal::with_mask(mask, || wait(epfd, events, max, deadline))
}
