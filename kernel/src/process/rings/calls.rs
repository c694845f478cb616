//! System calls: records of their begin and end, with what their arguments point to.
//!
//! Runs in the task, with interrupts on and nothing held. Owns nothing. Locks: none.

use super::capture::{self, Capture, When};
use super::record::{HEAD, Kind, MAX_WORDS, first};
use super::session::{Session, look, look_at_all, look_in_task, sees_all};
use crate::arch::entry::frame::{SYSCALLS, TrapFrame};
use crate::base::{percpu, tsc};
use crate::process::task::current::Current;
use crate::trace::Point;
use core::sync::atomic::Ordering;

/// Words of the record of an entry, and of an end, without what arguments point to.
const ENTER: usize = HEAD + 7;
const LEAVE: usize = HEAD + 2;
/// Words of the record of a short one, and of one without arguments.
pub(in crate::process) const CALL: usize = HEAD + 9;
pub(in crate::process) const BARE_CALL: usize = HEAD + 3;

/// Calls that wait for nobody and whose arguments point to nothing that is copied: they are told of once, when they have ended.
/// close, lseek, mprotect, munmap, brk, madvise, dup, dup2, alarm, fcntl, umask, getrusage, times, getresuid, getresgid, getpgid,
/// getsid, prctl, arch_prctl, time, sched_getaffinity, set_tid_address, clock_getres, set_robust_list, dup3, getcpu, rseq.
const SHORT: [u64; 8] = bits(&[
    3, 8, 10, 11, 12, 28, 32, 33, 37, 72, 95, 98, 100, 118, 120, 121, 124, 157, 158, 201, 204, 218,
    229, 273, 292, 309, 334,
]);

/// Those of them that take no arguments: sched_yield, getpid, getuid, getgid, geteuid, getegid, getppid, getpgrp, setsid, gettid.
const BARE: [u64; 8] = bits(&[24, 39, 102, 104, 107, 108, 110, 111, 112, 186]);

const fn bits(numbers: &[u16]) -> [u64; 8] {
    let mut bits = [0; 8];
    let mut at = 0;
    while at < numbers.len() {
        assert!((numbers[at] as usize) < SYSCALLS, "it is in no table");
        bits[numbers[at] as usize / 64] |= 1 << (numbers[at] % 64);
        at += 1;
    }
    bits
}

#[inline(always)]
fn has(bits: &[u64; 8], number: u32) -> bool {
    bits.get(number as usize / 64).is_some_and(|bits| bits >> (number % 64) & 1 != 0)
}

/// Whether a call waits for nobody.
#[inline(always)]
pub(in crate::process) fn is_short(number: u32) -> bool {
    has(&SHORT, number)
}

/// Whether it does not, and takes no arguments either.
#[inline(always)]
pub(in crate::process) fn is_bare(number: u32) -> bool {
    has(&BARE, number)
}

/// A call that has ended.
pub(in crate::process) struct Ended<'a> {
    pub start: u64,
    pub number: u32,
    pub result: i64,
    pub frame: &'a TrapFrame,
}

impl Ended<'_> {
    /// Tells of it in `N` words, which are [`BARE_CALL`] or [`CALL`].
    #[inline(always)]
    pub(in crate::process) fn told<const N: usize>(self, for_all: bool, task: Current) {
        look_in_task(task.watched.mark(), |session| self.tell::<N>(session, task));
        if for_all {
            self.told_to_all::<N>(task);
        }
    }

    #[cold]
    #[inline(never)]
    fn told_to_all<const N: usize>(self, task: Current) {
        look_at_all(task.process().pid(), |session| self.tell::<N>(session, task));
    }

    #[inline(always)]
    fn tell<const N: usize>(&self, session: &Session, task: Current) {
        let wants = session.wants_each_end
            || session.wants(Point::Leave) && session.wants_call(self.number);
        if !wants {
            return;
        }
        let here = percpu::cpu_id();
        let Some(ring) = session.rings.get(here) else { return };
        let is_half_full = ring.write_in_place::<N>(|words| {
            let head = first(Kind::Call, here, N, task.tid());
            let start =
                [head, tsc::read(), self.start, self.number.into(), self.result.cast_unsigned()];
            let record = start.into_iter().chain(self.frame.syscall_args());
            for (to, from) in words.iter().zip(record) {
                // Relaxed: the head of the ring publishes them.
                to.store(from, Ordering::Relaxed);
            }
        });
        if is_half_full {
            session.readers.wake_all();
        }
    }
}

/// Another call begins.
pub(super) fn enter(task: Current, number: u32, args: &[u64; 6]) {
    let [a, b, c, d, e, f] = *args;
    let call = Call { task, number, point: Point::Enter };
    let captures = capture::of(number, When::Enter);
    let head = [first(Kind::Enter, 0, ENTER, task.tid()), 0, number.into(), a, b, c, d, e, f];
    call.tell_with(&head, captures, |most, to| capture::copy(captures, args, 0, most, to));
}

/// It has ended.
pub(super) fn leave(task: Current, number: u32, result: i64, args: &[u64; 6]) {
    let call = Call { task, number, point: Point::Leave };
    let failed = abi::Errno::from_return(result).is_some();
    let captures = if failed { &[] } else { capture::of(number, When::Leave) };
    let result = result.cast_unsigned();
    let head = [first(Kind::Leave, 0, LEAVE, task.tid()), 0, number.into(), result];
    call.tell_with(&head, captures, |most, to| capture::copy(captures, args, result, most, to));
}

/// Writes a record into the ring of `here`, which is this CPU.
#[inline(always)]
fn put(session: &Session, here: usize, record: &[u64]) {
    if let Some(ring) = session.rings.get(here)
        && ring.write(record)
    {
        session.readers.wake_all();
    }
}

/// What is told of, and at which end.
struct Call {
    task: Current,
    number: u32,
    point: Point,
}

impl Call {
    /// Makes a record of `head` and what `copy` puts behind it, up to so many bytes of each argument, and writes it.
    fn tell_with(
        &self,
        head: &[u64],
        captures: &[Capture],
        copy: impl FnOnce(usize, &mut [u64]) -> usize,
    ) {
        let mut most = None;
        if !captures.is_empty() {
            self.each(|session| most = most.max(Some(session.config.strings)));
            if most.is_none() {
                return;
            }
        }
        let mut bare = [0; ENTER];
        let bare = &mut bare[..head.len()];
        match most {
            None | Some(0) => {
                bare.copy_from_slice(head);
                self.tell(bare);
            }
            Some(most) => self.tell_copied(head, |to| copy(most, to)),
        }
    }

    /// The same with much room on the stack.
    #[inline(never)]
    fn tell_copied(&self, head: &[u64], copy: impl FnOnce(&mut [u64]) -> usize) {
        let mut record = [0; MAX_WORDS];
        let (start, rest) = record.split_at_mut(head.len());
        start.copy_from_slice(head);
        let len = head.len() + copy(rest);
        record[0] = head[0] & !(0xffff << 16) | (len as u64) << 16;
        self.tell(&mut record[..len]);
    }

    /// Writes a record, whose time and CPU are filled in, to all who see the call.
    fn tell(&self, record: &mut [u64]) {
        self.each(|session| {
            let here = percpu::cpu_id();
            record[0] = record[0] & !0xff00 | (here as u64 & 0xff) << 8;
            record[1] = tsc::read();
            put(session, here, record);
        });
    }

    #[inline(always)]
    fn each(&self, mut act: impl FnMut(&Session)) {
        let mut see = |session: &Session| {
            if session.wants(self.point) && session.wants_call(self.number) {
                act(session);
            }
        };
        look(self.task.watched.mark(), &mut see);
        if sees_all() {
            look_at_all(self.task.process().pid(), see);
        }
    }
}
