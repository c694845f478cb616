//! poll and select: waiting for descriptors.

use super::caller::{file_any, with_files};
use super::time::read_timeout;
use crate::fs::poll::{self, Patience, PollEvents, Watched};
use crate::mm::user::UserPtr;
use crate::process::{self, signal};
use crate::sync::wait::Deadline;
use crate::time;
use abi::signal::SigSet;
use abi::time::{Timespec, Timeval};
use abi::{Errno, Result};
use alloc::boxed::Box;
use smallvec::SmallVec;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pollfd`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PollFd {
    fd: i32,
    events: u16,
    revents: u16,
}

type Entries = SmallVec<[Watched; 8]>;

fn patience_of(deadline: Option<Deadline>) -> Patience {
    match deadline {
        None => Patience::Forever,
        Some(at) if at <= time::since_boot_ns() => Patience::None,
        Some(at) => Patience::Until(at),
    }
}

/// A deadline from poll's milliseconds: negative is none.
pub fn deadline_of_millis(millis: i32) -> Option<Deadline> {
    let millis = u64::try_from(millis).ok()?;
    match millis {
        0 => Some(0),
        _ => Some(time::since_boot_ns().saturating_add(millis.saturating_mul(1_000_000))),
    }
}

pub fn poll(fds: UserPtr<PollFd>, count: usize, millis: i32) -> Result<i64> {
    poll_until(fds, count, deadline_of_millis(millis))
}

/// A poll that a signal interrupts without a handler goes on with the same deadline.
fn poll_until(fds: UserPtr<PollFd>, count: usize, deadline: Option<Deadline>) -> Result<i64> {
    match poll_once(fds, count, deadline) {
        Err(Errno::ERESTARTNOHAND) => {
            let again = Box::new(move || poll_until(fds, count, deadline));
            process::current().signals.set_restart(again);
            Err(Errno::ERESTART_RESTARTBLOCK)
        }
        other => other,
    }
}

pub fn ppoll(
    fds: UserPtr<PollFd>,
    count: usize,
    timeout: UserPtr<Timespec>,
    mask: UserPtr<SigSet>,
    mask_size: usize,
) -> Result<i64> {
    let deadline = read_timeout(timeout)?;
    let mask = read_mask(mask, mask_size)?;
    let result = signal::with_mask(mask, || poll_once(fds, count, deadline));
    leave_rest(timeout.non_null(), deadline, |out, rest| out.write(&Timespec::from_nanos(rest)));
    result
}

/// Tells the caller how much of its time is left; memory it cannot write keeps the old value, as on Linux.
fn leave_rest<T>(
    timeout: Option<UserPtr<T>>,
    deadline: Option<Deadline>,
    write: impl FnOnce(UserPtr<T>, u64) -> Result<()>,
) {
    if let (Some(timeout), Some(deadline)) = (timeout, deadline) {
        let rest = deadline.saturating_sub(time::since_boot_ns());
        let _ = write(timeout, rest);
    }
}

/// The mask argument of ppoll and its like: NULL is none.
pub fn read_mask(mask: UserPtr<SigSet>, size: usize) -> Result<Option<SigSet>> {
    let Some(mask) = mask.non_null() else { return Ok(None) };
    if size != size_of::<SigSet>() {
        return Err(Errno::EINVAL);
    }
    mask.read().map(Some)
}

fn poll_once(fds: UserPtr<PollFd>, count: usize, deadline: Option<Deadline>) -> Result<i64> {
    if count > process::current().process().nofile_limit() {
        return Err(Errno::EINVAL);
    }
    let mut entries = Entries::new();
    entries.try_reserve(count).map_err(|_| Errno::ENOMEM)?;
    for i in 0..count {
        let asked = fds.index(i as u64).read()?;
        entries.push(watch(asked.fd, PollEvents::from_bits_truncate(u32::from(asked.events))));
    }
    let ready = poll::wait(&mut entries, patience_of(deadline));
    let ready = ready.map_err(|_| Errno::ERESTARTNOHAND)?;
    for (i, entry) in entries.iter().enumerate() {
        let found = (entry.found.bits() & 0xffff) as u16;
        let entry = fds.index(i as u64).addr();
        let offset = core::mem::offset_of!(PollFd, revents) as u64;
        UserPtr::new(entry.wrapping_add(offset)).write(&found)?;
    }
    Ok(ready as i64)
}

fn watch(fd: i32, wanted: PollEvents) -> Watched {
    let always = PollEvents::ERR | PollEvents::HUP;
    let nothing = Watched { file: None, wanted, found: PollEvents::empty() };
    if fd < 0 {
        return nothing;
    }
    match file_any(fd) {
        Ok(file) if !file.is_path() => {
            Watched { file: Some(file), wanted: wanted | always, ..nothing }
        }
        _ => Watched { found: PollEvents::NVAL, ..nothing },
    }
}

/// One of select's three sets.
type Bits = SmallVec<[u64; 16]>;

/// What each set asks for.
const SETS: [PollEvents; 3] = [
    PollEvents::RDNORM
        .union(PollEvents::RDBAND)
        .union(PollEvents::IN)
        .union(PollEvents::HUP)
        .union(PollEvents::ERR),
    PollEvents::WRBAND.union(PollEvents::WRNORM).union(PollEvents::OUT).union(PollEvents::ERR),
    PollEvents::PRI,
];

pub fn select(
    count: i32,
    reads: UserPtr<u64>,
    writes: UserPtr<u64>,
    exceptions: UserPtr<u64>,
    timeout: UserPtr<Timeval>,
) -> Result<i64> {
    let deadline = match timeout.non_null() {
        None => None,
        Some(timeout) => {
            let limit = timeout.read()?;
            // Unlike others, select takes more than a million microseconds.
            let seconds = u64::try_from(limit.sec).map_err(|_| Errno::EINVAL)?;
            let micros = u64::try_from(limit.usec).map_err(|_| Errno::EINVAL)?;
            let nanos = seconds.saturating_mul(1_000_000_000);
            let nanos = nanos.saturating_add(micros.saturating_mul(1000));
            Some(time::since_boot_ns().saturating_add(nanos))
        }
    };
    let result = select_once(count, [reads, writes, exceptions], deadline);
    leave_rest(timeout.non_null(), deadline, |out, rest| out.write(&Timeval::from_nanos(rest)));
    result
}

pub fn pselect6(
    count: i32,
    reads: UserPtr<u64>,
    writes: UserPtr<u64>,
    exceptions: UserPtr<u64>,
    timeout: UserPtr<Timespec>,
    mask: UserPtr<[u64; 2]>,
) -> Result<i64> {
    let mask = match mask.non_null() {
        None => None,
        Some(pair) => {
            let [set, size] = pair.read()?;
            read_mask(UserPtr::new(set), size as usize)?
        }
    };
    let deadline = read_timeout(timeout)?;
    let sets = [reads, writes, exceptions];
    let result = signal::with_mask(mask, || select_once(count, sets, deadline));
    leave_rest(timeout.non_null(), deadline, |out, rest| out.write(&Timespec::from_nanos(rest)));
    result
}

fn select_once(count: i32, sets: [UserPtr<u64>; 3], deadline: Option<Deadline>) -> Result<i64> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
    let count = count.min(with_files(|files| files.capacity()));
    let words = count.div_ceil(64);
    let mut asked = [Bits::new(), Bits::new(), Bits::new()];
    for (bits, user) in asked.iter_mut().zip(sets) {
        bits.try_reserve(words).map_err(|_| Errno::ENOMEM)?;
        for i in 0..words {
            bits.push(match user.non_null() {
                Some(user) => user.index(i as u64).read()?,
                None => 0,
            });
        }
    }
    let (mut entries, numbers) = watch_sets(count, &asked)?;
    let ready = poll::wait(&mut entries, patience_of(deadline));
    ready.map_err(|_| Errno::ERESTARTNOHAND)?;
    let mut total = 0;
    for ((bits, user), events) in asked.iter().zip(sets).zip(SETS) {
        let mut out = Bits::from_elem(0, words);
        for (entry, &number) in entries.iter().zip(&numbers) {
            let (word, bit) = (number / 64, 1u64 << (number % 64));
            if bits[word] & bit != 0 && entry.found.intersects(events) {
                out[word] |= bit;
                total += 1;
            }
        }
        if let Some(user) = user.non_null() {
            for (i, word) in out.iter().enumerate() {
                user.index(i as u64).write(word)?;
            }
        }
    }
    Ok(total)
}

/// One entry for each descriptor that is in a set; EBADF if one of them is not open.
fn watch_sets(count: usize, asked: &[Bits; 3]) -> Result<(Entries, SmallVec<[usize; 8]>)> {
    let mut entries = Entries::new();
    let mut numbers = SmallVec::new();
    let words = asked.iter().map(|bits| bits.len()).max().unwrap_or(0);
    for word in 0..words {
        let mut any = asked[0][word] | asked[1][word] | asked[2][word];
        while any != 0 {
            let bit = any & any.wrapping_neg();
            let number = word * 64 + any.trailing_zeros() as usize;
            any &= any - 1;
            if number >= count {
                break;
            }
            let mut wanted = PollEvents::empty();
            for (bits, events) in asked.iter().zip(SETS) {
                if bits[word] & bit != 0 {
                    wanted |= events;
                }
            }
            let file = super::caller::file(number as i32)?;
            entries.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            numbers.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            entries.push(Watched { file: Some(file), wanted, found: PollEvents::empty() });
            numbers.push(number);
        }
    }
    Ok((entries, numbers))
}
