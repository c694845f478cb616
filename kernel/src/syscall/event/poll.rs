//! poll and select: waiting for descriptors.

use crate::mm::fallible::{extend_small, try_box};
use crate::mm::user::{self, UserPtr};
use crate::process::{self, signal};
use crate::sync::wait::Deadline;
use crate::syscall::caller::with_files;
use crate::syscall::time::read_timeout;
use crate::time;
use crate::vfs::poll::{self, Patience, Watched};
use crate::vfs::{Fd, OpenFiles, PollEvents};
use abi::signal::SigSet;
use abi::time::{Timespec, Timeval};
use abi::{Errno, Result};
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

type Entries = SmallVec<[Watched; 32]>;

/// How many of poll's entries are read at once.
const AT_ONCE: usize = 32;

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

pub fn poll(fds: UserPtr<PollFd>, count: u32, millis: i32) -> Result<i64> {
    poll_until(fds, count as usize, deadline_of_millis(millis))
}

/// A poll that a signal interrupts without a handler goes on with the same deadline.
fn poll_until(fds: UserPtr<PollFd>, count: usize, deadline: Option<Deadline>) -> Result<i64> {
    match poll_once(fds, count, deadline) {
        Err(Errno::ERESTARTNOHAND) => {
            // Without memory for it the wait ends as one that no handler lets go on.
            let again = try_box(move || poll_until(fds, count, deadline));
            let again = again.map_err(|_| Errno::EINTR)?;
            process::current().signals.set_restart(again);
            Err(Errno::ERESTART_RESTARTBLOCK)
        }
        other => other,
    }
}

pub fn ppoll(
    fds: UserPtr<PollFd>,
    count: u32,
    timeout: UserPtr<Timespec>,
    mask: UserPtr<SigSet>,
    mask_size: usize,
) -> Result<i64> {
    let deadline = read_timeout(timeout)?;
    let mask = read_mask(mask, mask_size)?;
    let result = signal::with_mask(mask, || poll_once(fds, count as usize, deadline));
    write_time_left(timeout.non_null(), deadline, |out, rest| {
        out.write(&Timespec::from_nanos(rest))
    });
    result
}

/// Writes back how much of the time is left; memory it cannot write keeps the old value, as on Linux.
fn write_time_left<T>(
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
    let mut asked = [PollFd { fd: -1, events: 0, revents: 0 }; AT_ONCE];
    while entries.len() < count {
        let asked = &mut asked[..(count - entries.len()).min(AT_ONCE)];
        let from = fds.index(entries.len() as u64).addr();
        user::read_bytes(from, asked.as_mut_bytes())?;
        watch(asked, &mut entries)?;
    }
    let ready = poll::wait(&mut entries, patience_of(deadline))?;
    for (i, entry) in entries.iter().enumerate() {
        let found = (entry.found.bits() & 0xffff) as u16;
        let entry = fds.index(i as u64).addr();
        let offset = core::mem::offset_of!(PollFd, revents) as u64;
        UserPtr::new(entry.wrapping_add(offset)).write(&found)?;
    }
    Ok(ready as i64)
}

/// Adds entries to be looked at.
fn watch(asked: &[PollFd], entries: &mut Entries) -> Result<()> {
    let always = PollEvents::ERR | PollEvents::HUP;
    let each = |files: OpenFiles<'_>| {
        let watched = asked.iter().map(|asked| {
            let wanted = PollEvents::from_bits_truncate(u32::from(asked.events)) | always;
            let file = files.get(Fd(asked.fd)).cloned();
            // A negative descriptor is skipped, and no error.
            let found = match file.is_none() && asked.fd >= 0 {
                true => PollEvents::NVAL,
                false => PollEvents::empty(),
            };
            Watched { file, wanted, found }
        });
        extend_small(entries, watched)
    };
    with_files(|files| files.look(each))
}

/// Select's three sets, one after the other.
type Bits = SmallVec<[u64; 48]>;

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
    write_time_left(timeout.non_null(), deadline, |out, rest| {
        out.write(&Timeval::from_nanos(rest))
    });
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
    write_time_left(timeout.non_null(), deadline, |out, rest| {
        out.write(&Timespec::from_nanos(rest))
    });
    result
}

fn select_once(count: i32, sets: [UserPtr<u64>; 3], deadline: Option<Deadline>) -> Result<i64> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
    let count = count.min(with_files(|files| files.capacity()));
    let words = count.div_ceil(64);
    let mut bits = Bits::new();
    bits.try_reserve(3 * words).map_err(|_| Errno::ENOMEM)?;
    #[expect(clippy::disallowed_methods, reason = "there is room")]
    bits.resize(3 * words, 0);
    let (reads, rest) = bits.split_at_mut(words);
    let (writes, exceptions) = rest.split_at_mut(words);
    let mut bits = [reads, writes, exceptions];
    for (bits, user) in bits.iter_mut().zip(sets) {
        let Some(user) = user.non_null().filter(|_| words != 0) else { continue };
        user::read_bytes(user.addr(), bits.as_mut_bytes())?;
        // Whatever stands behind the last descriptor is not asked.
        if !count.is_multiple_of(64) {
            bits[words - 1] &= (1 << (count % 64)) - 1;
        }
    }
    let mut entries = Entries::new();
    watch_sets([&*bits[0], &*bits[1], &*bits[2]], &mut entries)?;
    poll::wait(&mut entries, patience_of(deadline))?;
    let total = keep_ready(&mut bits, &entries);
    for (bits, user) in bits.iter().zip(sets) {
        if let Some(user) = user.non_null().filter(|_| words != 0) {
            user::write_bytes(user.addr(), bits.as_bytes())?;
        }
    }
    Ok(total)
}

/// Adds one entry for each descriptor that is in a set; EBADF if one of them is not open.
fn watch_sets([reads, writes, exceptions]: [&[u64]; 3], entries: &mut Entries) -> Result<()> {
    let words = || reads.iter().zip(writes).zip(exceptions).map(|((r, w), e)| [*r, *w, *e]);
    let members = words().map(|[r, w, e]| (r | w | e).count_ones() as usize).sum();
    entries.try_reserve(members).map_err(|_| Errno::ENOMEM)?;
    let each = |files: OpenFiles<'_>| {
        for (word, sets) in words().enumerate() {
            let mut left = sets[0] | sets[1] | sets[2];
            while left != 0 {
                let at = left.trailing_zeros();
                left &= left - 1;
                let mut wanted = PollEvents::empty();
                for (set, events) in sets.iter().zip(SETS) {
                    if set >> at & 1 != 0 {
                        wanted |= events;
                    }
                }
                let file = files.get(Fd((word * 64) as i32 + at as i32)).ok_or(Errno::EBADF)?;
                let file = Some(file.clone());
                #[expect(clippy::disallowed_methods, reason = "there is room")]
                entries.push(Watched { file, wanted, found: PollEvents::empty() });
            }
        }
        Ok(())
    };
    with_files(|files| files.look(each))
}

/// Keeps in the sets what is ready: how many.
fn keep_ready(sets: &mut [&mut [u64]; 3], entries: &[Watched]) -> i64 {
    let [reads, writes, exceptions] = sets;
    let mut entries = entries.iter();
    let mut total = 0;
    for ((read, write), exception) in reads.iter_mut().zip(&mut **writes).zip(&mut **exceptions) {
        let mut left = *read | *write | *exception;
        let mut out = [0; 3];
        while left != 0
            && let Some(entry) = entries.next()
        {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            if entry.found.is_empty() {
                continue;
            }
            for (out, events) in out.iter_mut().zip(SETS) {
                if entry.found.intersects(events) {
                    *out |= bit;
                }
            }
        }
        for (set, out) in [read, write, exception].into_iter().zip(out) {
            *set &= out;
            total += i64::from(set.count_ones());
        }
    }
    total
}
